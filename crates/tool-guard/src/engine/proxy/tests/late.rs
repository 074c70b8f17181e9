//! Answers that come after their call was given up.
use super::*;

impl Bench {
    /// A call that was sent and given up.
    async fn given_up(&mut self, line: &str) {
        self.client(line.as_bytes());
        self.settle().await;
        self.server_gets();
        tokio::time::advance(Duration::from_secs(51)).await;
        self.settle().await;
        assert!(self.client_gets().contains("Tool timeout"));
        self.server_gets();
    }
}

fn failed(text: &str, meta: &str) -> String {
    let content = format!(r#"[{{"type":"text","text":"{text}"}}]"#);
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{{\"isError\":true,\"content\":{content},\"_meta\":{meta}}}}}\n"
    )
}

/// The same failure in time and late leaves the same record.
#[tokio::test(start_paused = true)]
async fn a_late_failure_settles_no_more_than_one_in_time() {
    let cancelled =
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":0,\"message\":\"Request cancelled\"}}\n";
    let word = |ran: &str| format!(r#"{{"tool-reliability/error":{{"ran":"{ran}"}}}}"#);
    for (answer, is_unknown) in [
        (cancelled.to_owned(), true),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"data\":NaN}}\n".into(), true),
        (failed("503 Service Unavailable", "{}"), true),
        (failed("read ECONNRESET", "{}"), true),
        (failed("no such seat", &word("unknown")), true),
        (failed("no such seat", "{}"), false),
        (failed("503 Service Unavailable", &word("yes")), false),
    ] {
        let mut bench = Bench::new(Mode::Enforce);
        bench.client(keyed("1").as_bytes());
        bench.settle().await;
        bench.server(answer.as_bytes());
        bench.settle().await;
        let in_time = bench.records.records()[0].state;
        assert_eq!(in_time == RecordState::Unknown, is_unknown, "{answer}");

        let mut bench = Bench::new(Mode::Enforce);
        bench.given_up(&keyed("1")).await;
        bench.server(answer.as_bytes());
        bench.settle().await;
        let late = bench.records.records()[0].state;
        assert_eq!(late == RecordState::Unknown, is_unknown, "{answer}");
        bench.client(keyed("2").as_bytes());
        bench.settle().await;
        let said = bench.client_gets();
        assert_eq!(said.contains("\"ran\":\"unknown\""), is_unknown, "{answer}: {said}");
        assert_eq!(bench.server_gets(), "", "it does not run again");

        let mut bench = Bench::new(Mode::Enforce);
        bench.given_up(&call("1", "pay")).await;
        bench.server(answer.as_bytes());
        bench.client(call("2", "pay").as_bytes());
        bench.settle().await;
        let said = bench.client_gets();
        assert_eq!(
            said.contains("that earlier call may have run; this one did not"),
            is_unknown,
            "{said}"
        );
    }
}

/// A call under an id that names it for ever.
fn strong(id: &str, own: &str) -> String {
    let own = format!("claudecode/toolUseId\":\"toolu_01Ab3dEf6hIj9LmN2pQr{own}sTu");
    keyed(id).replace("idempotencyKey\":\"k", &own)
}

/// The client was told that it may have run, and has not had its answer.
#[tokio::test(start_paused = true)]
async fn the_next_equal_call_gets_a_late_answer_once() {
    let bare = |id: &str| call(id, "pay");
    let named = |id: &str| strong(id, id);
    let weak = |id: &str| keyed(id).replace("idempotencyKey\":\"k", "callId\":\"pay:0");
    let of: [&dyn Fn(&str) -> String; 3] = [&bare, &named, &weak];
    for call in of {
        let mut bench = Bench::new(Mode::Enforce);
        bench.given_up(&call("1")).await;
        bench.server(done("1").as_bytes());
        bench.client(call("2").as_bytes());
        bench.settle().await;
        let said = bench.client_gets();
        assert!(said.contains("\"id\":2,\"result\":{\"content\":["), "{said}");
        assert!(said.contains("[LATE ANSWER]") && said.contains("this is its answer"), "{said}");
        assert_eq!(bench.server_gets(), "");
        for id in ["3", "4"] {
            bench.client(call(id).as_bytes());
            bench.settle().await;
            assert_eq!(bench.server_gets(), call(id), "it is meant");
            bench.server(done(id).as_bytes());
            bench.settle().await;
            assert!(!bench.client_gets().contains("LATE"));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_is_recorded_for_the_call_that_gets_it() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.given_up(&strong("1", "1")).await;
    bench.server(done("1").as_bytes());
    for id in ["2", "3"] {
        bench.client(strong(id, "2").as_bytes());
        bench.settle().await;
        let said = bench.client_gets();
        assert!(said.contains("this is its answer") && !said.contains("isError"), "{said}");
        assert_eq!(bench.server_gets(), "");
    }
}

#[tokio::test(start_paused = true)]
async fn of_a_late_answer_that_could_not_be_kept_it_is_said_that_its_call_ran() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.given_up(&call("1", "pay")).await;
    bench.server(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[],\"n\":NaN}}\n");
    bench.client(call("2", "pay").as_bytes());
    bench.settle().await;
    let said = bench.client_gets();
    assert!(said.contains("answer_not_kept") && said.contains("it has run since"), "{said}");
    assert_eq!(bench.server_gets(), "");
}

/// It has the answer, under the call's own id.
#[tokio::test(start_paused = true)]
async fn a_late_answer_that_its_client_has_got_is_no_equal_calls() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.given_up(&keyed("1")).await;
    bench.server(done("1").as_bytes());
    bench.settle().await;
    bench.client(keyed("2").as_bytes());
    bench.settle().await;
    assert!(!bench.client_gets().contains("LATE"));
    let bare = call("3", "pay");
    bench.client(bare.as_bytes());
    bench.settle().await;
    assert_eq!(bench.server_gets(), bare);
}

#[tokio::test(start_paused = true)]
async fn one_of_two_equal_calls_that_is_answered_late_does_not_free_the_other() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.client(call("1", "pay").as_bytes());
    bench.given_up(&call("2", "pay")).await;
    bench.server(done("2").as_bytes());
    bench.client(call("3", "pay").as_bytes());
    bench.settle().await;
    let said = bench.client_gets();
    assert!(said.contains("that earlier call may have run; this one did not run"), "{said}");
    assert_eq!(bench.server_gets(), "");
}

/// A guard that was stopped finds the answer and the timer's end at once.
#[tokio::test(start_paused = true)]
async fn an_answer_that_came_in_time_is_read_before_its_call_is_ended() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.client(call("1", "pay").as_bytes());
    bench.settle().await;
    tokio::time::advance(Duration::from_secs(51)).await;
    assert!(bench.proxy.calls.step().now_or_never().flatten().is_none());
    assert!(bench.proxy.sweeper.round().now_or_never().is_none());
    bench.server(done("1").as_bytes());
    bench.settle().await;
    assert_eq!(bench.client_gets(), done("1"));
}

/// The server writes all the time, and answers nothing.
#[tokio::test(start_paused = true)]
async fn what_is_overdue_for_long_is_ended_although_there_is_more_to_read() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.client(call("1", "pay").as_bytes());
    assert!(bench.proxy.calls.step().now_or_never().flatten().is_none());
    for (seconds, is_ended) in [(50, false), (1, true)] {
        tokio::time::advance(Duration::from_secs(seconds)).await;
        bench.proxy.sweeper.end_late();
        let finished = bench.proxy.calls.step().now_or_never().flatten();
        assert_eq!(finished.is_some(), is_ended, "after {seconds} s more");
    }
}

/// It is withdrawn at the server with the last of those that wait for its end.
#[tokio::test(start_paused = true)]
async fn a_call_that_is_withdrawn_goes_on_for_its_duplicates() {
    let cancel = |id: u32| {
        format!("{{\"method\":\"notifications/cancelled\",\"params\":{{\"requestId\":{id}}}}}\n")
    };
    for goes_on in [true, false] {
        let mut bench = Bench::new(Mode::Enforce);
        for id in ["1", "2", "3"] {
            bench.client(keyed(id).as_bytes());
        }
        bench.settle().await;
        assert_eq!(bench.server_gets(), keyed("1"));
        for id in [1, 3, 1] {
            bench.client(cancel(id).as_bytes());
            bench.settle().await;
            assert_eq!((bench.server_gets().as_str(), bench.client_gets().as_str()), ("", ""));
        }
        if goes_on {
            bench.server(done("1").as_bytes());
            bench.settle().await;
            let repeated = done("2").replace("{\"id\"", "{\"jsonrpc\":\"2.0\",\"id\"");
            assert_eq!(bench.client_gets(), repeated);
        } else {
            bench.client(cancel(2).as_bytes());
            bench.settle().await;
            assert_eq!(bench.server_gets(), cancel(1), "under the id that the server knows");
            assert_eq!(bench.client_gets(), "", "no answer is wanted");
        }
        assert!(bench.proxy.calls.is_empty());
    }
}

/// The answer may still be recorded when the server's next line comes.
#[tokio::test(start_paused = true)]
async fn no_progress_of_a_call_overtakes_its_answer() {
    let progress = |n: u8| {
        format!(
            "{{\"method\":\"notifications/progress\",\"params\":{{\"progressToken\":\"t\",\"progress\":{n}}}}}\n"
        )
    };
    let call = "{\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"pay\",\"_meta\":{\"progressToken\":\"t\"}}}\n";
    let mut bench = Bench::new(Mode::Enforce);
    bench.client(call.as_bytes());
    bench.settle().await;
    bench.server(progress(1).as_bytes());
    bench.server(done("1").as_bytes());
    bench.server(progress(2).as_bytes());
    assert_eq!(bench.client_gets(), progress(1));
    bench.settle().await;
    assert_eq!(bench.client_gets(), done("1"));
    // Once the client has its answer, the token may be another request's.
    bench.server(progress(3).as_bytes());
    assert_eq!(bench.client_gets(), progress(3));
}
