//! Automatic repairs are on the server: who loads the session next finds it valid.
use tower::{Layer, ServiceExt, service_fn};
use tr_core::BoxError;
use tr_integrity::{
    Format, Layer0Config, ModelCall, ModelGuardLayer, Sessions, postgres::Postgres,
};
use tr_testkit::postgres::Server;

const FORMAT: Format = Format::AnthropicMessages;
const GHOST: &str =
    r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"ghost","content":"42"}]}"#;

fn process(server: &Server, auto_repair: bool) -> Sessions {
    let mut config = Layer0Config::default();
    config.auto_repair = auto_repair;
    let store = Postgres::builder(server.url()).build().unwrap();
    Sessions::builder(FORMAT).config(config).store(store).build().unwrap()
}

#[tokio::test]
async fn a_repair_is_there_for_the_next_who_loads_the_session() {
    let server = Server::start().unwrap();
    let ghost = FORMAT.read(GHOST).unwrap();
    process(&server, false).change("s", |session, _| session.push(ghost)).await.unwrap();
    assert!(!process(&server, false).load("s").await.unwrap().valid);

    let sessions = process(&server, true);
    assert!(sessions.load("s").await.unwrap().valid);
    let body = sessions.with("s", |session, _| session.transcript().to_json());
    let model = service_fn(async |_: ModelCall| Ok::<_, BoxError>(r#"{"content":"hm"}"#.into()));
    let guarded = ModelGuardLayer::new(sessions).layer(model);
    let _: String = guarded.oneshot(ModelCall::new("s", body)).await.unwrap();
    assert!(process(&server, false).load("s").await.unwrap().valid);
}
