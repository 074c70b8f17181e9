//! Clients that leave, and answers that come late.
use super::*;

#[tokio::test(start_paused = true)]
async fn a_modern_read_that_another_client_joined_goes_on_for_that_one() {
    let mut bench = Bench::new().await;
    bench.list().await;
    let modern = [
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "read"),
    ];
    for stays in [true, false] {
        let first = bench.send(&modern, call("7", "read", NAMED));
        let post = bench.posted().await;
        let second = bench.send(&modern, call("8", "read", NAMED));
        bench.nothing_posted().await;
        first.abort();
        assert!(first.await.is_err());
        bench.nothing_posted().await;
        assert!(!post.say.is_closed());
        if stays {
            post.answer("done");
            let said = text(second).await.1;
            assert!(said.contains("\"id\":8") && said.contains("\"done\""), "{said}");
        } else {
            second.abort();
            assert!(second.await.is_err());
            bench.nothing_posted().await;
            assert!(post.say.is_closed());
        }
    }
}

/// The server hears of it when no client waits any more.
#[tokio::test(start_paused = true)]
async fn a_call_that_another_one_joined_is_not_cancelled_for_that_one() {
    let session = [("mcp-session-id", "s")];
    let order = |id: u32| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        )
    };
    for stays in [true, false] {
        let mut bench = Bench::new().await;
        let first = bench.send(&session, call("7", "pay", ""));
        let post = bench.posted().await;
        advance(Duration::from_secs(5)).await;
        let second = bench.send(&session, call("8", "pay", ""));
        bench.nothing_posted().await;
        assert_eq!(text(bench.send(&session, order(7))).await.0, StatusCode::ACCEPTED);
        bench.nothing_posted().await;
        assert_eq!(text(first).await.0, StatusCode::ACCEPTED);
        if stays {
            post.answer("paid");
            let said = text(second).await.1;
            assert!(said.contains("paid") && said.contains("[JOINED]"), "{said}");
        } else {
            assert_eq!(text(bench.send(&session, order(8))).await.0, StatusCode::ACCEPTED);
            assert_eq!(bench.posted().await.body()["method"], "notifications/cancelled");
            let said = text(bench.send(&session, call("9", "pay", ""))).await.1;
            assert!(said.contains("outcome_unknown") && !said.contains("[JOINED]"), "{said}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_late_answer_counts_though_progress_came_in_other_bytes_before() {
    const META: &str = r#""idempotencyKey":"k","progressToken":"p""#;
    let mut bench = Bench::new().await;
    let answer = bench.send(&[], call("7", "pay", META));
    // The second attempt has an id and a token of the guard's own.
    bench.posted().await.fail(Ran::No, Verdict::TRANSIENT);
    let post = timeout(Duration::from_secs(10), bench.posts.recv()).await.unwrap().unwrap();
    let sent = post.body();
    assert_ne!(sent["id"], 7);
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, "text/event-stream".parse().unwrap());
    post.say(ServerEvent::Head(StatusCode::OK, headers));
    let token = &sent["params"]["_meta"]["progressToken"];
    let note = format!(
        r#"{{"method":"notifications/progress","params":{{"progressToken":{token},"progress":1}}}}"#
    );
    let raw = format!("data: {note}\n\n").into();
    post.say(ServerEvent::Message { line: note.into(), raw, answers: false });
    let (_, said) = text(answer).await;
    assert!(said.contains("progress") && said.contains("may have run"), "{said}");
    assert!(!post.say.is_closed(), "its late answer is heard");
    assert_eq!(bench.posted().await.body()["method"], "notifications/cancelled");
    let line = result(&sent["id"], "paid");
    let raw = [b"data: ", &line[..], b"\n\n"].concat().into();
    post.say(ServerEvent::Message { line, raw, answers: true });
    for _ in 0..20 {
        yield_now().await;
    }
    let (_, again) = text(bench.send(&[], call("8", "pay", META))).await;
    assert!(again.contains("\"paid\""), "{again}");
    bench.nothing_posted().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_client_vanished_is_joined_once() {
    let mut bench = Bench::new().await;
    let caller = [("authorization", "Bearer a")];
    let first = bench.send(&caller, call("7", "pay", ""));
    let post = bench.posted().await;
    first.abort();
    assert!(first.await.is_err());
    bench.nothing_posted().await;
    let other = bench.send(&[("authorization", "Bearer b")], call("7", "pay", ""));
    bench.posted().await.answer("of another");
    assert!(text(other).await.1.contains("of another"));
    let second = bench.send(&caller, call("8", "pay", ""));
    bench.nothing_posted().await;
    post.answer("paid");
    assert!(text(second).await.1.contains("paid"));
    let third = bench.send(&caller, call("9", "pay", ""));
    bench.posted().await.answer("once more");
    assert!(text(third).await.1.contains("once more"));
}

#[tokio::test(start_paused = true)]
async fn a_modern_read_ends_with_its_client_and_a_payment_goes_on() {
    let mut bench = Bench::new().await;
    bench.list().await;
    for (tool, ends) in [("read", true), ("pay", false)] {
        let modern = [
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", "tools/call"),
            ("mcp-name", tool),
        ];
        let answer = bench.send(&modern, call("7", tool, NAMED));
        let post = bench.posted().await;
        answer.abort();
        assert!(answer.await.is_err());
        bench.nothing_posted().await;
        assert_eq!(post.say.is_closed(), ends, "{tool}");
        post.answer("done");
        bench.nothing_posted().await;
        if !ends {
            let again = bench.send(&modern, call("8", tool, NAMED));
            let (_, said) = text(again).await;
            let said: Value = serde_json::from_str(&said).unwrap();
            assert_eq!(
                (&said["id"], &said["result"]["content"][0]["text"]),
                (&8.into(), &"done".into())
            );
        }
    }
}
