//! Two processes on one file: conflicts are told, and no acknowledged turn is lost.
use super::subject::TempFile;
use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
};
use tower::{Layer, ServiceExt, service_fn};
use tr_core::{BoxError, Json, Params, ToolCall, ToolOutcome};
use tr_integrity::{Format, IntegrityLayer, Sessions, sqlite::Sqlite};
use tr_testkit::rounds;

const ORDER: &str = "TR_INTEGRITY_TEST_SHARED";
const CALLS: usize = 25;

async fn sessions(path: &Path) -> Sessions {
    let store = Sqlite::open(path).await.unwrap();
    Sessions::builder(Format::AnthropicMessages).store(store).build().unwrap()
}

/// Calls, and says things, in a session that another process changes too.
async fn take_part(name: &str, path: &Path) {
    let sessions = sessions(path).await;
    let tool = IntegrityLayer::new(sessions.clone()).layer(service_fn(async |call: ToolCall| {
        let said = format!("\"answer {};\"", call.parts().tool_call_id.as_deref().unwrap());
        Ok::<_, BoxError>(ToolOutcome::success(Json::from_text(&said)?))
    }));
    println!("\nready");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    let mut conflicts = 0;
    for n in 0..CALLS {
        let call = ToolCall::new("pay", Params::empty_object())
            .session("s")
            .tool_call_id(&*format!("{name}{n}"));
        if tool.clone().oneshot(call).await.is_ok_and(|outcome| outcome.recorded()) {
            println!("\nkept answer {name}{n};");
        }
        let text = format!("said {name}{n};");
        let message = Format::AnthropicMessages
            .read(format!(r#"{{"role":"user","content":"{text}"}}"#))
            .unwrap();
        match sessions.change("s", |session, _| session.push(message)).await {
            Ok(()) => println!("\nkept {text}"),
            Err(error) => {
                assert!(error.is_conflict(), "{error}");
                conflicts += 1;
            }
        }
    }
    println!("\nconflicts {conflicts}");
}

fn child(name: &str, path: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args([
            "sqlite::shared::two_processes_lose_nothing_that_was_acknowledged",
            "--exact",
            "--nocapture",
        ])
        .env(ORDER, format!("{name}\n{}", path.display()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_lose_nothing_that_was_acknowledged() {
    if let Ok(order) = env::var(ORDER) {
        let (name, path) = order.split_once('\n').unwrap();
        return take_part(name, Path::new(path)).await;
    }
    let mut conflicts = 0;
    for _ in 0..rounds(4, 100) {
        let file = TempFile::new();
        // It exists before they meet.
        Sqlite::open(file.path()).await.unwrap().close().await;
        let mut children: Vec<Child> =
            ["a", "b"].iter().map(|name| child(name, &file.path())).collect();
        let mut outs: Vec<_> = children
            .iter_mut()
            .map(|child| BufReader::new(child.stdout.take().unwrap()).lines())
            .collect();
        for out in &mut outs {
            assert!(out.any(|line| line.unwrap() == "ready"));
        }
        for child in &mut children {
            child.stdin.take().unwrap().write_all(b"go\n").unwrap();
        }
        let mut kept = Vec::new();
        for line in outs.into_iter().flatten() {
            let line = line.unwrap();
            if let Some(what) = line.strip_prefix("kept ") {
                kept.push(what.to_owned());
            } else if let Some(count) = line.strip_prefix("conflicts ") {
                conflicts += count.parse::<usize>().unwrap();
            }
        }
        for mut child in children {
            assert!(child.wait().unwrap().success());
        }
        let sessions = sessions(&file.path()).await;
        sessions.load("s").await.unwrap();
        let text = sessions.with("s", |session, _| {
            assert!(session.validate().valid);
            session.transcript().to_json()
        });
        for what in &kept {
            assert_eq!(text.matches(what.as_str()).count(), 1, "{what}");
        }
        assert!(kept.len() > CALLS, "only {} were kept", kept.len());
        // What nobody was told of is there, if at all, as a whole.
        assert_eq!(
            text.matches("tool_use_id").count(),
            text.matches("\"type\":\"tool_use\"").count()
        );
    }
    println!("{conflicts} conflicts");
}
