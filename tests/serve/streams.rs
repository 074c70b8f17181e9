//! Tools that answer in chunks.
use super::{
    front::{HttpTool, Shop},
    shop,
};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

#[test]
fn ut_07_a_tool_that_streams_is_answered_with_events() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    let front = shop.open(&[]);
    let request = json!({
        "tool": "tail", "action": "", "params": {"lines": ["one", {"two": 2}]}, "requestId": "r",
        "hints": {"preferStreaming": true},
    });
    let json = ["-N", "-i", "-H", "content-type: application/json", "-d", &request.to_string()];
    let (_, text) = front.curl("/call", &json);
    assert!(text.contains("content-type: text/event-stream"), "{text}");
    let events: Vec<Value> = text
        .lines()
        .filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
        .collect();
    let said: Vec<_> = events
        .iter()
        .map(|it| {
            (
                it["chunkIndex"].as_u64().unwrap(),
                it["status"].as_str().unwrap(),
                it["result"].clone(),
            )
        })
        .collect();
    let wanted = [
        (0, "partial", json!("one")),
        (1, "partial", json!({"two": 2})),
        (2, "success", Value::Null),
    ];
    assert_eq!(said, wanted);
}

#[test]
fn each_line_of_a_command_that_streams_is_an_event_as_it_is_printed() {
    let shop = Shop::new("");
    let more = shop.path("more");
    let script =
        format!("echo 1; read more < {}; echo $more; echo no >&2; exit $more", more.display());
    let config = format!(
        "[tools.count]\neffect = \"read_only\"\ncapabilities = [\"streaming\"]\n\
         command = [\"sh\", \"-c\", \"{script}\"]\n"
    );
    fs::write(shop.path("tools.toml"), config).unwrap();
    assert!(Command::new("mkfifo").arg(&more).status().unwrap().success());
    let front = shop.open(&[]);
    for (exit, end) in [("0", "success"), ("3", "error")] {
        let request = json!({
            "tool": "count", "action": "", "params": {"exit": exit},
            "hints": {"preferStreaming": true},
        });
        let json = ["-sN", "-H", "content-type: application/json", "-d", &request.to_string()];
        let mut curl = Command::new("curl");
        curl.args(json).arg(format!("{}/call", front.at)).stdout(Stdio::piped());
        let mut curl = curl.spawn().unwrap();
        let events = BufReader::new(curl.stdout.take().unwrap()).lines().map_while(Result::ok);
        let mut events = events
            .filter_map(|line| serde_json::from_str::<Value>(line.strip_prefix("data: ")?).ok());
        assert_eq!(events.next().unwrap()["result"], 1);
        // The command waits for this, so the first line came while it ran.
        fs::write(&more, format!("{exit}\n")).unwrap();
        let rest: Vec<_> = events.collect();
        assert_eq!(rest[0]["result"].to_string(), exit);
        assert_eq!(rest.last().unwrap()["status"], end, "{rest:?}");
        assert!(curl.wait().unwrap().success());
    }
}
