//! The proxy without processes: lines in, lines out.
mod asks;
mod bounds;
mod ends;
mod fuzz;
mod late;
mod pending;
mod refused;
mod reused;

use super::*;
use crate::{
    engine::{in_flight::InFlight, limits::Limits, setup, stores::Records},
    wire::lines::Oversized,
};
use futures_util::FutureExt;
use std::time::Duration;
use tokio::{task::yield_now, time::Instant};
use tool_reliability::{
    breaker::Registry,
    config::Config,
    idempotency::{DerivedKeys, Handle, RecordState},
    loopguard,
    telemetry::Signals,
};
use tr_core::ToolOutcome;

/// What ids of the guard's own begin with.
const PREFIX: &str = "guards-own-";

struct Bench {
    proxy: Proxy,
    records: Handle<ToolOutcome>,
    breakers: Registry,
    begun: Instant,
}

impl Bench {
    fn new(mode: Mode) -> Self {
        Self::within(mode, Limits::new(Some(Duration::from_secs(50)), None))
    }

    fn within(mode: Mode, limits: Limits) -> Self {
        let (in_flight, keys) = (InFlight::new(PREFIX), DerivedKeys::Off);
        let (mut config, records) = (Config::default(), Records::default());
        config.rollout = mode.rollout();
        let told = Signals::builder().build().unwrap();
        let live =
            setup::live(config, keys, loopguard::Mode::Strict, records, &told, |it| it).unwrap();
        let (records, breakers) = (live.stack().records(), live.stack().breakers().clone());
        let watches = mode.rollout().is_some();
        let wire = Arc::new(ServerLink::new(in_flight, limits, watches, records.clone()));
        let stack = live.stack().service(ServerTool(wire.clone()));
        let proxy = Proxy::new(mode, wire, stack, Client::default());
        Self { proxy, records, breakers, begun: Instant::now() }
    }

    fn client(&mut self, line: &[u8]) {
        self.proxy.on_client(&Item::Line(Bytes::copy_from_slice(line)));
    }

    fn server(&mut self, line: &[u8]) {
        self.proxy.on_server(&Item::Line(Bytes::copy_from_slice(line)));
    }

    /// Lets all calls go as far as they can.
    async fn settle(&mut self) {
        let mut idle = 0;
        while idle < 2 {
            match self.proxy.calls.step().now_or_never() {
                Some(finished) => {
                    self.proxy.on_step(finished);
                    idle = 0;
                }
                None if self.proxy.sweeper.round().now_or_never().is_some() => idle = 0,
                None => idle += 1,
            }
            yield_now().await;
        }
    }

    fn client_gets(&mut self) -> String {
        String::from_utf8(self.proxy.to_client.written()).unwrap()
    }

    fn server_gets(&mut self) -> String {
        String::from_utf8(self.proxy.to_server.written()).unwrap()
    }

    /// Lets a list pass by that says `read` only reads.
    fn list(&mut self) {
        self.client(b"{\"id\":\"list\",\"method\":\"tools/list\"}\n");
        self.server(b"{\"jsonrpc\":\"2.0\",\"id\":\"list\",\"result\":{\"tools\":[{\"name\":\"read\",\"annotations\":{\"readOnlyHint\":true}}]}}\n");
        self.client_gets();
        self.server_gets();
    }
}

fn call(id: &str, tool: &str) -> String {
    format!("{{\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"{tool}\"}}}}\n")
}

/// A payment that runs once.
fn keyed(id: &str) -> String {
    format!(
        "{{\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"pay\",\"_meta\":{{\"idempotencyKey\":\"k\"}}}}}}\n"
    )
}

fn done(id: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[]}}}}\n")
}

#[tokio::test(start_paused = true)]
async fn a_call_keeps_its_place_however_many_others_wake_up() {
    let mut bench = Bench::new(Mode::Enforce);
    for id in 0..1000 {
        bench.client(call(&id.to_string(), "pay").as_bytes());
    }
    bench.settle().await;
    bench.server_gets();
    for id in 0..1000 {
        bench.server(done(&id.to_string()).as_bytes());
    }
    // One step between two lines, as the loop has it.
    let (first, second) = (call("\"a\"", "pay"), "{\"id\":\"b\",\"method\":\"ping\"}\n");
    bench.client(first.as_bytes());
    if let Some(finished) = bench.proxy.calls.step().now_or_never() {
        bench.proxy.on_step(finished);
    }
    bench.client(second.as_bytes());
    assert_eq!(bench.server_gets(), first + second);
}

#[tokio::test(start_paused = true)]
async fn what_follows_a_line_that_never_ended_is_a_line_of_its_own() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.client(call("1", "pay").as_bytes());
    bench.server(b"{\"id\":1,\"resu");
    bench.proxy.on_server_ended(None);
    bench.settle().await;
    let said = bench.client_gets();
    let (torn, answer) = said.split_once('\n').unwrap();
    assert_eq!(torn, "{\"id\":1,\"resu");
    let answer: serde_json::Value = serde_json::from_str(answer).unwrap();
    assert_eq!(answer["id"], 1);
    assert!(answer.to_string().contains("may have run"));
}

#[tokio::test(start_paused = true)]
async fn an_id_that_is_used_again_gets_its_own_answer() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.client(call("1", "pay").as_bytes());
    bench.settle().await;
    tokio::time::advance(Duration::from_secs(51)).await;
    bench.settle().await;
    assert!(bench.client_gets().contains("Tool timeout after 50s"));
    bench.server_gets();

    bench.client(call("1", "ship").as_bytes());
    bench.settle().await;
    let line = bench.server_gets();
    assert_eq!(line, call(&format!("\"{PREFIX}1\""), "ship"));
    bench.server(done("1").replace("[]", "[\"late\"]").as_bytes());
    bench.settle().await;
    assert_eq!(bench.client_gets(), "", "the answer to the first call is late");
    bench.server(done(&format!("\"{PREFIX}1\"")).as_bytes());
    bench.settle().await;
    assert_eq!(bench.client_gets(), done("1"));
}

#[tokio::test(start_paused = true)]
async fn the_client_never_sees_an_id_of_ours() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.list();
    bench.client(
        br#"{"id":1,"method":"tools/call","params":{"name":"read","_meta":{"progressToken":"t"}}}"#,
    );
    bench.settle().await;
    bench.server(
        br#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"connection refused"}}"#,
    );
    bench.settle().await;
    tokio::time::advance(Duration::from_secs(5)).await;
    bench.settle().await;
    assert!(bench.server_gets().contains(PREFIX));
    let ours = format!("\"{PREFIX}1\"");
    for _ in 0..2 {
        bench.server(done(&ours).as_bytes());
        bench.settle().await;
    }
    let progress = format!(
        "{{\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":{ours},\"progress\":1}}}}\n"
    );
    bench.server(progress.as_bytes());
    assert_eq!(bench.client_gets(), done("1"));
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_a_batch_or_with_bad_bytes_is_an_answer() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.client(call("1", "pay").as_bytes());
    bench.client(call("2", "pay").as_bytes());
    bench.settle().await;
    let note = "{\"method\":\"notifications/message\",\"params\":{}}";
    bench.server(format!("[{note},{}]\n", done("1").trim()).as_bytes());
    bench.server(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"content\":[\"\xff\"]}}\n");
    bench.settle().await;
    let said = bench.client_gets();
    let answer_2 = done("2").replace("[]", "[\"\u{fffd}\"]");
    assert_eq!(said, format!("{note}\n{}{answer_2}", done("1")));
    let batch = format!("[{note}]\n");
    bench.server(batch.as_bytes());
    assert_eq!(bench.client_gets(), batch);
    assert!(bench.proxy.calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_with_an_id_that_cannot_be_matched_is_answered() {
    let mut bench = Bench::new(Mode::Enforce);
    for id in ["null", "true", "{}", "[1]", "1e400"] {
        bench.client(call(id, "pay").as_bytes());
        let answer: serde_json::Value = serde_json::from_str(&bench.client_gets()).unwrap();
        assert_eq!(answer["error"]["code"], -32600, "{id}");
        assert!(answer["id"].is_null() && bench.server_gets().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn ids_are_matched_by_what_they_mean() {
    for (sent, answered) in [
        ("1", "1.0"),
        ("\"a\"", "\"\\u0061\""),
        ("12345678901234567890", "12345678901234567890"),
        ("-0", "0"),
    ] {
        let mut bench = Bench::new(Mode::Enforce);
        bench.client(call(sent, "pay").as_bytes());
        bench.settle().await;
        bench.server(done(answered).as_bytes());
        bench.settle().await;
        assert_eq!(bench.client_gets(), done(answered), "the server's spelling, as without us");
        assert!(bench.proxy.calls.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_that_the_tool_did_not_run_frees_its_key() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.client(keyed("1").as_bytes());
    bench.settle().await;
    tokio::time::advance(Duration::from_secs(51)).await;
    bench.settle().await;
    bench.client(keyed("2").as_bytes());
    bench.settle().await;
    assert!(bench.client_gets().contains("outcome_unknown"));
    bench.server(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"isError\":true,\"_meta\":{\"tool-reliability/error\":{\"ran\":\"no\"}}}}\n");
    bench.server_gets();
    bench.client(keyed("3").as_bytes());
    bench.settle().await;
    assert_eq!(bench.server_gets(), keyed("3"));
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_settles_its_own_run_only() {
    let mut bench = Bench::new(Mode::Enforce);
    for id in ["1", "2"] {
        bench.client(keyed(id).as_bytes());
        bench.settle().await;
        assert_eq!(bench.server_gets(), keyed(id));
        tokio::time::advance(Duration::from_secs(51)).await;
        bench.settle().await;
        assert!(bench.client_gets().contains("may have run"));
        bench.server_gets();
        let key = bench.records.unknown()[0].hashed_key().unwrap();
        // Somebody takes it that the first one was never made.
        assert!(id == "2" || bench.records.clear(&key));
    }
    for (id, unknown) in [("1", 1), ("2", 0)] {
        bench.server(done(id).as_bytes());
        assert_eq!(bench.records.unknown().len(), unknown, "after the answer to {id}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_with_a_tool_call_is_refused_by_the_ids_of_its_requests() {
    let mut bench = Bench::new(Mode::Enforce);
    let ping = |id: &str| format!("{{\"id\":{id},\"method\":\"ping\"}}");
    let (call_1, call_2) = (call("1.0", "pay"), call("[2]", "pay"));
    let note = "{\"method\":\"notifications/initialized\"}";
    let (answer, ping, no_message) = (done("\"b\""), ping("\"c\""), "7");
    let batch = [&call_1, note, &answer, &ping, no_message, &call_2].map(str::trim).join(",");
    bench.client(format!(" [{batch}]\n").as_bytes());
    let answers: serde_json::Value = serde_json::from_str(&bench.client_gets()).unwrap();
    let answers = answers.as_array().unwrap();
    let ids: Vec<_> = answers.iter().map(|one| one["id"].to_string()).collect();
    assert_eq!(ids, ["1.0", "\"c\"", "null", "null"]);
    assert!(answers.iter().all(|one| one["error"]["code"] == -32600));
    assert!(
        answers[0]["error"]["message"].as_str().unwrap().contains("nothing of the batch was done")
    );

    // Nobody waits for an answer.
    bench.client(b"[{\"method\":\"tools/call\"}]\n");
    assert_eq!((bench.client_gets(), bench.server_gets()), (String::new(), String::new()));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_withdrawn_before_its_retry_is_not_retried() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.list();
    bench.client(call("1", "read").as_bytes());
    bench.settle().await;
    bench.server(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"connection refused\"}}\n");
    bench.settle().await;
    bench.server_gets();
    bench.client(b"{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":1}}\n");
    tokio::time::advance(Duration::from_secs(5)).await;
    bench.settle().await;
    assert_eq!((bench.server_gets(), bench.client_gets()), (String::new(), String::new()));
    assert!(bench.proxy.calls.is_empty());
}

#[tokio::test(start_paused = true)]
async fn more_calls_than_fit_are_refused() {
    let mut bench = Bench::new(Mode::Enforce);
    for id in 0..10_000 {
        bench.client(call(&id.to_string(), "pay").as_bytes());
    }
    assert_eq!(bench.client_gets(), "");
    bench.server_gets();
    bench.client(call("\"one more\"", "pay").as_bytes());
    assert!(bench.client_gets().contains("did not run"));
    assert_eq!(bench.server_gets(), "");
}

#[tokio::test(start_paused = true)]
async fn each_call_is_given_up_at_its_own_time() {
    let mut bench = Bench::new(Mode::Enforce);
    // Begun at 0, 20 and 40 s; nobody waits for the first any more when its time is over.
    for id in ["1", "2", "3"] {
        bench.client(call(id, "pay").as_bytes());
        bench.settle().await;
        if id == "1" {
            bench.server(done(id).as_bytes());
        }
        tokio::time::advance(Duration::from_secs(20)).await;
        bench.settle().await;
    }
    assert_eq!(bench.client_gets(), done("1"));
    for (at, given_up) in [(69, None), (71, Some("2")), (89, None), (91, Some("3")), (600, None)] {
        tokio::time::sleep_until(bench.begun + Duration::from_secs(at)).await;
        bench.settle().await;
        let said = bench.client_gets();
        let is_it = |id: &str| said.contains(&format!("\"id\":{id},")) && said.contains("50s");
        assert!(given_up.map_or(said.is_empty(), is_it), "at {at} s: {said}");
    }
    assert!(bench.proxy.calls.is_empty());
}

/// MCP says of a failure `isError`; what else stands in a result is the tool's own answer.
#[tokio::test(start_paused = true)]
async fn a_result_that_only_looks_like_a_failure_stays_a_success() {
    for member in [r#""ok":false"#, r#""error":"none of ours""#, r#""exitCode":1"#] {
        let mut bench = Bench::new(Mode::Enforce);
        bench.client(keyed("1").as_bytes());
        bench.settle().await;
        bench.server_gets();
        let answer =
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{{member},\"content\":[]}}}}\n");
        bench.server(answer.as_bytes());
        bench.settle().await;
        assert_eq!(bench.client_gets(), answer);
        assert_eq!(bench.records.records()[0].state, RecordState::Done, "{member}");
    }
}

/// Clients of 2026-07-28 read no result without its type.
#[tokio::test(start_paused = true)]
async fn a_result_of_the_guard_s_own_names_its_type_where_the_protocol_wants_it() {
    let version = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name""#;
    for (line, kind) in [
        (call("1", "pay"), None),
        (call("1", "pay").replace("\"name\"", version), Some("complete")),
    ] {
        let mut bench = Bench::new(Mode::Enforce);
        bench.client(line.as_bytes());
        bench.settle().await;
        bench.proxy.on_server_ended(None);
        bench.settle().await;
        let said: serde_json::Value = serde_json::from_str(&bench.client_gets()).unwrap();
        assert_eq!(said["result"]["isError"], true, "{said}");
        assert_eq!(said["result"]["resultType"].as_str(), kind);
    }
}
