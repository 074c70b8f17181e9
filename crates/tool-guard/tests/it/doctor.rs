//! `tool-guard doctor` says what is guarded and what answers, and starts nothing that it should not.
use serde_json::json;
use std::{
    fs,
    path::Path,
    process::{Command, Output},
};
use tempfile::TempDir;

/// Answers the first line, and reads the rest.
const FAKE: &str = r#"read -r line; echo "hello"; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"fake","version":"7"}}}'; cat"#;

fn home() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn guard(home: &Path, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tool-guard"))
        .args(words)
        .current_dir(home)
        .env_clear()
        .env("HOME", home)
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap()
}

/// What the doctor prints, with its exit code.
#[track_caller]
fn doctor(home: &Path, words: &[&str], code: i32) -> String {
    let output = guard(home, &[&["doctor"], words].concat());
    let said = String::from_utf8(output.stdout.clone()).unwrap();
    assert_eq!(
        output.status.code(),
        Some(code),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    said
}

/// The line about this server.
#[track_caller]
fn about<'s>(said: &'s str, server: &str) -> &'s str {
    let found =
        said.lines().find(|line| line.trim_start().starts_with(&format!("{server} (line ")));
    found.unwrap_or_else(|| panic!("{server}: {said}"))
}

#[test]
fn params_that_name_an_order_are_proposed_as_an_identity() {
    let home = home();
    let tools = json!([
        { "name": "pay", "inputSchema": { "properties": { "order_id": {}, "cents": {} } } },
        { "name": "list", "annotations": { "readOnlyHint": true }, "inputSchema": { "properties": { "orderId": {} } } },
    ]);
    let lists = format!(r#"echo '{{"jsonrpc":"2.0","id":2,"result":{{"tools":{tools}}}}}'"#);
    let server = format!(
        r#"read -r hello; echo '{{"jsonrpc":"2.0","id":1,"result":{{"serverInfo":{{"name":"shop","version":"1"}}}}}}'; read -r note; read -r list; {lists}; cat > /dev/null"#
    );
    let servers = json!({ "mcpServers": { "shop": { "command": "sh", "args": ["-c", server] } } });
    fs::write(home.path().join(".claude.json"), servers.to_string()).unwrap();
    let said = doctor(home.path(), &[], 0);
    let line = r#"tools."pay".keys.identity = ["/order_id"]"#;
    let command = "install claude-code --server shop --catalog FILE";
    assert!(said.contains(&format!("\n        {line}\n")), "{said}");
    assert!(said.contains(&format!("run: tool-guard {command}\n")), "{said}");
    // As it says.
    let catalog = home.path().join("tools.toml");
    let words: Vec<_> = command.split(' ').map(|it| it.replace("FILE", "tools.toml")).collect();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    fs::write(&catalog, "tools.pay.keys.identiy = []").unwrap();
    let refused = String::from_utf8(guard(home.path(), &words).stderr).unwrap();
    assert!(refused.contains("tools.toml") && refused.contains("identiy"), "{refused}");
    fs::write(&catalog, line).unwrap();
    let output = String::from_utf8(guard(home.path(), &words).stdout).unwrap();
    assert!(output.contains("guarded"), "{output}");
    let file = home.path().join(".claude.json");
    let written = fs::read_to_string(&file).unwrap();
    assert!(written.contains(&format!("--catalog={}", catalog.display())), "{written}");
    let said = doctor(home.path(), &[], 0);
    assert!(said.contains("guarded; answers") && !said.contains("identity"), "{said}");
    let wrong = "tools.pya.effect = 'mutating'\ntools.pay.keys.identity = ['/orderid']\n\
                 tools.pay.check = { tool = 'lst', found = '', match = { id = '/id' }, not_before = '/at' }";
    fs::write(&catalog, wrong).unwrap();
    let said = doctor(home.path(), &[], 0);
    for wrong in [
        r#"no tool "pya", but "pay""#,
        r#""pay" has no argument /orderid"#,
        r#""pay" has no argument /id"#,
        r#"no tool "lst", but "list""#,
    ] {
        assert!(said.contains(wrong), "{wrong}: {said}");
    }
    // What the catalog says of other things stays.
    fs::write(&catalog, "tools.pay.effect = 'mutating'").unwrap();
    let said = doctor(home.path(), &[], 0);
    let into = format!("write into {}\n        {line}\n      and restart", catalog.display());
    assert!(said.contains(&into) && !said.contains("--catalog FILE"), "{said}");
    fs::write(&catalog, wrong).unwrap();
    // As a person writes it.
    let by_hand = fs::read_to_string(&file).unwrap().replace("--catalog=", "--catalog\",\"");
    fs::write(&file, by_hand).unwrap();
    let said = doctor(home.path(), &[], 0);
    assert!(said.contains("by hand") && said.contains(r#"no tool "pya""#), "{said}");
    fs::write(&file, written).unwrap();
    fs::remove_file(&catalog).unwrap();
    assert!(doctor(home.path(), &[], 1).contains("tools.toml"));
    assert!(guard(home.path(), &["install", "claude-code", "--undo"]).status.success());
    let undone = fs::read_to_string(home.path().join(".claude.json")).unwrap();
    assert_eq!(undone, servers.to_string());
}

#[test]
fn a_list_of_tools_that_is_none_says_nothing() {
    let home = home();
    for result in ["5", "[]", "null", r#"{"tools":{}}"#, r#"{"tools":[5,{"name":7}]}"#] {
        let server = format!(
            r#"read -r hello; echo '{{"jsonrpc":"2.0","id":1,"result":{{"serverInfo":{{"name":"shop","version":"1"}}}}}}'; read -r note; read -r list; echo '{{"jsonrpc":"2.0","id":2,"result":{result}}}'; cat > /dev/null"#
        );
        let servers = json!({ "mcpServers": { "s": { "command": "sh", "args": ["-c", server] } } });
        fs::write(home.path().join(".claude.json"), servers.to_string()).unwrap();
        let said = doctor(home.path(), &[], 0);
        assert!(
            about(&said, "s").contains("answers after") && !said.contains("identity"),
            "{said}"
        );
    }
}

#[test]
fn a_guarded_server_answers_through_its_guard() {
    let home = home();
    let servers = json!({ "mcpServers": { "fake": { "command": "sh", "args": ["-c", FAKE] } } });
    fs::write(home.path().join(".claude.json"), servers.to_string()).unwrap();
    let said = doctor(home.path(), &[], 0);
    assert!(about(&said, "fake").contains("not guarded; answers after "), "{said}");
    assert!(guard(home.path(), &["install", "claude-code"]).status.success());
    let said = doctor(home.path(), &[], 0);
    let line = about(&said, "fake");
    assert!(line.contains(": guarded; answers after ") && line.ends_with("fake 7"), "{said}");
    assert!(said.contains("records.db can be written"), "{said}");
    assert!(said.contains("not found: Codex, Gemini CLI, Cursor"), "{said}");
    let said = doctor(home.path(), &["--no-start", "claude-code"], 0);
    assert!(about(&said, "fake").ends_with(": guarded"), "{said}");
}

#[test]
fn what_is_wrong_is_said_and_is_the_exit_code() {
    let home = home();
    fs::create_dir(home.path().join(".cursor")).unwrap();
    let file = home.path().join(".cursor/mcp.json");
    let write = |server: serde_json::Value| {
        fs::write(&file, json!({ "mcpServers": { "a": server } }).to_string()).unwrap();
    };
    let says = |code, what: &str| {
        let said = doctor(home.path(), &["cursor", "--timeout", "20s"], code);
        assert!(about(&said, "a").contains(what), "{what}: {said}");
    };
    write(json!({ "command": "sh", "args": ["-c", "echo sorry >&2; exit 3"] }));
    says(1, "does not answer: it ended with exit code 3; it said: sorry");
    write(json!({ "command": "/nowhere/server" }));
    says(1, "ended with exit code 127");
    write(json!({ "command": "/nowhere/tool-guard", "args": ["mcp", "--", "x"] }));
    says(1, "its guard is gone, /nowhere/tool-guard: install --undo");
    write(json!({ "command": "/nowhere/tool-guard", "args": ["mcp", 5] }));
    says(1, "its `args` is no list of texts");
    write(json!({ "command": "a", "args": ["mcp", 5] }));
    says(0, "its `args` is no list of texts");
    let refusal =
        r#"read -r x; echo '{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no key"}}'"#;
    write(json!({ "command": "sh", "args": ["-c", refusal] }));
    says(1, "it refused the connection: no key");
    write(json!({ "command": "tool-guard", "args": ["mcp", "--", "x"], "disabled": true }));
    says(0, "guarded, by hand; not started: it is disabled");
    write(json!({ "url": "https://h.example.com/mcp" }));
    says(0, "not guarded: it is reached over HTTP");
    fs::write(&file, "{\n\"mcpServers\": [}").unwrap();
    let said = doctor(home.path(), &["cursor"], 1);
    assert!(said.contains("line 2 is not valid JSON"), "{said}");
}

#[test]
fn a_server_that_is_silent_is_ended() {
    let home = home();
    let servers =
        json!({ "mcpServers": { "a": { "command": "sh", "args": ["-c", "echo up >&2; cat"] } } });
    fs::write(home.path().join(".claude.json"), servers.to_string()).unwrap();
    let said = doctor(home.path(), &["--timeout", "300ms"], 1);
    assert!(about(&said, "a").contains("no answer within 0.3 s; it said: up"), "{said}");
    let waits = guard(home.path(), &["doctor", "--timeout", "300ms"]).stderr;
    let waits = String::from_utf8(waits).unwrap();
    assert!(waits.contains("waits for a, up to 0.3 s each"), "{waits}");
}

#[test]
fn a_projects_servers_are_started_only_if_asked_for() {
    let home = home();
    let project = home.path().join("project");
    fs::create_dir(&project).unwrap();
    let script = format!("touch started; {FAKE}");
    let servers = json!({ "mcpServers": { "p": { "command": "sh", "args": ["-c", script] } } });
    fs::write(project.join(".mcp.json"), servers.to_string()).unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tool-guard"));
        command.arg("doctor").args(words).current_dir(&project).env("HOME", home.path());
        String::from_utf8(command.env_remove("XDG_STATE_HOME").output().unwrap().stdout).unwrap()
    };
    let said = run(&["claude-code"]);
    assert!(about(&said, "p").contains("not started: it is the project's"), "{said}");
    assert!(!project.join("started").exists());
    let said = run(&["claude-code", "--start-project"]);
    assert!(about(&said, "p").ends_with("fake 7"), "{said}");
    assert!(project.join("started").exists());
}

#[test]
fn records_that_cannot_be_written_are_a_fault() {
    let home = home();
    fs::create_dir(home.path().join(".local")).unwrap();
    fs::write(home.path().join(".local/state"), "no folder").unwrap();
    let said = doctor(home.path(), &[], 1);
    assert!(said.contains("records: ") && said.contains("cannot be used"), "{said}");
}
