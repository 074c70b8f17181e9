//! Lines that go no further, and what their senders are told.
use super::*;
use crate::wire::lines::Oversized;

#[tokio::test(start_paused = true)]
async fn params_in_an_array_mean_nothing_to_us() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.client(call("1", "pay").as_bytes());
    bench.settle().await;
    bench.server_gets();
    let cancel = "{\"method\":\"notifications/cancelled\",\"params\":[1,null,null]}\n";
    bench.client(cancel.as_bytes());
    bench.server(done("1").as_bytes());
    bench.settle().await;
    assert_eq!((bench.server_gets(), bench.client_gets()), (cancel.to_owned(), done("1")));
    bench.client(b"{\"id\":2,\"method\":\"tools/call\",\"params\":[\"pay\",{},null,null,null]}\n");
    assert!(bench.client_gets().contains("-32602") && bench.server_gets().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_call_that_names_no_tool_is_answered_and_goes_no_further() {
    for params in ["", ",\"params\":{}", ",\"params\":{\"name\":null,\"arguments\":{}}"] {
        let mut bench = Bench::new(Mode::Enforce);
        bench.client(format!("{{\"id\":7,\"method\":\"tools/call\"{params}}}\n").as_bytes());
        bench.settle().await;
        let answer: serde_json::Value = serde_json::from_str(&bench.client_gets()).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&7.into(), &(-32602).into()));
        assert!(answer["error"]["message"].as_str().unwrap().contains("params.name"), "{answer}");
        assert_eq!(bench.server_gets(), "", "{params}");
    }
    // An empty name is a name: whether there is such a tool, the server knows.
    let mut bench = Bench::new(Mode::Enforce);
    bench.client(call("1", "").as_bytes());
    bench.settle().await;
    assert_eq!(bench.server_gets(), call("1", ""));
}

#[tokio::test(start_paused = true)]
async fn a_line_too_long_is_refused_to_whoever_sent_it() {
    let too_long = |asks| {
        Item::Oversized(Oversized { bytes: 99, id: Some("1".into()), asks, is_no_success: false })
    };
    let mut bench = Bench::new(Mode::Enforce);
    bench.client(call("1", "pay").as_bytes());
    bench.settle().await;
    bench.server_gets();
    // The server asks, and the client answers, under an id that is a call's too.
    bench.proxy.on_server(&too_long(true));
    bench.proxy.on_client(&too_long(false));
    bench.settle().await;
    assert_eq!(bench.client_gets(), "");
    let refusals = bench.server_gets();
    assert!(
        refusals.lines().count() == 2 && refusals.lines().all(|line| line.contains("\"id\":1"))
    );
    bench.proxy.on_client(&too_long(true));
    assert!(bench.client_gets().contains("raise --max-line"));
    bench.proxy.on_server(&too_long(false));
    bench.settle().await;
    assert!(bench.client_gets().contains("The tool ran, but its answer has 99 bytes"));
}

#[tokio::test(start_paused = true)]
async fn a_failure_too_long_to_pass_does_not_say_that_the_tool_ran() {
    for (is_no_success, ran) in [(false, "yes"), (true, "unknown")] {
        let mut bench = Bench::new(Mode::Enforce);
        bench.client(call("1", "pay").as_bytes());
        bench.settle().await;
        let id = Some("1".into());
        let line = Oversized { bytes: 99, id, asks: false, is_no_success };
        bench.proxy.on_server(&Item::Oversized(line));
        bench.settle().await;
        let answer: serde_json::Value = serde_json::from_str(&bench.client_gets()).unwrap();
        let error = &answer["result"]["_meta"]["tool-reliability/error"];
        assert_eq!((&error["code"], &error["ran"]), (&"answer_too_large".into(), &ran.into()));
        assert!(answer.to_string().contains("raise --max-line"), "{answer}");
        assert_eq!(answer.to_string().contains("The tool ran"), !is_no_success, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_none_is_refused() {
    for key in ["null", "7", "\"\"", "[\"k\"]"] {
        let mut bench = Bench::new(Mode::Enforce);
        bench.client(keyed("1").replace("\"k\"", key).as_bytes());
        bench.settle().await;
        assert!(bench.client_gets().contains("-32602"), "{key}");
        assert_eq!(bench.server_gets(), "", "{key}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_under_an_id_in_use_is_told_that_it_was_not_made() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.client(call("1", "pay").as_bytes());
    bench.client(call("1", "other").as_bytes());
    bench.settle().await;
    assert_eq!(bench.server_gets(), call("1", "pay"));
    assert!(bench.client_gets().contains("still in flight: this call was not made"));
}
