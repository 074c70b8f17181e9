//! What peers' retries get wrong, each under the peer's name.
use crate::common::{Tool, exhausted, ms, ok, search, timeout};
use std::{
    cell::{Cell, RefCell},
    collections::BTreeSet,
    rc::Rc,
    time::{Duration, UNIX_EPOCH},
};
use tokio::time::Instant;
use tower::{BoxError, Layer, Service, ServiceExt, retry, service_fn};
use tr_core::{
    DefaultPolicy, ResponsePolicy, SystemClock, ToolCall, ToolOutcome, Verdict, WallClock,
};
use tr_retry::{Budget, RetryConfig, RetryLayer, RetryStop};

/// The delays of a call whose attempts all fail at once.
async fn delays(layer: &RetryLayer) -> Vec<Duration> {
    let tool = layer.layer(Tool::script([timeout()]).then_repeat_last());
    let error = tool.oneshot(search()).await.unwrap_err();
    exhausted(&error).retried().iter().map(|one| one.delay).collect()
}

#[tokio::test(start_paused = true)]
async fn tower_exponential_backoffs_of_one_maker_share_one_sequence() {
    let layer = RetryLayer::default();
    let mut sequences = BTreeSet::new();
    for _ in 0..100 {
        sequences.insert(delays(&layer).await);
    }
    assert_eq!(sequences.len(), 100);
}

#[tokio::test(start_paused = true)]
async fn tower_exponential_backoff_has_no_jitter_at_a_base_of_one_second() {
    let mut config = RetryConfig::default();
    config.base = ms(1_000);
    let mut firsts = BTreeSet::new();
    for seed in 0..100 {
        let layer = RetryLayer::builder().config(config.clone()).seed(seed).build().unwrap();
        firsts.insert(delays(&layer).await[0]);
    }
    assert!(firsts.len() > 95 && firsts.iter().all(|first| *first <= ms(1_000)), "{firsts:?}");
}

/// How many retries a budget grants to so many calls, each of which wants one and then succeeds.
async fn granted(budget: &Budget, calls: usize) -> usize {
    let layer = RetryLayer::builder().budget(budget.clone()).build().unwrap();
    let mut retries = 0;
    for _ in 0..calls {
        let tool = layer.layer(Tool::script([timeout(), ok()]));
        retries += usize::from(tool.oneshot(search()).await.is_ok());
    }
    retries
}

#[tokio::test(start_paused = true)]
async fn tower_tps_budget_of_0_6_grants_all() {
    let budget = Budget::builder().per_success(0.6).capacity(10).build().unwrap();
    let granted = granted(&budget, 1_000).await;
    // Each granted call takes 1 and pays in 0.6, so ten tokens last for 23 calls: after that
    // nothing succeeds any more, and nothing is paid in.
    assert_eq!(granted, 23);
    assert_eq!(budget.available(), 0);
}

#[tokio::test(start_paused = true)]
async fn aws_sdk_go_v2_3550_a_quota_that_is_used_up_never_refills() {
    let budget = Budget::builder().per_success(0.1).capacity(2).build().unwrap();
    let layer = RetryLayer::builder().budget(budget.clone()).build().unwrap();
    let down = layer.layer(Tool::script([timeout()]).then_repeat_last());
    let error = down.oneshot(search()).await.unwrap_err();
    assert_eq!((exhausted(&error).why(), budget.available()), (RetryStop::Budget, 0));

    let up = layer.layer(Tool::script([ok()]).then_repeat_last());
    for _ in 0..20 {
        up.clone().oneshot(search()).await.unwrap();
    }
    assert_eq!((budget.available(), granted(&budget, 2).await), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn envoy_30205_retries_that_wait_in_backoff_escape_the_budget() {
    let mut config = RetryConfig::default();
    (config.base, config.cap, config.jitter) = (ms(10_000), None, (1.0, 1.0));
    let budget = Budget::builder().per_success(0.0).capacity(3).build().unwrap();
    let layer = RetryLayer::builder().config(config).budget(budget.clone()).build().unwrap();
    let calls: Vec<_> = (0..10)
        .map(|_| {
            let tool = layer.layer(Tool::script([timeout(), ok()]));
            tokio::spawn(tool.oneshot(search()))
        })
        .collect();
    // All have failed once, and none of the retries has started yet.
    tokio::time::sleep(ms(5_000)).await;
    assert_eq!(budget.available(), 0);
    let mut retried = 0;
    for call in calls {
        retried += usize::from(call.await.unwrap().is_ok());
    }
    assert_eq!(retried, 3);
}

type Reply = http::Response<()>;

/// An HTTP service that answers 503 with this header once, and notes when it was asked.
async fn asked_at(name: &str, value: &str) -> Vec<Duration> {
    let starts = Rc::new(RefCell::new(vec![]));
    let (start, noted) = (Instant::now(), starts.clone());
    let (name, value) = (name.to_owned(), value.to_owned());
    let server = service_fn(move |_: http::Request<()>| {
        noted.borrow_mut().push(start.elapsed());
        let res = http::Response::builder();
        let res = match noted.borrow().len() {
            1 => res.status(503).header(&*name, &*value),
            _ => res.status(200),
        };
        async { Ok::<_, BoxError>(res.body(()).unwrap()) }
    });
    let mut config = RetryConfig::per_request();
    (config.base, config.jitter) = (ms(1), (1.0, 1.0));
    let layer = RetryLayer::builder().config(config).build().unwrap();
    let req = http::Request::get("http://localhost/").body(()).unwrap();
    layer.layer(server).oneshot(req).await.unwrap();
    starts.take()
}

#[tokio::test(start_paused = true)]
async fn tower_and_others_ignore_retry_after() {
    assert_eq!(asked_at("retry-after", "7").await, [0, 7_001].map(ms));
    assert_eq!(asked_at("retry-after-ms", "250").await, [0, 251].map(ms));
    assert_eq!(asked_at("retry-after", "soon").await, [0, 1].map(ms), "malformed means absent");
    // The wall clock of a date is a real one: an hour from now, give or take the test's own time.
    for date in dates(SystemClock.unix_ms() / 1_000 + 3_600) {
        let waited = asked_at("retry-after", &date).await[1];
        assert!((3_540..=3_601).contains(&waited.as_secs()), "{date}: {waited:?}");
    }
}

/// The instant in all three forms of RFC 9110.
fn dates(unix: u64) -> [String; 3] {
    const DAYS: [&str; 7] =
        ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];
    let preferred = httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(unix));
    let [_, day, month, year, time, _] =
        preferred.split(' ').collect::<Vec<_>>().try_into().unwrap();
    let weekday = DAYS[(unix / 86_400 % 7) as usize];
    let obsolete = format!("{weekday}, {day}-{month}-{} {time} GMT", &year[2..]);
    let asctime =
        format!("{} {month} {:>2} {time} {year}", &weekday[..3], day.trim_start_matches('0'));
    [preferred.clone(), obsolete, asctime]
}

#[tokio::test(start_paused = true)]
async fn others_copy_the_request_of_an_attempt_that_nothing_can_follow() {
    // A tool call is never copied deeply: the parts and the params of all attempts are the same.
    let call = search();
    let tool = Tool::script([timeout(), ok()]);
    let asked = tool.handle();
    RetryLayer::default().layer(tool).oneshot(call.clone()).await.unwrap();
    let requests: Vec<ToolCall> = asked.requests();
    assert!(requests.iter().all(|one| std::ptr::eq(one.parts(), call.parts())));
    assert_eq!(requests.len(), 2);
}

/// Attempts until it succeeds, whatever headers say, as a client that knows nothing of ours.
#[derive(Clone)]
struct Stubborn {
    left: u32,
    counts: bool,
}

impl retry::Policy<http::Request<()>, Reply, BoxError> for Stubborn {
    type Future = std::future::Ready<()>;

    fn retry(
        &mut self,
        req: &mut http::Request<()>,
        end: &mut Result<Reply, BoxError>,
    ) -> Option<Self::Future> {
        let failed = !end.as_ref().is_ok_and(|res| res.status().is_success());
        self.left = self.left.checked_sub(u32::from(failed))?;
        if self.counts {
            let count = req.headers().get("x-stainless-retry-count");
            let count = count.map_or(0, |one| one.to_str().unwrap().parse::<u32>().unwrap());
            req.headers_mut().insert("x-stainless-retry-count", (count + 1).into());
        }
        failed.then(|| std::future::ready(()))
    }

    fn clone_request(&mut self, req: &http::Request<()>) -> Option<http::Request<()>> {
        Some(req.clone())
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_else_acts_on_the_attempt_header_so_retries_multiply() {
    // Four attempts of a client around our four.
    for (counts, attempts) in [(false, 16), (true, 4 + 3)] {
        let asked = Rc::new(Cell::new(0));
        let noted = asked.clone();
        let leaf = service_fn(move |_: http::Request<()>| {
            noted.set(noted.get() + 1);
            async { Ok::<_, BoxError>(http::Response::builder().status(503).body(()).unwrap()) }
        });
        let ours = RetryLayer::default().layer(leaf);
        let mut client = retry::Retry::new(Stubborn { left: 3, counts }, ours);
        let req = http::Request::get("http://localhost/").body(()).unwrap();
        let res = client.ready().await.unwrap().call(req).await.unwrap();
        assert_eq!((res.status().as_u16(), asked.get()), (503, attempts), "counts: {counts}");
    }
}

#[tokio::test(start_paused = true)]
async fn ours_does_not_retry_over_the_wire_what_ours_has_retried() {
    let asked = Rc::new(Cell::new(0));
    let noted = asked.clone();
    let leaf = service_fn(move |_: http::Request<()>| {
        noted.set(noted.get() + 1);
        async { Ok::<_, BoxError>(http::Response::builder().status(503).body(()).unwrap()) }
    });
    let server = RetryLayer::default().layer(leaf);
    // Status and headers travel, extensions don't.
    let wire = server.map_response(|res: Reply| {
        let (mut parts, body) = res.into_parts();
        parts.extensions.clear();
        Reply::from_parts(parts, body)
    });
    let req = http::Request::get("http://localhost/").body(()).unwrap();
    RetryLayer::default().layer(wire).oneshot(req).await.unwrap();
    assert_eq!(asked.get(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_that_is_a_retry_already_gets_one_attempt() {
    let tool = Tool::script([timeout()]);
    let asked = tool.handle();
    let mut call = search();
    call.set_attempt(1);
    let error = RetryLayer::default().layer(tool).oneshot(call).await.unwrap_err();
    let seen = ResponsePolicy::<ToolOutcome>::classify(&DefaultPolicy, Err(&*error));
    assert_eq!((asked.calls(), seen.verdict, seen.exhausted), (1, Verdict::TRANSIENT, false));
}
