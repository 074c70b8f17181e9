//! Answers that ask for something first, and what a server says of its tools in a batch.
use super::*;

/// What a server answers to id 1 that needs something of its user first.
const ASKS: [&str; 2] = [
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32042,\"message\":\"URL elicitation required\",\"data\":{\"elicitations\":[{\"mode\":\"url\",\"elicitationId\":\"e\",\"url\":\"https://x\",\"message\":\"m\"}]}}}\n",
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{},\"requestState\":\"s\"}}\n",
];

#[tokio::test(start_paused = true)]
async fn an_answer_that_asks_for_something_first_is_no_end_of_its_call() {
    for asks in ASKS {
        let mut bench = Bench::new(Mode::Enforce);
        // As often as no loop may fail.
        for _ in 0..6 {
            bench.client(keyed("1").as_bytes());
            bench.settle().await;
            assert_eq!(bench.server_gets(), keyed("1"), "it runs: {asks}");
            bench.server(asks.as_bytes());
            bench.settle().await;
            assert_eq!(bench.client_gets(), asks);
        }
        bench.client(keyed("2").as_bytes());
        bench.settle().await;
        assert_eq!(bench.server_gets(), keyed("2"));
        bench.server(done("2").as_bytes());
        bench.settle().await;
        assert_eq!(bench.client_gets(), done("2"));
        // The answer that ends it is kept.
        bench.client(keyed("3").as_bytes());
        bench.settle().await;
        assert_eq!((bench.server_gets(), bench.client_gets().is_empty()), (String::new(), false));
    }
}

#[tokio::test(start_paused = true)]
async fn the_code_alone_asks_for_nothing() {
    for data in ["", ",\"data\":null", ",\"data\":{}", ",\"data\":{\"elicitations\":[]}"] {
        let mut bench = Bench::new(Mode::Enforce);
        bench.client(keyed("1").as_bytes());
        bench.settle().await;
        bench.server_gets();
        let error = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{{\"code\":-32042,\"message\":\"m\"{data}}}}}\n"
        );
        bench.server(error.as_bytes());
        bench.settle().await;
        bench.client(keyed("2").as_bytes());
        bench.settle().await;
        assert_eq!(bench.server_gets(), "", "{data}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_read_that_asks_for_something_first_is_not_tried_again() {
    for asks in ASKS {
        let mut bench = Bench::new(Mode::Enforce);
        bench.list();
        bench.client(call("1", "read").as_bytes());
        bench.settle().await;
        bench.server_gets();
        bench.server(asks.as_bytes());
        bench.settle().await;
        tokio::time::advance(Duration::from_secs(30)).await;
        bench.settle().await;
        assert_eq!((bench.server_gets(), bench.client_gets()), (String::new(), asks.to_owned()));
    }
}

/// Asked for later than the call was given up, it frees the record, too.
#[tokio::test(start_paused = true)]
async fn what_asks_for_something_first_too_late_leaves_the_id_free() {
    for asks in ASKS {
        let mut bench = Bench::new(Mode::Enforce);
        bench.client(keyed("1").as_bytes());
        bench.settle().await;
        bench.server_gets();
        tokio::time::advance(Duration::from_secs(51)).await;
        bench.settle().await;
        bench.server_gets();
        bench.server(asks.as_bytes());
        bench.settle().await;
        bench.client(keyed("2").as_bytes());
        bench.settle().await;
        assert_eq!(bench.server_gets(), keyed("2"), "{asks}");
    }
}

/// Whether a read that has failed for a reason that passes is tried again.
async fn is_tried_again(bench: &mut Bench) -> bool {
    bench.client(call("1", "read").as_bytes());
    bench.settle().await;
    bench.server_gets();
    bench.server(
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"ECONNRESET\"}}\n",
    );
    bench.settle().await;
    tokio::time::advance(Duration::from_secs(30)).await;
    bench.settle().await;
    !bench.server_gets().is_empty()
}

#[tokio::test(start_paused = true)]
async fn what_a_batch_says_of_the_tools_is_heard_and_the_batch_passes_whole() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.list();
    assert!(is_tried_again(&mut bench).await);
    let mut bench = Bench::new(Mode::Enforce);
    bench.list();
    let changed = "[7,{\"method\":\"notifications/tools/list_changed\"}]\n";
    bench.server(changed.as_bytes());
    assert_eq!(bench.client_gets(), changed);
    assert!(!is_tried_again(&mut bench).await);

    let mut bench = Bench::new(Mode::Enforce);
    bench.client(b"{\"id\":\"list\",\"method\":\"tools/list\"}\n");
    bench.server_gets();
    let list = "[{\"jsonrpc\":\"2.0\",\"id\":\"list\",\"result\":{\"tools\":[{\"name\":\"read\",\"annotations\":{\"readOnlyHint\":true}}]}}]\n";
    bench.server(list.as_bytes());
    assert_eq!(bench.client_gets(), list);
    assert!(is_tried_again(&mut bench).await);
    // It is answered, and not once more when the server ends.
    bench.client_gets();
    bench.proxy.on_server_ended(None);
    assert!(!bench.client_gets().contains("\"list\""));
}
