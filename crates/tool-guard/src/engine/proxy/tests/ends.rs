//! Calls whose server has ended, and calls whose answer is no JSON.
use super::*;
use tr_core::KeyRef;

/// Nothing waits, and no timer is asked: the answer is there when the line has been read.
#[tokio::test(start_paused = true)]
async fn calls_after_the_server_s_end_are_answered_on_the_spot() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.list();
    bench.client(keyed("1").as_bytes());
    bench.settle().await;
    bench.proxy.on_server_ended(None);
    bench.settle().await;
    assert!(bench.client_gets().contains("may have run"));
    let begun = Instant::now();
    for (id, tool) in (0..100).zip(["read", "pay"].into_iter().cycle()) {
        bench.client(call(&format!("\"{id}\""), tool).as_bytes());
        let said = bench.client_gets();
        assert!(said.contains("The MCP server has ended; the tool did not run"), "{said}");
        assert!(bench.proxy.calls.is_empty());
    }
    // What may have run before does not become a call that did not.
    bench.client(keyed("2").as_bytes());
    bench.settle().await;
    let said = bench.client_gets();
    assert!(said.contains("outcome_unknown") && said.contains("\"ran\":\"unknown\""), "{said}");
    assert_eq!((begun.elapsed(), bench.server_gets().as_str()), (Duration::ZERO, ""));
}

/// The id of the attempt is not the client's, an earlier one was given up, and notes are due.
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_json_is_matched_in_every_case() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.list();
    bench.client(call("1", "read").as_bytes());
    bench.settle().await;
    bench.server(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"read ECONNRESET\"}]}}\n");
    bench.settle().await;
    tokio::time::advance(Duration::from_secs(1)).await;
    bench.settle().await;
    let sent = bench.server_gets();
    let retry: serde_json::Value = serde_json::from_str(sent.lines().last().unwrap()).unwrap();
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{},\"result\":{{\"content\":[],\"x\":NaN}}}}\n",
        retry["id"]
    );
    bench.server(line.as_bytes());
    bench.settle().await;
    assert_eq!(
        bench.client_gets(),
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[],\"x\":NaN}}\n"
    );
    bench.server(line.as_bytes());
    bench.settle().await;
    assert_eq!(bench.client_gets(), "", "nothing is answered twice");

    bench.client(keyed("2").as_bytes());
    bench.settle().await;
    tokio::time::advance(Duration::from_secs(51)).await;
    bench.settle().await;
    assert!(bench.client_gets().contains("Tool timeout"));
    bench.server(b"{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"x\":NaN}}\n");
    bench.client(keyed("3").as_bytes());
    bench.settle().await;
    let said = bench.client_gets();
    assert!(said.contains("its answer was not kept"), "{said}");
    assert_eq!(bench.records.counts().unknown, 0);
}

/// A read that is in flight at the end is not tried again.
#[tokio::test(start_paused = true)]
async fn no_attempt_follows_the_server_s_end() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.list();
    bench.client(call("1", "read").as_bytes());
    bench.settle().await;
    bench.proxy.on_server_ended(None);
    bench.settle().await;
    let said = bench.client_gets();
    assert!(said.contains("ended before it answered") && said.contains("server_gone"), "{said}");
}

/// One message of a batch is no JSON: each answer ends its call, and none comes a second time.
#[tokio::test(start_paused = true)]
async fn answers_in_a_batch_that_is_no_json_are_matched_each_once() {
    let note = "{\"method\":\"notifications/message\",\"params\":{}}";
    let answers = [
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[],\"x\":NaN}}",
        "{\"jsonrpc\":\"2.0\",\"id\":9,\"id\":2,\"result\":{\"content\":[\"],\\\"\"]}}",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[]}}",
        "{\"jsonrpc\":\"2.0\",\"id\":4,\"result\":{\"content\":[\"\u{1}\"]}}",
    ];
    let batch = |parts: &[&str]| format!("\u{feff}[{} ]\r\n", parts.join(" , "));
    let mut bench = Bench::new(Mode::Enforce);
    for id in 1..=4 {
        bench.client(call(&id.to_string(), "pay").as_bytes());
    }
    bench.settle().await;
    let [first, second, third, fourth] = answers;
    bench.server(batch(&[first, note, second, "[7]", third, fourth]).as_bytes());
    bench.settle().await;
    let said = bench.client_gets();
    let mut lines: Vec<_> = said.lines().collect();
    let mut all = [first, note, second, "[7]", third, fourth];
    lines.sort_unstable();
    all.sort_unstable();
    assert_eq!(lines, all);
    assert!(bench.proxy.calls.is_empty());
    tokio::time::advance(Duration::from_secs(60)).await;
    bench.settle().await;
    assert_eq!(bench.client_gets(), "");

    // Where it answers no call, or is not there as a whole, it passes as it came.
    for line in
        [batch(&[note, "NaN"]), "[{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":NaN}\n".to_owned()]
    {
        bench.server(line.as_bytes());
        assert_eq!(bench.client_gets(), line);
    }
}

/// A failure that no JSON reader takes is one: for the record, and for who repeats the call.
#[tokio::test(start_paused = true)]
async fn a_failed_answer_that_is_no_json_is_a_failure() {
    let error = r#""error":{"code":-32603,"message":"internal"}"#;
    for (members, state, told) in [
        (format!(r#""id":0,{error}"#), RecordState::Unknown, "outcome_unknown"),
        (r#""error":{"code":-32603,"data":NaN}"#.into(), RecordState::Unknown, "outcome_unknown"),
        (
            r#""result":{"isError":true,"content":[{"type":"text","text":"no such seat"}]},"x":NaN"#
                .into(),
            RecordState::Failed,
            "no such seat",
        ),
        (r#""result":{"x":NaN,"isError":true}"#.into(), RecordState::Failed, "no valid JSON"),
        (r#""result":{"x":NaN,"isError":false}"#.into(), RecordState::Done, "was not kept"),
    ] {
        let mut bench = Bench::new(Mode::Enforce);
        bench.client(keyed("1").as_bytes());
        bench.settle().await;
        let answer = format!("{{\"jsonrpc\":\"2.0\",{members},\"id\":1}}\n");
        bench.server(answer.as_bytes());
        bench.settle().await;
        assert_eq!(bench.client_gets(), answer, "it passes as it came");
        assert_eq!(bench.records.records()[0].state, state, "{members}");
        bench.server_gets();
        bench.client(keyed("2").as_bytes());
        bench.settle().await;
        let said = bench.client_gets();
        assert!(said.contains(told), "{members}: {said}");
        assert_eq!(bench.server_gets(), "", "it does not run again");
    }
}

/// Calls that fail so count for the breaker, as others do.
#[tokio::test(start_paused = true)]
async fn failed_answers_that_are_no_json_count_for_the_breaker() {
    let mut bench = Bench::new(Mode::Enforce);
    for id in 1..=4 {
        let params = format!("{{\"name\":\"pay\",\"arguments\":{{\"n\":{id}}}}}");
        let line = format!("{{\"id\":{id},\"method\":\"tools/call\",\"params\":{params}}}\n");
        bench.client(line.as_bytes());
        bench.settle().await;
        let answer = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32603,\"data\":NaN}}}}\n"
        );
        bench.server(answer.as_bytes());
        bench.settle().await;
        assert_eq!(bench.client_gets(), answer);
        let breaker = bench.breakers.get(KeyRef::new("pay")).unwrap();
        assert_eq!(breaker.counts().consecutive_failures, id);
    }
}

/// The answer to an attempt comes a second time while the call is tried again.
#[tokio::test(start_paused = true)]
async fn an_answer_that_comes_again_while_the_call_goes_on_is_swallowed() {
    let failed = "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"connection refused\"}}";
    for again in
        [format!("{failed}\n"), format!("[{failed}]\n"), failed.replace("32603", "32603,\"x\":NaN")]
    {
        let mut bench = Bench::new(Mode::Enforce);
        bench.list();
        bench.client(call("1", "read").as_bytes());
        bench.settle().await;
        for line in [&format!("{failed}\n"), &again] {
            bench.server(line.as_bytes());
            bench.settle().await;
        }
        assert_eq!(bench.client_gets(), "");
        tokio::time::advance(Duration::from_secs(5)).await;
        bench.settle().await;
        let sent = bench.server_gets();
        let retry: serde_json::Value = serde_json::from_str(sent.lines().last().unwrap()).unwrap();
        bench.server(done(&retry["id"].to_string()).as_bytes());
        bench.settle().await;
        assert_eq!(bench.client_gets(), done("1"));
    }
}

/// As those that are sent each by itself.
#[tokio::test(start_paused = true)]
async fn requests_in_a_batch_are_answered_when_the_server_ends_and_after() {
    let batch = |from: u32| {
        format!(
            "[{{\"id\":{from},\"method\":\"ping\"}},{{\"method\":\"notifications/x\"}},{{\"id\":{},\"method\":\"tools/list\"}}]\n",
            from + 1
        )
    };
    let mut bench = Bench::new(Mode::Enforce);
    bench.client(batch(1).as_bytes());
    assert_eq!(bench.server_gets(), batch(1));
    bench.server(b"[{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{\"tools\":[]}}]\n");
    bench.client_gets();
    bench.proxy.on_server_ended(None);
    let said = bench.client_gets();
    assert!(said.starts_with("{\"jsonrpc\":\"2.0\",\"id\":1,\"error\""), "{said}");
    assert_eq!(said.lines().count(), 1, "the other was answered: {said}");
    bench.client(batch(3).as_bytes());
    let said: serde_json::Value = serde_json::from_str(&bench.client_gets()).unwrap();
    assert_eq!((&said[0]["id"], &said[1]["id"]), (&3.into(), &4.into()));
    assert_eq!(said[1]["error"]["message"], "Connection closed: the MCP server has ended");
    assert_eq!((said.as_array().unwrap().len(), bench.server_gets().as_str()), (2, ""));
    assert!(!bench.proxy.requests.are_awaited());
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_null_is_repeated_as_it_is() {
    let mut bench = Bench::new(Mode::Enforce);
    for id in ["1", "2"] {
        bench.client(keyed(id).as_bytes());
        bench.settle().await;
        if id == "1" {
            bench.server(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":null}\n");
            bench.settle().await;
        }
        let said: serde_json::Value = serde_json::from_str(&bench.client_gets()).unwrap();
        let wanted = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":null}}");
        assert_eq!(said, serde_json::from_str::<serde_json::Value>(&wanted).unwrap());
    }
}

/// Servers log on standard output, and clients skip what is no answer, whatever its id.
#[tokio::test(start_paused = true)]
async fn what_a_server_logs_ends_no_call() {
    for noise in [
        r#"{"level":30,"id":1,"msg":"calling the bank"}"#,
        r#"{"level":30,"id":1,"result":"starting"}"#,
        r#"{"level":50,"id":1,"error":{"message":"retrying"}}"#,
        r#"{"id":1,"result":{"ok":1},}"#,
        r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
        r#"{"jsonrpc":"2.0","id":1}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"log","result":1}"#,
        r#"[{"level":30,"id":1,"result":"starting"}]"#,
    ] {
        let mut bench = Bench::new(Mode::Enforce);
        bench.client(keyed("1").as_bytes());
        bench.settle().await;
        bench.server(format!("{noise}\n").as_bytes());
        bench.settle().await;
        assert_eq!(bench.client_gets(), format!("{noise}\n"), "it passes as it came");
        assert_eq!(bench.records.records()[0].state, RecordState::Inflight, "{noise}");
        bench.server(done("1").as_bytes());
        bench.settle().await;
        assert_eq!(bench.client_gets(), done("1"));
        assert_eq!(bench.records.records()[0].state, RecordState::Done, "{noise}");
    }
}
