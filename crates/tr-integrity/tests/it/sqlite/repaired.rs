//! Automatic repairs outlive their process.
use super::subject::TempFile;
use std::path::Path;
use tower::{Layer, ServiceExt, service_fn};
use tr_core::BoxError;
use tr_integrity::{
    Format, Layer0Config, ModelCall, ModelGuardLayer, SessionCorrupt, Sessions, sqlite::Sqlite,
};

const FORMAT: Format = Format::AnthropicMessages;
const GHOST: &str =
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"ghost","content":"42"}]}"#;

async fn process(path: &Path, auto_repair: bool) -> Sessions {
    let mut config = Layer0Config::default();
    config.auto_repair = auto_repair;
    let store = Sqlite::open(path).await.unwrap();
    Sessions::builder(FORMAT).config(config).store(store).build().unwrap()
}

async fn ask(sessions: &Sessions) -> Result<String, BoxError> {
    let body = sessions.with("s", |session, _| session.transcript().to_json());
    let model = service_fn(async |_: ModelCall| Ok::<_, BoxError>(r#"{"content":"hm"}"#.into()));
    ModelGuardLayer::new(sessions.clone()).layer(model).oneshot(ModelCall::new("s", body)).await
}

#[tokio::test]
async fn a_repair_before_a_call_and_one_on_loading_are_in_the_file() {
    for on_loading in [false, true] {
        let file = TempFile::new();
        let repairing = process(&file.path(), true).await;
        let corrupting = if on_loading { &process(&file.path(), false).await } else { &repairing };
        let ghost = FORMAT.read(GHOST).unwrap();
        corrupting.change("s", |session, _| session.push(ghost)).await.unwrap();
        let found = async |auto_repair| {
            process(&file.path(), auto_repair).await.load("s").await.unwrap().valid
        };
        assert!(!found(false).await);
        assert!(found(true).await, "what is loaded is repaired, and not written");
        assert!(!found(false).await);
        if on_loading {
            let error = ask(corrupting).await.unwrap_err();
            assert!(error.is::<SessionCorrupt>());
            assert!(repairing.load("s").await.unwrap().valid);
        }
        ask(&repairing).await.unwrap();
        assert!(found(false).await, "on loading: {on_loading}");
    }
}
