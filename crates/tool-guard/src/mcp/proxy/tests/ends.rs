//! Calls whose server has ended, and calls whose answer is no JSON.
use super::*;

/// Nothing waits, and no timer is asked: the answer is there when the line has been read.
#[tokio::test(start_paused = true)]
async fn calls_after_the_server_s_end_are_answered_on_the_spot() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.list();
    bench.client(keyed("1").as_bytes());
    bench.settle().await;
    bench.proxy.on_server_gone();
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
    bench.server(b"{\"id\":1,\"result\":{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"read ECONNRESET\"}]}}\n");
    bench.settle().await;
    tokio::time::advance(Duration::from_secs(1)).await;
    bench.settle().await;
    let sent = bench.server_gets();
    let retry: serde_json::Value = serde_json::from_str(sent.lines().last().unwrap()).unwrap();
    let line = format!("{{\"id\":{},\"result\":{{\"content\":[],\"x\":NaN}}}}\n", retry["id"]);
    bench.server(line.as_bytes());
    bench.settle().await;
    assert_eq!(bench.client_gets(), "{\"id\":1,\"result\":{\"content\":[],\"x\":NaN}}\n");
    bench.server(line.as_bytes());
    bench.settle().await;
    assert_eq!(bench.client_gets(), "", "nothing is answered twice");

    bench.client(keyed("2").as_bytes());
    bench.settle().await;
    tokio::time::advance(Duration::from_secs(51)).await;
    bench.settle().await;
    assert!(bench.client_gets().contains("Tool timeout"));
    bench.server(b"{\"id\":2,\"result\":{\"x\":NaN}}\n");
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
    bench.proxy.on_server_gone();
    bench.settle().await;
    let said = bench.client_gets();
    assert!(said.contains("ended before it answered") && said.contains("server_gone"), "{said}");
}
