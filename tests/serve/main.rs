//! `tool-guard serve` as hosts that are not Rust see it: driven by curl, Node and Python, in front of a real HTTP
//! tool and of commands.
#![cfg(target_os = "linux")]

mod checks;
mod foreign;
mod front;
mod pages;
mod streams;
mod tls;

use front::{HttpTool, Shop, lines, until};
use serde_json::{Value, json};
use std::{process::Command, thread};

const CLIENTS: [&str; 2] = ["client.mjs", "client.py"];

fn shop(tool: &HttpTool) -> Shop {
    Shop::new(&format!(
        r#"
        [retry]
        base_ms = 1
        [loops]
        enabled = false
        [tools.pay]
        effect = "mutating"
        url = "{at}/pay"
        headers = {{ authorization = "Bearer ${{SHOP_TOKEN}}" }}
        [tools.transfer]
        effect = "mutating"
        url = "{at}/transfer"
        method = "PUT"
        capabilities = ["idempotency"]
        [tools.look]
        effect = "read_only"
        url = "{at}/look"
        [tools.tail]
        effect = "read_only"
        capabilities = ["streaming"]
        url = "{at}/tail"
        [tools.down]
        effect = "mutating"
        url = "http://127.0.0.1:1/nobody"
        [tools.echo]
        effect = "read_only"
        command = ["cat"]
        [tools.fails]
        effect = "read_only"
        command = ["sh", "-c", "echo no such file >&2; exit 3"]
        [tools.hangs]
        timeout_ms = 300
        command = ["sh", "-c", "sleep 7654 & sleep 7654"]
        "#,
        at = tool.at
    ))
}

fn request(tool: &str, params: &Value, key: &str) -> Value {
    json!({"tool": tool, "action": "", "params": params, "idempotencyKey": key})
}

#[test]
fn tr_02_a_payment_that_three_clients_send_at_once_is_made_once() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    let front = shop.open(&[]);
    let params = json!({"cents": 500, "sleepMs": 1500});
    let answers: Vec<Value> = thread::scope(|scope| {
        let curl = scope.spawn(|| front.call(&request("pay", &params, "order-42")));
        let others = CLIENTS.map(|client| {
            let (front, params) = (&front, &params);
            scope.spawn(move || front.by(client, "pay", params, "order-42"))
        });
        let others = others.map(|one| one.join().unwrap());
        others.into_iter().chain([curl.join().unwrap()]).collect()
    });
    for answer in &answers {
        assert_eq!(
            (&answer["status"], &answer["result"]["paid"]),
            (&json!("success"), &json!(true)),
            "{answer}"
        );
    }
    assert_eq!(tool.count(), 1, "one payment");
    assert_eq!(answers.iter().filter(|it| it["fromCache"] == false).count(), 1);
    let (_, headers, seen) = tool.seen.lock().unwrap()[0].clone();
    assert_eq!(
        (headers["authorization"].to_str().unwrap(), &seen),
        ("Bearer s3cret-of-the-shop", &params)
    );
    // Neither the token nor the params are logged.
    assert!(!shop.log().contains("s3cret"));
}

#[test]
fn tr_05_a_failing_read_is_retried_and_a_payment_that_may_have_run_is_not() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    let front = shop.open(&[]);
    for (n, client) in CLIENTS.into_iter().enumerate() {
        let params = json!({"n": n, "statuses": [503, 503, 200]});
        let answer = front.by(client, "look", &params, &format!("look-{n}"));
        assert_eq!(
            (&answer["status"], &answer["attempts"]),
            (&json!("success"), &json!(3)),
            "{answer}"
        );
    }
    let before = tool.count();
    let answer = front.call(&request("pay", &json!({"statuses": [503, 200]}), "p"));
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["ran"]),
        (&json!("http_503"), &json!("unknown"))
    );
    assert_eq!((&answer["error"]["retryable"], tool.count()), (&json!(false), before + 1));
    // Nothing was sent to a server that is not there, so it may be tried again.
    let answer = front.call(&request("down", &json!({}), "d"));
    assert_eq!(
        (&answer["error"]["ran"], &answer["attempts"]),
        (&json!("no"), &json!(4)),
        "{answer}"
    );
    // A refusal by 4xx is final.
    let answer = front.call(&request("look", &json!({"statuses": [404]}), "l"));
    assert_eq!((&answer["error"]["code"], &answer["attempts"]), (&json!("http_404"), &json!(1)));
}

#[test]
fn tr_08_the_sixth_payment_meets_an_open_breaker() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    let front = shop.open(&[]);
    for n in 0..5 {
        front.call(&request("pay", &json!({"n": n, "statuses": [500]}), &format!("k{n}")));
    }
    for client in CLIENTS {
        let answer = front.by(client, "pay", &json!({"n": 9}), client);
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["ran"]),
            (&json!("circuit_open"), &json!("no"))
        );
    }
    assert_eq!(tool.count(), 5);
}

#[test]
fn ut_03_silent_failures_and_exit_codes_are_failures() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    let front = shop.open(&[]);
    let params = json!({"answer": {"ok": false, "error": "card declined"}});
    let answer = front.by("client.mjs", "pay", &params, "a");
    assert_eq!(
        (&answer["status"], &answer["error"]["message"]),
        (&json!("error"), &json!("card declined"))
    );
    let answer = front.by("client.py", "fails", &json!({}), "b");
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["message"]),
        (&json!("nonzero_exit"), &json!("Exit code 3: no such file"))
    );
    assert_eq!(answer["error"]["ran"], "yes");
    let answer = front.call(&request("echo", &json!({"a": [1, "é"]}), "c"));
    assert_eq!(answer["result"], json!({"a": [1, "é"]}));
    let answer = front.call(&request("nobody", &json!({}), "d"));
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["ran"]),
        (&json!("no_such_tool"), &json!("no")),
        "{answer}"
    );
    assert_eq!(answer["attempts"], 0, "{answer}");
}

#[test]
fn a_command_that_takes_too_long_is_killed_with_its_group() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    let front = shop.open(&[]);
    let answer = front.call(&request("hangs", &json!({}), "h"));
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["ran"]),
        (&json!("timeout"), &json!("unknown"))
    );
    let sleeps = || {
        let found = Command::new("pgrep").args(["-f", "sleep 7654"]).output().unwrap();
        !found.stdout.is_empty()
    };
    until(|| !sleeps());
}

#[test]
fn ut_09_a_running_call_is_cancelled_over_the_wire() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    let front = shop.open(&[]);
    let slow = json!({
        "tool": "pay", "action": "", "params": {"sleepMs": 60000}, "idempotencyKey": "k",
        "cancellationId": "stop-1", "timeout": 60000,
    });
    thread::scope(|scope| {
        let call = scope.spawn(|| front.call(&slow));
        until(|| tool.count() == 1);
        let order = |session: &str| {
            let session = format!("x-tool-guard-session: {session}");
            let body = json!({"cancel": "stop-1"}).to_string();
            let all = ["-H", "content-type: application/json", "-H", &session, "-d", &body];
            serde_json::from_str::<Value>(&front.curl("/cancel", &all).1).unwrap()["cancelled"]
                .clone()
        };
        assert_eq!(order("another"), 0);
        let plain = json!({"cancel": "stop-1"}).to_string();
        let (status, said) =
            front.curl("/cancel", &["-H", "content-type: application/json", "-d", &plain]);
        assert_eq!(
            (status, serde_json::from_str::<Value>(&said).unwrap()["cancelled"].clone()),
            (200, json!(1))
        );
        let answer = call.join().unwrap();
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["ran"]),
            (&json!("cancelled"), &json!("unknown"))
        );
    });
    // It may have run, so it is not run again, neither before the end is recorded nor after it.
    let again = || front.call(&request("pay", &json!({"sleepMs": 60000}), "k"));
    until(|| again()["error"]["code"] == "outcome_unknown");
    assert_eq!(tool.count(), 1);
}

#[test]
fn ut_06_the_capability_query_names_the_tools() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    let front = shop.open(&[]);
    let (status, said) = front.curl("/tools", &[]);
    let said: Value = serde_json::from_str(&said).unwrap();
    let tools = said["tools"].as_array().unwrap();
    let of = |name: &str| tools.iter().find(|tool| tool["tool"] == name).unwrap();
    assert_eq!((status, tools.len()), (200, 8));
    assert_eq!(
        (&of("tail")["capabilities"], &of("tail")["effect"]),
        (&json!(["streaming"]), &json!("read_only"))
    );
    assert_eq!(
        (&of("hangs")["timeoutMs"], &of("hangs")["effect"]),
        (&json!(300), &json!("mutating"))
    );
}

#[test]
fn a_key_aware_tool_gets_the_key_and_its_own_method() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    let front = shop.open(&[]);
    let traced = json!({
        "tool": "transfer", "action": "", "params": {}, "idempotencyKey": "t-1",
        "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331",
    });
    front.call(&traced);
    front.call(&request("pay", &json!({}), "p-1"));
    let seen = tool.seen.lock().unwrap().clone();
    // Not the caller's key: another session may have the same one.
    let key = seen[0].1["idempotency-key"].to_str().unwrap();
    let digits = key.trim_matches('"');
    assert_eq!((seen[0].0.as_str(), digits.len(), key.len()), ("PUT", 64, 66), "{key}");
    assert!(digits.bytes().all(|digit| digit.is_ascii_hexdigit()), "{key}");
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    assert_eq!(seen[0].1["traceparent"], trace);
    assert_eq!((seen[1].0.as_str(), seen[1].1.get("idempotency-key")), ("POST", None));
}

#[test]
fn a_front_that_is_killed_in_mid_payment_pays_once() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    let mut front = shop.open(&[]);
    let payment = || request("pay", &json!({"cents": 500, "sleepMs": 3000}), "order-42");
    thread::scope(|scope| {
        let at = &front.at;
        let body = payment().to_string();
        let lost = scope.spawn(move || {
            let all = ["-s", "-m", "60", "-H", "content-type: application/json", "-d", &body];
            Command::new("curl").args(all).arg(format!("{at}/call")).status().unwrap()
        });
        until(|| tool.count() == 1);
        // SIGKILL: nothing can be cleaned up.
        let id = front.child.id().to_string();
        assert!(Command::new("kill").args(["-9", &id]).status().unwrap().success());
        assert!(!lost.join().unwrap().success());
    });
    front.child.wait().unwrap();
    let front = shop.open(&[]);
    for client in CLIENTS {
        let params = json!({"cents": 500, "sleepMs": 3000});
        let answer = front.by(client, "pay", &params, "order-42");
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["ran"]),
            (&json!("outcome_unknown"), &json!("unknown")),
            "{answer}"
        );
    }
    assert_eq!(tool.count(), 1, "one payment");
}

#[test]
fn the_same_as_lines_on_standard_input_and_output() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    let said = lines(
        shop.command(&["--stdio"]),
        &[
            json!({"tool": "echo", "action": "", "params": {"n": 1}, "requestId": "a"}),
            json!({"tool": "tail", "action": "", "params": {"lines": [1]}, "requestId": "b", "hints": {"preferStreaming": true}}),
            json!({"tool": 7, "requestId": "c"}),
            json!({"cancel": "nothing"}),
        ],
    );
    let of = |id: &str| said.iter().filter(|it| it["requestId"] == id).cloned().collect::<Vec<_>>();
    assert_eq!(of("a")[0]["result"], json!({"n": 1}));
    let chunks: Vec<_> = of("b").iter().map(|it| it["status"].clone()).collect();
    assert_eq!(chunks, ["partial", "success"]);
    assert_eq!(of("c")[0]["error"]["code"], "invalid_envelope");
    assert!(said.contains(&json!({"cancel": "nothing", "cancelled": 0})));
}

#[test]
fn what_cannot_be_served_is_said_at_the_start() {
    let fails = |config: &str, options: &[&str]| {
        let output = Shop::new(config).command(options).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    for (config, why) in [
        ("", "nothing can be called"),
        ("[tools.a]\nurl = \"ftp://x\"", "an address that begins with https:// or http://"),
        ("[tools.a]\nurl = \"http://x\"\ncommand = [\"cat\"]", "either `url` or `command`"),
        ("[tools.a]\nmethod = \"PUT\"", "a tool with a `url`"),
        ("[tools.a]\ncommand = [\"no-such-program\"]", "is not there"),
        ("[tools.a]\nurl = \"http://x\"\nheaders = { a = \"${NOT_SET}\" }", "NOT_SET"),
    ] {
        let said = fails(config, &[]);
        assert!(said.contains(why), "{config}: {said}");
    }
    let tool = "[tools.a]\ncommand = [\"cat\"]";
    for options in [&["--listen", "0.0.0.0:0"][..], &["--listen", "0.0.0.0:0", "--behind-tls"]] {
        assert!(fails(tool, options).contains("give --token-file and --behind-tls"));
    }
}
