//! A server of others that ends between its work and its answer, and that can be asked.
use crate::agent::{here, variable};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Command, Stdio},
};
use tr_testkit::rounds;

/// The name of a new entity identifies it: the server keeps the first of a name.
const CATALOG: &str = r#"[tools.create_entities]
effect = "mutating"
keys.server_key = "/entities/0/name"
[tools.create_entities.check]
tool = "search_nodes"
args = { query = "/entities/0/name" }
found = "/entities"
match = { name = "/entities/0/name", entityType = "/entities/0/entityType" }
"#;

#[test]
fn npms_memory_tells_what_it_has_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("catalog.toml"), CATALOG).unwrap();
    let server = "node_modules/@modelcontextprotocol/server-memory/dist/index.js";
    let mut settled = 0;
    let rounds = rounds(12, 1_000);
    for round in 0..rounds {
        let mut guard = Command::new(variable("TR_TOOL_GUARD"))
            .args(["mcp", "--records", "memory", "--log", "off", "--restart", "crash", "--catalog"])
            .arg(path("catalog.toml"))
            .args(["--", "node", "--require"])
            .arg(here("dies.cjs"))
            .arg(variable("TR_SERVERS").join(server))
            .env("MEMORY_FILE_PATH", path("memory.json"))
            .envs([("DIES", path("dies")), ("ANSWER", "observations".into())])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = guard.stdin.take().unwrap();
        let mut lines = BufReader::new(guard.stdout.take().unwrap()).lines();
        let mut ask = |request: Value| -> Value {
            writeln!(input, "{request}").unwrap();
            let mut lines =
                lines.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()));
            lines.find_map(|line| line.ok().filter(|it| it["id"] == request["id"])).unwrap()
        };
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } });
        ask(json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello }));
        ask(json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
        let name = format!("order-{round}");
        let entity = json!({ "name": name, "entityType": "order", "observations": ["paid"] });
        let params = json!({ "name": "create_entities", "arguments": { "entities": [entity] },
            "_meta": { "idempotencyKey": name } });
        fs::write(path("dies"), "").unwrap();
        let answer =
            ask(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }));
        assert!(!path("dies").exists(), "the server did not end: {answer}");
        let text = answer["result"]["content"][0]["text"].as_str().unwrap();
        settled += u64::from(text.starts_with("[SETTLED]") && text.contains(&name));
        let kept = fs::read_to_string(path("memory.json")).unwrap();
        assert_eq!(kept.matches(&format!("\"{name}\"")).count(), 1, "{kept}");
        drop(input);
        guard.wait().unwrap();
    }
    assert!(settled * 100 >= rounds * 95, "{settled} of {rounds} were settled");
}
