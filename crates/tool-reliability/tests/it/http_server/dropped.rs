//! Clients that disconnect, and handlers that panic.
use super::support::*;
use std::sync::atomic::Ordering::SeqCst;

#[tokio::test]
async fn a_client_that_disconnects_does_not_end_the_run() {
    let shop = Shop::closed();
    let at = serve(shop.clone(), settings().build().unwrap()).await;
    let client = tokio::spawn(got(post(&at, "k", "tea")));
    until(|| shop.runs() == 1).await;
    client.abort();
    assert!(client.await.unwrap_err().is_cancelled());
    // A run without a key ends with its client, which shows that the server notices.
    let without_key = tokio::spawn(got(bare(&at, "tea")));
    until(|| shop.runs() == 2).await;
    without_key.abort();
    until(|| shop.gone.load(SeqCst) == 1).await;
    shop.open.add_permits(1);
    until(|| shop.gone.load(SeqCst) == 2).await;
    let again = got(post(&at, "k", "tea")).await;
    assert_eq!((again.status, &*again.body, again.is_replayed()), (201, "order 1: tea", true));
    assert_eq!(shop.runs(), 2);
}

#[tokio::test]
async fn after_a_panic_the_outcome_is_unknown() {
    let (shop, at) = shop().await;
    assert!(post(&at, "k", "panic").send().await.is_err(), "the connection ends");
    for _ in 0..2 {
        let again = got(post(&at, "k", "panic")).await;
        assert_eq!(again.problem(), problem(409, "outcome_unknown", "unknown"));
        assert_eq!(again.header("retry-after"), None);
    }
    assert_eq!(shop.runs(), 1);
}
