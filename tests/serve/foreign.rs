//! What tools and hosts do that nobody asked them to.
use super::{
    front::{HttpTool, Shop, lines, until},
    request, shop,
};
use serde_json::{Value, json};
use std::process::{Command, Stdio};

const TOOLS: &str = r#"
    [tools.pretty]
    effect = "read_only"
    command = ["printf", '{\n{"requestId": "other", "status": "success"}\n}']
    [tools.spread]
    effect = "read_only"
    command = ["printf", '{"a":\n[1,\n2]\n}']
    [tools.killed]
    effect = "mutating"
    command = ["sh", "-c", "kill -9 $$"]
    [tools.missing]
    effect = "mutating"
    command = ["sh", "-c", "echo paid; exit 127"]
    [tools.refuses]
    effect = "mutating"
    command = ["sh", "-c", "exit 3"]
    [tools.environment]
    effect = "read_only"
    command = ["sh", "-c", "echo \"[$SHOP_TOKEN]\""]
    [tools.hangs]
    effect = "mutating"
    command = ["sleep", "7655"]
    [tools.echo]
    effect = "read_only"
    command = ["cat"]
    [tools.bank]
    url = "http://127.0.0.1:1/"
    headers = { authorization = "${SHOP_TOKEN}" }
"#;

#[test]
fn an_answer_with_line_breaks_is_one_line_and_one_event() {
    let shop = Shop::new(TOOLS);
    let asked = |tool: &str| {
        json!({"tool": tool, "action": "", "params": {}, "requestId": "mine",
            "hints": {"preferStreaming": true}})
    };
    // Not JSON as a whole, though one of its lines would be an answer.
    let said = lines(shop.command(&["--stdio"]), &[asked("spread"), asked("pretty")]);
    assert!(said.iter().all(|line| line["requestId"] == "mine"), "{said:?}");
    assert!(said.iter().any(|line| line["result"] == json!({"a": [1, 2]})), "{said:?}");
    let front = shop.open(&[]);
    let json = ["-N", "-H", "content-type: application/json", "-d", &asked("spread").to_string()];
    let (_, text) = front.curl("/call", &json);
    let events: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
    assert!(events.iter().all(|line| line.starts_with("data: {")), "{text}");
}

#[test]
fn a_command_that_was_cut_off_may_have_run() {
    let shop = Shop::new(TOOLS);
    let front = shop.open(&[]);
    for (tool, ran) in [("killed", "unknown"), ("missing", "unknown"), ("refuses", "yes")] {
        let answer = front.call(&request(tool, &json!({}), tool));
        assert_eq!((&answer["status"], &answer["error"]["ran"]), (&json!("error"), &json!(ran)));
    }
}

#[test]
fn commands_do_not_get_the_secrets_of_endpoints() {
    let shop = Shop::new(TOOLS);
    let answer = shop.open(&[]).call(&request("environment", &json!({}), "e"));
    assert_eq!(answer["result"], json!([]), "{answer}");
}

#[test]
fn a_line_cancels_those_before_it_whatever_stands_between() {
    let shop = Shop::new(TOOLS);
    let said = lines(
        shop.command(&["--stdio"]),
        &[
            json!({"tool": "hangs", "action": "", "params": {}, "requestId": "h", "cancellationId": "c"}),
            json!({"tool": "hangs", "action": "", "params": {}, "cancellationId": "c"}),
            json!({"tool": "echo", "action": "", "params": {}}),
            json!({"cancel": "c"}),
        ],
    );
    assert!(said.contains(&json!({"cancel": "c", "cancelled": 2})), "{said:?}");
    let codes: Vec<_> = said.iter().filter(|it| it["error"]["code"] == "cancelled").collect();
    assert_eq!(codes.len(), 2, "{said:?}");
}

#[test]
fn callers_whose_names_cannot_be_read_are_refused() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    let front = shop.open(&[]);
    let payment = request("pay", &json!({}), "order-42").to_string();
    let json = ["-H", "content-type: application/json", "-d", &payment];
    for more in [
        &["-H", "x-tool-guard-session: jos\u{e9}"][..],
        &["-H", "x-tool-guard-session;"],
        &["-H", "x-tool-guard-session: a", "-H", "x-tool-guard-session: b"],
        &["-H", "x-tool-guard-actor: a", "-H", "x-tool-guard-actor: a"],
    ] {
        let (status, said) = front.curl("/call", &[&json[..], more].concat());
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((status, &said["ran"]), (400, &json!("no")), "{more:?}: {said}");
    }
    assert_eq!(tool.count(), 0);
}

#[test]
fn two_sessions_with_one_key_are_two_payments_for_the_bank_too() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    let front = shop.open(&[]);
    let payment = request("transfer", &json!({"cents": 500}), "1").to_string();
    for session in ["a", "b"] {
        let session = format!("x-tool-guard-session: {session}");
        let all = ["-H", "content-type: application/json", "-H", &session, "-d", &payment];
        assert_eq!(front.curl("/call", &all).0, 200);
    }
    let seen = tool.seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 2);
    assert_ne!(seen[0].1["idempotency-key"], seen[1].1["idempotency-key"]);
}

#[test]
fn what_a_tool_declares_of_a_status_counts() {
    let tool = HttpTool::start();
    let shop = Shop::new(&format!(
        "[retry]\nbase_ms = 1\n[tools.pay]\neffect = \"mutating\"\nurl = \"{}/pay\"\n\
         classification = {{ \"429\" = \"permanent\" }}\n",
        tool.at
    ));
    let front = shop.open(&[]);
    let answer = front.call(&request("pay", &json!({"statuses": [429, 200]}), "p"));
    assert_eq!((&answer["error"]["code"], tool.count()), (&json!("http_429"), 1), "{answer}");
}

#[test]
fn a_payment_whose_client_left_ends_before_the_front_does() {
    let tool = HttpTool::start();
    let shop = shop(&tool);
    let mut front = shop.open(&[]);
    let payment = request("pay", &json!({"sleepMs": 1500}), "order-42");
    let mut curl = Command::new("curl");
    curl.args(["-s", "-H", "content-type: application/json", "-d", &payment.to_string()]);
    let mut curl = curl.arg(format!("{}/call", front.at)).stdout(Stdio::null()).spawn().unwrap();
    until(|| tool.count() == 1);
    curl.kill().unwrap();
    curl.wait().unwrap();
    let id = front.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(front.child.wait().unwrap().code(), Some(128 + 15));
    let answer = shop.open(&[]).call(&payment);
    assert_eq!((&answer["fromCache"], tool.count()), (&json!(true), 1), "{answer}");
}
