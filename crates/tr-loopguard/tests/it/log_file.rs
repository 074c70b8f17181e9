//! The file of the attribution log: what is written to it, and what it will not be.
use serde_json::{Map, Value, json};
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};
use tower::ServiceExt as _;
use tr_core::{Params, ToolCall};
use tr_loopguard::{FileLog, LoopGuardLayer};
use tr_testkit::calls::{ScriptedTool, reports};

/// A new folder.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("log-file-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn lines(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn entry(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[tokio::test(start_paused = true)]
async fn each_malformed_call_is_a_line_in_a_file_of_the_user_s_own() {
    let path = folder("calls").join("tool-guard.log");
    let layer = LoopGuardLayer::builder()
        .log_path(&path)
        .log_cleaning(|text| text.replace("s3cret", "[redacted]"))
        .build()
        .unwrap();
    let malformed = reports("e", "Missing required parameter: path");
    let script = [malformed.clone(), reports("e", "ECONNRESET"), malformed];
    let guard = tower::Layer::layer(&layer, ScriptedTool::script(script));
    for params in ["{}", "[]", r#"{"a s3cret":1, "b": "s3cret"}"#] {
        let call = ToolCall::new("read", Params::from_text(params).unwrap())
            .session(params)
            .tool_call_id("call_s3cret");
        guard.clone().oneshot(call).await.unwrap();
    }
    // Once no handle can write to it any more, all is written.
    drop((guard, layer));
    let lines = lines(&path);
    assert_eq!(lines.len(), 2);
    assert_eq!(lines[1]["args"], json!({ "a [redacted]": "number", "b": "string" }));
    assert_eq!(lines[1]["toolCallId"], "call_[redacted]");
    assert_eq!(lines[1]["provider"], "fireworks/openai-compat");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_long_log_is_put_aside_once_whoever_writes_to_it() {
    let folder = folder("long");
    let (path, old) = (folder.join("guard.log"), folder.join("guard.log.1"));
    let logs = [FileLog::new(&path), FileLog::new(&path)];
    for log in &logs {
        log.open().unwrap();
    }
    fs::File::options().write(true).open(&path).unwrap().set_len(10 * 1024 * 1024).unwrap();
    for (n, log) in logs.into_iter().enumerate() {
        log.append(entry(&json!({ "n": n })));
        drop(log);
    }
    assert_eq!(fs::metadata(&old).unwrap().len(), 10 * 1024 * 1024);
    assert_eq!(lines(&path), [json!({ "n": 0 }), json!({ "n": 1 })]);
}

#[test]
fn only_a_regular_file_is_a_log() {
    let folder = folder("kinds");
    let (victim, link, pipe) = (folder.join("victim"), folder.join("link"), folder.join("pipe"));
    fs::write(&victim, "kept").unwrap();
    symlink(&victim, &link).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // A reader keeps the pipe open, so that it can be opened.
    let reader = fs::File::options().read(true).write(true).open(&pipe).unwrap();
    for (path, why) in [(&link, "is a link"), (&pipe, "is not a regular file")] {
        let log = FileLog::new(path);
        assert_eq!(log.open().unwrap_err().to_string(), why);
        log.append(entry(&json!({})));
    }
    drop(reader);
    assert_eq!(FileLog::new(&pipe).open().unwrap_err().to_string(), "is not a regular file");
    assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
    // A folder is made under the user's home only.
    let missing = folder.join("missing/tool-guard.log");
    assert!(FileLog::new(&missing).open().is_err());
    assert!(!missing.parent().unwrap().exists());
}

#[test]
fn what_a_line_says_is_bounded_and_does_nothing_to_a_terminal() {
    let path = folder("bounds").join("tool-guard.log");
    let log = FileLog::new(&path);
    let args = json!({ "n".repeat(1000): "string", "\u{202e}": "null" });
    log.append(entry(&json!({ "toolName": "é".repeat(1000), "args": args, "model": "\u{9b}2J" })));
    log.flush(std::time::Duration::from_secs(60));
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.len() < 700 && !text.contains(['\u{202e}', '\u{9b}']), "{text}");
    let line = &lines(&path)[0];
    assert!(line["toolName"].as_str().unwrap().ends_with("é…"), "{text}");
    assert_eq!(line["args"]["\u{202e}"], "null");
    assert_eq!(line["model"], "\u{9b}2J");
}
