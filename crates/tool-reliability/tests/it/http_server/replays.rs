//! Repeats get the first response, and the handler runs once.
use super::support::*;
use std::time::Duration;
use tokio::task::JoinSet;

#[tokio::test]
async fn concurrent_duplicates_run_once_and_all_get_the_response() {
    let shop = Shop::closed();
    let at = serve(shop.clone(), settings().build().unwrap()).await;
    let mut clients = JoinSet::new();
    for _ in 0..16 {
        clients.spawn(got(post(&at, "k", "tea")));
    }
    until(|| shop.runs() == 1).await;
    shop.open.add_permits(16);
    let all = clients.join_all().await;
    assert_eq!((shop.runs(), all.len()), (1, 16));
    assert_eq!(all.iter().filter(|got| !got.is_replayed()).count(), 1);
    for got in all {
        assert_eq!((got.status, &*got.body), (201, "order 1: tea"));
        assert_eq!(got.header("location"), Some("/orders/1"));
    }
}

#[tokio::test]
async fn a_response_of_any_status_is_the_end_of_the_run() {
    let (shop, at) = shop().await;
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
    let client = client.build().unwrap();
    for (n, status) in
        ["200", "204", "302", "400", "404", "408", "429", "500", "503"].iter().enumerate()
    {
        let key = format!("key {status}");
        for replayed in [false, true, true] {
            let request = post(&at, &format!("\"{key}\""), "tea").header("x-answer", *status);
            let request = request.header("x-trace", if replayed { "2" } else { "1" });
            let response = client.execute(request.build().unwrap()).await.unwrap();
            assert_eq!(response.status().as_str(), *status);
            assert_eq!(response.headers().contains_key("idempotency-replayed"), replayed);
            assert_eq!(response.headers().contains_key("set-cookie"), !replayed);
            assert_eq!(response.headers()["location"], format!("/orders/{}", n + 1));
        }
        assert_eq!(shop.runs(), n + 1);
    }
}

#[tokio::test]
async fn a_key_is_the_same_quoted_and_bare_and_holds_for_its_caller() {
    let (shop, at) = shop().await;
    assert!(!got(post(&at, "\"8e03978e\"", "tea")).await.is_replayed());
    assert!(got(post(&at, "8e03978e", "tea")).await.is_replayed());
    let bob = reqwest::Client::new().post(format!("{at}/orders")).header("x-account", "bob");
    let bob = got(bob.header("idempotency-key", "8e03978e").body("tea")).await;
    assert!(!bob.is_replayed(), "Bob does not get Ada's order");
    assert_eq!(shop.runs(), 2);
}

#[tokio::test]
async fn what_has_no_key_or_only_reads_passes() {
    let (shop, at) = shop().await;
    for _ in 0..2 {
        assert!(!got(bare(&at, "tea")).await.is_replayed());
        let get = reqwest::Client::new().get(format!("{at}/orders")).header("idempotency-key", "k");
        assert_eq!(got(get).await.status, 201);
    }
    assert_eq!(shop.runs(), 4);
}

#[tokio::test]
async fn headers_are_replayed_as_chosen() {
    let shop = Shop::new();
    let settings = settings().replayed_headers(|name| name == "set-cookie");
    let at = serve(shop, settings.build().unwrap()).await;
    for replayed in [false, true] {
        let got = got(post(&at, "k", "tea")).await;
        assert_eq!((got.is_replayed(), got.header("set-cookie")), (replayed, Some("secret=1")));
        assert_eq!(got.header("location").is_none(), replayed);
    }
}

#[tokio::test]
async fn a_record_names_the_route_and_the_caller() {
    let shop = Shop::new();
    let layer = settings().build().unwrap();
    let records = layer.handle();
    let at = serve(shop, layer).await;
    got(post(&at, "k", "tea")).await;
    let all = records.records();
    let [record] = &all[..] else { panic!("{all:?}") };
    let of = (&*record.tool, &*record.request.session_key, &*record.idempotency_key);
    assert_eq!(of, ("POST /orders", "ada", "k"));
}

#[tokio::test]
async fn a_duplicate_that_need_not_wait_is_told_to_come_again() {
    let shop = Shop::closed();
    let at = serve(shop.clone(), settings().max_wait(Duration::ZERO).build().unwrap()).await;
    let first = tokio::spawn(got(post(&at, "k", "tea")));
    until(|| shop.runs() == 1).await;
    let second = got(post(&at, "k", "tea")).await;
    assert_eq!(second.problem(), problem(409, "idempotency_in_flight", "unknown"));
    assert_eq!(second.header("retry-after"), Some("1"));
    shop.open.add_permits(1);
    assert_eq!(first.await.unwrap().status, 201);
    assert!(got(post(&at, "k", "tea")).await.is_replayed());
    assert_eq!(shop.runs(), 1);
}
