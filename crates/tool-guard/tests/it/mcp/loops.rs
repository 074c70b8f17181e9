//! What is a loop to the guard, and what only looks like one.
use super::client::{Client, ledger, text};
use serde_json::{Value, json};
use std::fs;

/// Calls `echo` so often, and counts answers that are warnings and refusals.
fn echo(client: &mut Client, times: u32, arguments: &Value) -> (usize, usize) {
    let (mut warned, mut refused) = (0, 0);
    for id in 1..=times {
        let answer = text(&client.ask(id, "echo", arguments.clone()));
        warned += usize::from(answer.contains("[LOOP WARNING]"));
        refused += usize::from(answer.starts_with("[LOOP DETECTED]"));
    }
    (warned, refused)
}

#[test]
fn a_quiet_build_polled_60_times_is_no_loop() {
    let catalog = ledger().with_extension("toml");
    fs::write(&catalog, "[tools.echo]\neffect = \"read_only\"\nloops = { poll = true }\n").unwrap();
    let mut client = Client::guarded(&["--catalog", catalog.to_str().unwrap()]);
    assert_eq!(echo(&mut client, 60, &json!({ "text": "" })), (0, 0));
    fs::remove_file(catalog).unwrap();
    // Nor where nobody declares it, and the answers say that it goes on.
    let mut client = Client::guarded(&[]);
    client.list_tools();
    assert_eq!(echo(&mut client, 60, &json!({ "text": "Process still running." })), (0, 0));
}

#[test]
fn the_same_answer_again_and_again_is_one() {
    let mut client = Client::guarded(&[]);
    client.list_tools();
    // It is remarked at the tenth answer and at the twentieth, and never refused.
    assert_eq!(echo(&mut client, 25, &json!({ "text": "a.rs" })), (2, 0));
    let mut client = Client::guarded(&["--loops", "strict"]);
    assert_eq!(echo(&mut client, 25, &json!({ "text": "a.rs" })), (0, 0));
}

/// What fails of the tools `t1`, `t2`, … without a turn, and in a turn that Codex names.
fn failures(client: &mut Client, calls: u32, meta: &Value) -> Vec<String> {
    let mut said = Vec::new();
    for id in 1..=calls {
        let params = json!({ "name": format!("t{id}"), "arguments": { "n": id }, "_meta": meta });
        said.push(text(&client.ask_for(id, "tools/call", params)));
    }
    said
}

/// Each tool fails in words of its own, but for `fine`.
const BROKEN: &str = r#"
    while read -r line; do
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        case "$line" in
            *'"fine"'*) end='"result":{"content":[{"type":"text","text":"fine"}]}' ;;
            *) end='"result":{"content":[{"type":"text","text":"broken"}],"isError":true}' ;;
        esac
        echo "$line" >> "$LEDGER"
        echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$end}"
    done"#;

#[test]
fn five_failures_of_a_client_without_turns_warn_and_stop_nothing() {
    let warning = |n| {
        format!(
            "broken\n[TOOL ERRORS] {n} failures within 60 s. Review your approach before continuing."
        )
    };
    let mut client = Client::script(&[], BROKEN);
    let said = failures(&mut client, 6, &json!({}));
    assert_eq!(said[..4], ["broken"; 4]);
    assert_eq!(said[4..], [warning(5), warning(6)]);
    // Nor does a failure that is the same again.
    for id in 7..=8 {
        let said = text(&client.ask(id, "t1", json!({ "n": 1 })));
        let note = format!("broken\n[LOOP DETECTED] Tool \"t1\" failed {} times", id - 5);
        assert!(said.starts_with(&note) && said.contains("before something has changed"), "{said}");
    }
    assert!(text(&client.ask(9, "t1", json!({ "n": 2 }))).starts_with("broken"));
    assert_eq!(text(&client.ask(10, "fine", json!({}))), "fine");
    assert_eq!(client.executions(""), 10);
}

/// Fails in these words until it has been called 14 times, or 5 times if it is down: before a breaker opens.
const UNTIL_READY: &str = r#"
    while read -r line; do
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        echo "$line" >> "$LEDGER"
        n=$(grep -c . "$LEDGER")
        case "$line" in
            *'"run_tests"'*) last=13 said="FAILED 3 tests: AssertionError" ;;
            *'"mend"'*) last=13 said="$((20 - n)) of 12 tests failed: expected 3, got $n" ;;
            *'"status"'*) last=13 said="not ready yet" ;;
            *) last=4 said="connection refused" ;;
        esac
        failed=true
        [ "$n" -gt "$last" ] && failed=false said=ok
        echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"$said\"}],\"isError\":$failed}}"
    done"#;

/// The guard does not see the client's own tools, nor that a server has come back.
#[test]
fn what_was_mended_unseen_runs_again_for_a_client_without_turns() {
    for (tool, failures, notes) in
        [("run_tests", 13, 12), ("mend", 13, 0), ("status", 13, 12), ("fetch", 4, 3)]
    {
        let mut client = Client::script(&[], UNTIL_READY);
        let mut noted = 0;
        for id in 1..=failures {
            let answer = client.ask(id, tool, json!({ "cmd": "npm test" }));
            assert_eq!(answer["result"]["isError"], true, "{tool} {id}: {answer}");
            noted += usize::from(text(&answer).contains("\n[LOOP DETECTED]"));
        }
        assert_eq!(noted, notes, "{tool}");
        assert_eq!(text(&client.ask(14, tool, json!({ "cmd": "npm test" }))), "ok", "{tool}");
        assert_eq!(client.executions(""), failures as usize + 1, "{tool}");
    }
    // In a turn that the client names, the third is refused.
    let meta = json!({ "x-codex-turn-metadata": { "session_id": "s", "turn_id": "1" } });
    let mut client = Client::script(&[], UNTIL_READY);
    for id in 1..=4 {
        let params = json!({ "name": "status", "arguments": {}, "_meta": meta });
        client.request(id, "tools/call", params);
        assert_eq!(text(&client.answer(id)).starts_with("[LOOP DETECTED]"), id > 2);
    }
    assert_eq!(client.executions(""), 2);
}

#[test]
fn five_failures_in_a_turn_that_the_client_names_end_the_turn() {
    let meta =
        |turn: &str| json!({ "x-codex-turn-metadata": { "session_id": "s", "turn_id": turn } });
    let mut client = Client::script(&[], BROKEN);
    let said = failures(&mut client, 6, &meta("1"));
    assert_eq!(said[..4], ["broken"; 4]);
    let limit = "[TOOL ERROR LIMIT] 5 tool failures in this turn. \nStopping tool execution. Review your approach before continuing.";
    assert_eq!(said[4..], [format!("broken\n{limit}"), limit.to_owned()]);
    assert_eq!(client.executions(""), 5);
    assert_eq!(failures(&mut client, 1, &meta("2")), ["broken"]);
}

#[test]
fn what_becomes_of_loops_is_the_user_s_to_say() {
    for (loops, calls) in [("off", 9), ("note", 9), ("block", 9), ("strict", 5)] {
        let mut client = Client::script(&["--loops", loops], BROKEN);
        let said = failures(&mut client, 9, &json!({}));
        assert_eq!(client.executions(""), calls, "{loops}: {said:?}");
        assert_eq!(said[4] == "broken", loops == "off", "{loops}: {said:?}");
        for id in 10..15 {
            client.ask(id, "t", json!({}));
        }
        let more = if loops == "strict" { 0 } else { 5 };
        assert_eq!(client.executions("") - calls, more, "{loops}");
    }
}

#[test]
fn the_configuration_says_what_becomes_of_loops_and_how_much_a_tool_may_fail() {
    let config = ledger().with_extension("loops.toml");
    let tools =
        "[tools.t1]\nloops = { max_identical = 4 }\n[tools.fine]\nloops = { repeats = 3 }\n";
    fs::write(&config, format!("[loops]\nmode = \"block\"\nmax_failures_per_turn = 2\n{tools}"))
        .unwrap();
    let mut client = Client::script(&["--config", config.to_str().unwrap()], BROKEN);
    for id in 1..=6 {
        let said = text(&client.ask(id, "t1", json!({})));
        assert_eq!(said.contains("[TOOL ERRORS]"), id >= 2, "{said}");
        assert_eq!(said.contains("[LOOP DETECTED]"), id >= 4, "{said}");
    }
    assert_eq!(client.executions(""), 6);
    for id in 7..=9 {
        assert_eq!(text(&client.ask(id, "fine", json!({}))).contains("[LOOP WARNING]"), id == 9);
    }
    fs::write(&config, "[loops]\nmode = \"blok\"\n").unwrap();
    let mut client = Client::script(&["--config", config.to_str().unwrap()], BROKEN);
    assert_eq!(client.wait().code(), Some(1));
    assert!(client.stderr().contains("\"block\""));
    fs::remove_file(config).unwrap();
}

#[test]
fn notes_stand_behind_a_failure_s_words_in_blocks_of_their_own() {
    let mut client = Client::script(&["--timeout", "300ms"], "while read -r line; do :; done");
    for id in 1..=5 {
        client.call(id, "hangs", json!({ "n": id }));
    }
    for _ in 1..=5 {
        let answer = client.receive();
        let blocks = answer["result"]["content"].as_array().unwrap();
        let own = blocks[0]["text"].as_str().unwrap();
        assert!(!own.contains("[TOOL ERRORS]") && own.contains("may have run"), "{own}");
        for note in &blocks[1..] {
            let note = note["text"].as_str().unwrap();
            assert!(note.starts_with('[') && !note.contains("may have run"), "{note}");
        }
    }
}

/// Answers by the name of the tool: `edit` succeeds, `test` fails, `book` is called wrongly.
const SERVER: &str = r#"
    while read -r line; do
        id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
        case "$line" in
            *'"edit"'*) end='"result":{"content":[{"type":"text","text":"edited"}]}' ;;
            *'"test"'*) end='"result":{"content":[{"type":"text","text":"1 test failed"}],"isError":true}' ;;
            *) end='"error":{"code":-32602,"message":"Missing required parameter: to"}' ;;
        esac
        echo "$line" >> "$LEDGER"
        echo "{\"jsonrpc\":\"2.0\",\"id\":$id,$end}"
    done"#;

#[test]
fn a_test_that_fails_after_each_edit_is_none() {
    let mut client = Client::script(&[], SERVER);
    for round in 0..8 {
        assert_eq!(text(&client.ask(2 * round, "edit", json!({ "new": round }))), "edited");
        assert_eq!(text(&client.ask(2 * round + 1, "test", json!({}))), "1 test failed");
    }
}

/// By its words, and by JSON-RPC's code alone.
#[test]
fn a_call_that_the_server_s_schema_refuses_is_one() {
    for server in [SERVER.to_owned(), SERVER.replace("Missing required parameter: to", "no")] {
        let mut client = Client::script(&[], &server);
        for id in 1..=3 {
            let answer = client.ask(id, "book", json!({})).to_string();
            assert_eq!(answer.contains("[LOOP DETECTED]"), id > 1, "{answer}");
        }
        assert_eq!(client.executions(""), 2);
    }
}

/// The server never hears of a call that fails the schema that its user declares.
#[test]
fn a_call_that_the_catalog_s_schema_refuses_is_one_and_never_reaches_the_server() {
    let catalog = ledger().with_extension("schema.toml");
    let schema = r#"{ required = ["to"], properties = { to = { type = "string" }, seats = { type = "integer" } } }"#;
    fs::write(&catalog, format!("[tools.book]\ninput_schema = {schema}\n")).unwrap();
    let mut client = Client::script(&["--catalog", catalog.to_str().unwrap()], SERVER);
    for id in 1..=3 {
        let answer = client.ask(id, "book", json!({ "seats": "two" }));
        let said = text(&answer);
        assert_eq!(answer["result"]["isError"], true);
        assert_eq!(answer["result"]["_meta"]["tool-reliability/error"]["ran"], "no");
        if id < 3 {
            let faults = "Missing required parameter: to; Expected integer but received string at /seats\n[NON-RETRYABLE]";
            assert!(said.starts_with(faults), "{said}");
        }
        assert_eq!(said.contains("[LOOP DETECTED]"), id > 1, "{said}");
    }
    client.call(4, "book", json!({ "to": "LIS", "seats": 2 }));
    assert!(client.answer(4)["error"]["message"].is_string());
    fs::remove_file(catalog).unwrap();
    assert_eq!(client.executions(""), 1);
}
