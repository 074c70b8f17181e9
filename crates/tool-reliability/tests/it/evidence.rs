//! Whether a tool ran is evidence, never words: tools here act first and fail afterwards.
mod passed_on;

use http::{Request, Response};
use std::{
    error::Error,
    fmt, io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
};
use tool_reliability::{Builder, ToolStack, breaker, loopguard};
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};
use tr_core::{BoxError, DedupeMode, NotSent, Params, ToolCall, ToolError, ToolOutcome, classify};
use tr_retry::RetryLayer;
use tr_timeout::AttemptTimeoutLayer;
use tr_wire::bs_tim_5::ToolResultEnvelope;

/// Neither breaker nor loop guard keeps a call from its tool.
fn unhindered(change: impl FnOnce(Builder) -> Builder) -> ToolStack {
    let builder = ToolStack::builder()
        .breaker(|builder| builder.mode(breaker::Mode::Disabled))
        .loop_guard(|guard: loopguard::Builder| guard.enabled(false));
    change(builder).build().unwrap()
}

#[derive(Debug)]
struct PaymentFailed(BoxError);

impl fmt::Display for PaymentFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the receipt could not be sent")
    }
}

impl Error for PaymentFailed {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

type End = Result<ToolOutcome, BoxError>;

/// How often `pay` runs for one key and no key, where each run ends as `end` says.
async fn runs(
    stack: &ToolStack,
    key: &str,
    end: impl Fn() -> End + Clone + Send + 'static,
) -> usize {
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = ran.clone();
    let pay = stack.service(service_fn(move |_: ToolCall| {
        counted.fetch_add(1, Relaxed);
        std::future::ready(end())
    }));
    let call = || ToolCall::new("pay", Params::empty_object()).session("s").idempotency_key(key);
    for call in [call(), call(), call().dedupe(DedupeMode::BestEffort)] {
        let end = pay.clone().oneshot(call.clone()).await;
        let end = end.as_ref().map_err(|error| &**error);
        let told = ToolResultEnvelope::of(&call, end, 1, std::time::Duration::ZERO);
        let error = told.error.expect("it failed");
        assert!(!error.retriable && error.terminal, "{key}: {error:?}");
    }
    ran.load(Relaxed)
}

#[tokio::test(start_paused = true)]
async fn no_words_in_a_failure_make_the_stack_pay_twice() {
    let stack = unhindered(|stack| stack);
    let mut keys = 0..;
    let mut key = move || format!("o-{}", keys.next().expect("no end"));
    let mut words = 0;
    for text in classify::tables() {
        words += 1;
        let said = text.clone();
        assert_eq!(runs(&stack, &key(), move || Err(said.as_str().into())).await, 1, "{text}");
        let said = text.clone();
        let inside = move || Err(PaymentFailed(said.as_str().into()).into());
        assert_eq!(runs(&stack, &key(), inside).await, 1, "{text}");
        let said = text.clone();
        let told = move || Ok(ToolOutcome::failure(ToolError::new("", said.as_str())));
        assert_eq!(runs(&stack, &key(), told).await, 1, "{text}");
        let said = text.clone();
        let code = move || Ok(ToolOutcome::failure(ToolError::new(said.as_str(), "it failed")));
        assert_eq!(runs(&stack, &key(), code).await, 1, "{text}");
    }
    assert!(words > 1_000, "{words} words");
}

#[tokio::test(start_paused = true)]
async fn no_error_number_makes_the_stack_pay_twice() {
    let stack = unhindered(|stack| stack);
    for errno in 1..=133 {
        let bare = move || Err(io::Error::from_raw_os_error(errno).into());
        assert_eq!(runs(&stack, &format!("bare {errno}"), bare).await, 1, "{errno}");
        let inside = move || Err(PaymentFailed(io::Error::from_raw_os_error(errno).into()).into());
        assert_eq!(runs(&stack, &format!("inside {errno}"), inside).await, 1, "{errno}");
        assert_ne!(classify::errno(errno).end.ran, tr_core::Ran::No, "{errno}");
    }
}

/// What a tool of its own was refused says nothing of the tool.
#[tokio::test(start_paused = true)]
async fn what_a_call_inside_the_tool_was_refused_is_no_evidence() {
    let stack = unhindered(|stack| stack);
    let not_sent = || Err(PaymentFailed(NotSent::new("mail: refused").into()).into());
    assert_eq!(runs(&stack, "not sent", not_sent).await, 1);
    let shed = || {
        let shed = tower::load_shed::error::Overloaded::new();
        Err(PaymentFailed(shed.into()).into())
    };
    assert_eq!(runs(&stack, "shed", shed).await, 1);
}

#[tokio::test(start_paused = true)]
async fn what_a_transport_did_not_send_is_sent_again() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let pay = unhindered(|stack| stack).service(service_fn(move |_: ToolCall| {
        let first = counted.fetch_add(1, Relaxed) == 0;
        std::future::ready(match first {
            true => Err(BoxError::from(NotSent::new("connection refused"))),
            false => Ok(ToolOutcome::default()),
        })
    }));
    pay.oneshot(ToolCall::new("pay", Params::empty_object())).await.unwrap();
    assert_eq!(asked.load(Relaxed), 2);
}

#[tokio::test(start_paused = true)]
async fn twenty_calls_with_one_key_run_once() {
    let ran = Arc::new(AtomicUsize::new(0));
    let counted = ran.clone();
    let pay = unhindered(|stack| stack).service(service_fn(move |_: ToolCall| {
        counted.fetch_add(1, Relaxed);
        async {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            let text = "HTTP 503: upstream connect error or disconnect/reset before headers";
            Err::<ToolOutcome, BoxError>(text.into())
        }
    }));
    let call = || ToolCall::new("pay", Params::empty_object()).session("s").idempotency_key("k");
    let calls = (0..20).map(|_| tokio::spawn(pay.clone().oneshot(call())));
    for call in calls.collect::<Vec<_>>() {
        assert!(call.await.unwrap().is_err());
    }
    assert_eq!(ran.load(Relaxed), 1);
}

/// How often a POST reaches a server that answers it with this status.
async fn posts(status: u16) -> usize {
    let posts = Arc::new(AtomicUsize::new(0));
    let counted = posts.clone();
    let mut client = ServiceBuilder::new()
        .layer(RetryLayer::default())
        .layer(AttemptTimeoutLayer::default())
        .service(service_fn(move |_: Request<&'static str>| {
            counted.fetch_add(1, Relaxed);
            let response = Response::builder().status(status).body("");
            std::future::ready(Ok::<_, BoxError>(response.expect("a valid status")))
        }));
    let order = Request::post("http://shop.example/orders").body("1 × tea").unwrap();
    let _ = client.ready().await.unwrap().call(order).await;
    posts.load(Relaxed)
}

#[tokio::test(start_paused = true)]
async fn only_a_status_that_says_so_has_a_post_sent_again() {
    for status in 400..600 {
        let expected = if [425, 429].contains(&status) { 4 } else { 1 };
        assert_eq!(posts(status).await, expected, "{status}");
    }
}
