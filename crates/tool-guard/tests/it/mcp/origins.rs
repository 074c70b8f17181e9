//! A tool that reaches many hosts: the dead ones keep nobody from the others.
use super::client::{Client, ledger, text};
use serde_json::{Value, json};
use std::fs;

/// The server's part: `fetch` fails as undici does where the host is called `dead`.
const SERVER: &str = r#"
    while read -r line; do
        id=$(printf %s "$line" | sed 's/.*"id":\([^,]*\),.*/\1/')
        case "$line" in
            *tools/list*) result='{"tools":[{"name":"fetch","annotations":{"readOnlyHint":true}}]}' ;;
            *dead*) result='{"content":[{"type":"text","text":"fetch failed: connect ECONNREFUSED"}],"isError":true}' ;;
            *) result='{"content":[{"type":"text","text":"page"}]}' ;;
        esac
        case "$line" in
            *tools/call*) printf '%s\n' "$line" | sed 's/.*"url":"\([^"]*\)".*/\1/' >>"$LEDGER" ;;
        esac
        printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
    done"#;

fn fetch(client: &mut Client, id: u32, url: &str) -> Value {
    client.ask(id, "fetch", json!({ "url": url, "max_length": 5000 }))
}

const DEAD: [&str; 2] = ["http://dead-1.example:8080", "https://dead-2.example"];

/// Fails once at each dead host, with all of its retries, and then reads from others.
fn two_dead_and_seven_well(client: &mut Client) -> Vec<Value> {
    client.list_tools();
    for (host, id) in DEAD.iter().zip(1..) {
        let failed = fetch(client, id, &format!("{host}/page"));
        assert!(text(&failed).contains("ECONNREFUSED"), "{failed}");
        assert_eq!(client.executions(host), 4);
    }
    (10..17).map(|id| fetch(client, id, &format!("https://well-{id}.example/page"))).collect()
}

#[test]
fn two_dead_hosts_refuse_no_call_of_another() {
    let mut client = Client::script(&[], SERVER);
    for answer in two_dead_and_seven_well(&mut client) {
        assert_eq!(text(&answer), "page", "{answer}");
    }
    // The same host fails again, under another path: now its breaker opens, and no other.
    let failed = fetch(&mut client, 20, "http://dead-1.example:8080/another");
    assert!(text(&failed).contains("ECONNREFUSED"), "{failed}");
    let before = client.executions(DEAD[0]);
    assert_eq!(before, 8);
    let refused = fetch(&mut client, 21, "HTTP://Dead-1.example:8080/a-third");
    assert_eq!(refused["result"]["_meta"]["tool-reliability/error"]["code"], "circuit_open");
    assert!(text(&refused).contains("fetch http://dead-1.example:8080 is OPEN"), "{refused}");
    assert_eq!(client.executions("HTTP"), 0);
    for (id, host) in [(22, "http://dead-1.example"), (23, "https://well-10.example")] {
        let answer = fetch(&mut client, id, &format!("{host}/page"));
        let code = &answer["result"]["_meta"]["tool-reliability/error"]["code"];
        assert_ne!(code, "circuit_open", "{answer}");
    }
}

#[test]
fn a_catalog_may_give_the_tool_one_breaker_for_all() {
    let catalog = ledger().with_extension("toml");
    fs::write(&catalog, "[tools.fetch]\neffect = \"read_only\"\nbreaker = { hint = \"tool\" }\n")
        .unwrap();
    let mut client = Client::script(&["--catalog", catalog.to_str().unwrap()], SERVER);
    for answer in two_dead_and_seven_well(&mut client) {
        assert_eq!(
            answer["result"]["_meta"]["tool-reliability/error"]["code"], "circuit_open",
            "{answer}"
        );
    }
    fs::remove_file(catalog).unwrap();
}
