//! While the server waits for the client, the limits of calls stand still.
use super::*;

const ASK: &[u8] =
    b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"elicitation/create\",\"params\":{}}\n";
const TOLD: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"action\":\"accept\"}}\n";

async fn pass(bench: &mut Bench, seconds: u64) {
    tokio::time::advance(Duration::from_secs(seconds)).await;
    bench.settle().await;
}

/// A payment that has run for 20 of its 50 seconds when its server asks.
async fn asked() -> Bench {
    let mut bench = Bench::new(Mode::Enforce);
    bench.client(call("1", "pay").as_bytes());
    pass(&mut bench, 20).await;
    bench.server(ASK);
    assert_eq!(bench.client_gets().as_bytes(), ASK);
    bench
}

#[tokio::test(start_paused = true)]
async fn the_time_in_which_a_person_thinks_does_not_count() {
    let batch = [b"[", &TOLD[..TOLD.len() - 1], b"]\n"].concat();
    for told in [TOLD, &batch] {
        let mut bench = asked().await;
        pass(&mut bench, 1_200).await;
        assert_eq!(bench.client_gets(), "", "the person reads");
        bench.client(told);
        pass(&mut bench, 29).await;
        assert_eq!(bench.client_gets(), "", "30 of 50 seconds were left");
        pass(&mut bench, 2).await;
        assert!(bench.client_gets().contains("timeout"));
    }
}

#[tokio::test(start_paused = true)]
async fn the_clock_goes_on_when_the_server_no_longer_asks() {
    let alone = "{\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":7}}";
    for cancels in [alone, &format!("[{alone}]")] {
        let mut bench = asked().await;
        pass(&mut bench, 100).await;
        bench.server(format!("{cancels}\n").as_bytes());
        bench.client_gets();
        pass(&mut bench, 31).await;
        assert!(bench.client_gets().contains("timeout"), "{cancels}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unanswered_question_does_not_stop_the_clock_for_ever() {
    let mut bench = asked().await;
    pass(&mut bench, 3_599).await;
    assert_eq!(bench.client_gets(), "");
    pass(&mut bench, 1).await;
    pass(&mut bench, 31).await;
    assert!(bench.client_gets().contains("timeout"));
    // Nor one of an earlier call's.
    bench.client(call("2", "read").as_bytes());
    pass(&mut bench, 51).await;
    assert!(bench.client_gets().contains("timeout"));
}

#[tokio::test(start_paused = true)]
async fn a_ping_of_the_servers_stops_no_clock() {
    let mut bench = Bench::new(Mode::Enforce);
    bench.client(call("1", "pay").as_bytes());
    pass(&mut bench, 1).await;
    bench.server(b"{\"id\":7,\"method\":\"ping\"}\n");
    bench.client_gets();
    pass(&mut bench, 50).await;
    assert!(bench.client_gets().contains("timeout"));
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_again_and_again_stops_the_clock_for_an_hour_in_all() {
    for is_told in [false, true] {
        let mut bench = asked().await;
        for _ in 0..36 {
            pass(&mut bench, 99).await;
            if is_told {
                bench.client(TOLD);
                bench.settle().await;
            }
            bench.server(ASK);
            pass(&mut bench, 1).await;
            assert!(!bench.client_gets().contains("timeout"));
        }
        pass(&mut bench, 31).await;
        assert!(bench.client_gets().contains("timeout"), "answered: {is_told}");
    }
}

/// A client gives up by its own clock, whatever the guard would wait.
#[tokio::test(start_paused = true)]
async fn a_call_has_the_limit_of_its_client() {
    let named = |name: &str, id: &str| {
        let client = format!(r#"{{"name":"{name}","version":"1"}}"#);
        let hello = format!(
            "{{\"id\":\"i{id}\",\"method\":\"initialize\",\"params\":{{\"clientInfo\":{client}}}}}\n"
        );
        let meta = format!(r#"{{"io.modelcontextprotocol/clientInfo":{client}}}"#);
        let modern = format!(
            "{{\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":\"pay\",\"_meta\":{meta}}}}}\n"
        );
        [(hello, call(id, "pay")), (String::new(), modern)]
    };
    for (name, limit) in [("gemini-cli-mcp-client", 598), ("x", 58)] {
        for (hello, call) in named(name, "1") {
            let mut bench = Bench::within(Mode::Enforce, Limits::new(None, None));
            if !hello.is_empty() {
                bench.client(hello.as_bytes());
            }
            bench.client(call.as_bytes());
            bench.settle().await;
            pass(&mut bench, limit - 1).await;
            assert_eq!(bench.client_gets(), "", "{name}");
            pass(&mut bench, 2).await;
            let said = bench.client_gets();
            assert!(said.contains(&format!("Tool timeout after {limit}s")), "{name}: {said}");
        }
    }
}
