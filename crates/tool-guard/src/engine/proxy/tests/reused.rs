//! Requests under the id of a call that may still be answered.
use super::*;

const PING: &str = "{\"id\":1,\"method\":\"ping\"}\n";
const EMPTY: &str = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n";
const NOT_FOUND: &str =
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}\n";

fn ours(line: &str) -> String {
    line.replacen("\"id\":1,", &format!("\"id\":\"{PREFIX}1\","), 1)
}

impl Bench {
    /// A payment under id 1 that was sent, and is given up if `late`.
    async fn paying(late: bool) -> Self {
        let mut bench = Self::new(Mode::Enforce);
        bench.client(keyed("1").as_bytes());
        bench.settle().await;
        if late {
            tokio::time::advance(Duration::from_secs(51)).await;
            bench.settle().await;
            assert!(bench.client_gets().contains("may have run"));
        }
        bench.server_gets();
        bench
    }
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_another_request_settles_no_payment() {
    let batch = |line: &str| format!("[{}]\n", line.trim());
    let list = || PING.replace("ping", "tools/list");
    for late in [true, false] {
        for (request, answer) in [
            (PING.to_owned(), EMPTY.to_owned()),
            (list(), EMPTY.into()),
            (PING.replace("1,", "1.0,"), EMPTY.into()),
            (PING.into(), NOT_FOUND.into()),
            (PING.into(), EMPTY.replace("{}", "{\"x\":NaN}")),
            (PING.into(), EMPTY.replace("{}", "\"\u{1}\"")),
            (PING.replace("\"ping\"", "\"ping\",\"x\":NaN"), EMPTY.into()),
            (batch(PING), batch(EMPTY)),
            (batch(&PING.replace("\"ping\"", "\"ping\",\"x\":NaN")), EMPTY.into()),
        ] {
            let mut bench = Bench::paying(late).await;
            bench.client(request.as_bytes());
            let renamed = request.replace("1.0,", "1,");
            assert_eq!(bench.server_gets(), ours(&renamed), "{late}");
            bench.server(ours(&answer).as_bytes());
            bench.settle().await;
            let answer = answer.trim_matches(['[', ']', '\n']).to_owned() + "\n";
            let spelled =
                if request.contains("1.0") { answer.replacen("1,", "1.0,", 1) } else { answer };
            assert_eq!(bench.client_gets(), spelled);
            let state = bench.records.records()[0].state;
            let open = if late { RecordState::Unknown } else { RecordState::Inflight };
            assert_eq!(state, open, "{request}");
            // The answer to the payment settles it.
            bench.server(done("1").as_bytes());
            bench.settle().await;
            assert_eq!(bench.client_gets(), if late { String::new() } else { done("1") });
            assert_eq!(bench.records.records()[0].state, RecordState::Done, "{request}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_under_the_id_of_an_open_request_gets_its_own_answer() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.client(PING.as_bytes());
    bench.client(PING.as_bytes());
    assert_eq!(bench.server_gets(), PING.to_owned() + &ours(PING));
    bench.client(keyed("1").as_bytes());
    bench.settle().await;
    let second = format!("\"{PREFIX}2\"");
    assert_eq!(bench.server_gets(), keyed(&second));
    for answer in [EMPTY.to_owned(), ours(EMPTY)] {
        bench.server(answer.as_bytes());
        bench.settle().await;
        assert_eq!(bench.client_gets(), EMPTY);
        assert_eq!(bench.records.records()[0].state, RecordState::Inflight);
    }
    bench.server(done(&second).as_bytes());
    bench.settle().await;
    assert_eq!(bench.client_gets(), done("1"));
}

#[tokio::test(start_paused = true)]
async fn a_renamed_request_is_cancelled_and_closed_under_its_ids() {
    let mut bench = Bench::paying(true).await;
    bench.client(PING.as_bytes());
    bench.server_gets();
    let cancel = |id: &str| {
        format!("{{\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n")
    };
    bench.client(cancel("1").as_bytes());
    assert_eq!(bench.server_gets(), cancel(&format!("\"{PREFIX}1\"")));
    let (bytes, asks) = (99, false);
    let id = Some(format!("\"{PREFIX}1\"").into());
    let long = Oversized { bytes, id, asks, is_no_success: false };
    bench.proxy.on_server(&Item::Oversized(long));
    let said = bench.client_gets();
    assert!(said.contains("\"id\":1,") && said.contains("--max-line"), "{said}");
    assert_eq!(bench.records.records()[0].state, RecordState::Unknown);

    bench.client(PING.as_bytes());
    bench.proxy.on_server_ended(None);
    let said = bench.client_gets();
    assert!(said.contains("\"id\":1,") && said.contains("Connection closed"), "{said}");
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_that_is_too_long_settles_its_record() {
    for is_no_success in [false, true] {
        let mut bench = Bench::paying(true).await;
        let id = Some("1".into());
        let long = Oversized { bytes: 99, id, asks: false, is_no_success };
        bench.proxy.on_server(&Item::Oversized(long));
        let state = bench.records.records()[0].state;
        assert_eq!(state == RecordState::Unknown, is_no_success);
        bench.client(keyed("2").as_bytes());
        bench.settle().await;
        let said = bench.client_gets();
        assert_eq!(said.contains("\"ran\":\"yes\""), !is_no_success, "{said}");
        assert_eq!(bench.server_gets(), "", "it does not run again");
    }
}
