//! No secret gets out, and it is the redactor that keeps it in.
use crate::common::{Traced, tell};
use crate::lines::Lines;
use crate::metered::Metered;
use opentelemetry_sdk::trace::Sampler;
use std::{
    borrow::Cow,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tower::{Service, ServiceExt, layer::Layer};
use tr_core::{
    BoxError, BreakerState, DefaultPolicy, Event, Params, RequestPolicy, ToolCall, ToolError,
    ToolOutcome,
};
use tr_telemetry::{
    JsonLines, Names, Signals, TelemetryLayer,
    redact::{Redact, Redactor},
};
use tr_testkit::logs::Logs;
use tracing_subscriber::{filter::LevelFilter, prelude::*, registry};

/// Token-like strings, made up, and each in a place of its own.
const IN_PARAMS: &str = "sk-ant-Zq8Wv7Nn2Lk5Jh3Gf1Ds9Ap0Oi";
const IN_PASSWORD: &str = "correct-horse-battery";
const IN_NAME: &str = "ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
const IN_RESULT: &str = "xoxb-111111111111-AbCdEfGhIjKl";
const IN_ERROR: &str = "hunter2-from-the-error";
const IN_REPORT: &str = "AKIAIOSFODNN7EXAMPLE";
const IN_CODE: &str = "glpat-Ab1Cd2Ef3Gh4Ij5Kl6Mn";
const IN_SESSION: &str = "sk_live_4eC39HqLyjWDarjtT1zdp7dc";
const IN_TOOL: &str = "hf_AbCdEfGhIjKlMnOpQrStUvWx";
const IN_KEY: &str = "order-42-of-ada";
const SECRETS: [&str; 10] = [
    IN_PARAMS,
    IN_PASSWORD,
    IN_NAME,
    IN_RESULT,
    IN_ERROR,
    IN_REPORT,
    IN_CODE,
    IN_SESSION,
    IN_TOOL,
    IN_KEY,
];

#[derive(Debug)]
struct Identity;

impl Redact for Identity {
    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        Cow::Borrowed(text)
    }
}

/// All that is shown of calls full of secrets: logs, spans, metrics, `Debug`.
async fn shown(redactor: impl Redact + 'static) -> String {
    let (lines, _listening) = Lines::listen();
    let (metered, traced) = (Metered::new(), Traced::new(Sampler::AlwaysOn));
    let signals = Signals::builder()
        .meter(metered.meter())
        .tracer(traced.tracer())
        .names([Names::OpenClaw, Names::Utee, Names::GenAi])
        .params_shape()
        .redactor(redactor)
        .build()
        .unwrap();
    let (observer, mut debug) = (signals.observer(), format!("{signals:?}"));

    for end in 0..3 {
        let text = format!(r#"{{"note":"{IN_PARAMS}","password":"{IN_PASSWORD}","{IN_NAME}":1}}"#);
        let call = ToolCall::new(IN_TOOL, Params::from_text(text).unwrap())
            .session(format!("session {IN_SESSION}"))
            .request_id(format!("r {IN_SESSION}"))
            .tool_call_id(format!("toolu {IN_SESSION}"))
            .idempotency_key(IN_KEY);
        for secret in [IN_PARAMS, IN_PASSWORD, IN_NAME] {
            assert!(!format!("{call:?}").contains(secret), "params have no Debug");
        }
        let observer = observer.clone();
        let tool = tower::service_fn(move |call: ToolCall| {
            let (delay, latency) = (Duration::ZERO, Duration::ZERO);
            let info = DefaultPolicy.info(&call);
            tell(
                &*observer,
                &info,
                Event::Retry { attempt: 0, delay, retry_after: None, reason: IN_CODE, latency },
            );
            tell(
                &*observer,
                &info,
                Event::Refused { code: IN_CODE, effect: tr_core::Effect::ReadOnly },
            );
            let answer = match end {
                0 => Ok(ToolOutcome::success(serde_json::json!({"token": IN_RESULT}))),
                1 => {
                    let message = format!("bad credentials for {IN_REPORT}");
                    Ok(ToolOutcome::failure(ToolError::new(IN_CODE, message)))
                }
                _ => Err(BoxError::from(format!("login failed: dbPassword={IN_ERROR}"))),
            };
            async move { answer }
        });
        let attempt = TelemetryLayer::attempt(&signals);
        let mut tool = TelemetryLayer::call(&signals).layer(attempt.layer(tool));
        debug += &format!("{:?}", TelemetryLayer::call(&signals));
        let running = tool.ready().await.unwrap().call(call);
        debug += &format!("{running:?}");
        let _ = running.await;
    }
    format!("{}\n{:?}\n{:?}\n{debug}", lines.text(), traced.spans(), metered.read())
}

#[tokio::test]
async fn tr_15_redaction() {
    let shown = shown(Redactor::default()).await;
    for secret in SECRETS {
        assert!(!shown.contains(secret), "{secret} got out:\n{shown}");
    }
    // The test saw something to begin with.
    for seen in [
        "tool_call_start",
        "tool_call_retry",
        "tool_call_end",
        "tool_execution",
        "[redacted]",
        "note:string(",
        "openclaw_tool_calls",
    ] {
        assert!(shown.contains(seen), "{seen} is not there:\n{shown}");
    }
}

/// What is never shown needs no redactor; everything else is kept in by it alone.
#[tokio::test]
async fn without_the_redactor_secrets_get_out() {
    let shown = shown(Identity).await;
    for secret in [IN_PARAMS, IN_PASSWORD, IN_RESULT, IN_KEY] {
        assert!(!shown.contains(secret), "{secret} is of params, results or keys");
    }
    for secret in [IN_NAME, IN_ERROR, IN_REPORT, IN_CODE, IN_SESSION, IN_TOOL] {
        assert!(shown.contains(secret), "{secret} would have stayed without the redactor");
    }
}

/// The values of a tool's sensitive fields stay in wherever they are quoted: no pattern knows them.
#[tokio::test]
async fn tr_15_what_a_tool_s_sensitive_fields_hold_is_not_shown() {
    const PASSPORT: &str = "X17-Ada";
    const ANSWERED: &str = "B 12";
    let shown = async |sensitive: &[&str]| {
        let (lines, _listening) = Lines::listen();
        let traced = Traced::new(Sampler::AlwaysOn);
        let signals = Signals::builder().tracer(traced.tracer()).params_shape().build().unwrap();
        let mut manifest = tr_core::ToolManifest::new("visa");
        manifest.sensitive = sensitive.iter().map(|name| (*name).into()).collect();
        let manifest = std::sync::Arc::new(manifest);
        for answers in [true, false] {
            let params = format!(r#"{{"who":{{"passport_no":"{PASSPORT}"}},"pin":"12345678"}}"#);
            let call = ToolCall::new("visa", Params::from_text(params).unwrap())
                .request_id(format!("r-{PASSPORT}"))
                .manifested(manifest.clone());
            let (observer, outside) = (signals.observer(), call.clone());
            let in_the_middle = move |call: &ToolCall| {
                let (info, reason) = (DefaultPolicy.info(call), format!("no-{PASSPORT}"));
                let (delay, latency, effect) = (Duration::ZERO, Duration::ZERO, Default::default());
                let reason = reason.as_str();
                tell(
                    &*observer,
                    &info,
                    Event::Retry { attempt: 0, delay, retry_after: None, reason, latency },
                );
                tell(&*observer, &info, Event::Refused { code: reason, effect });
                let (from, to) = (BreakerState::Closed, BreakerState::Open);
                tell(&*observer, &info, Event::Breaker { breaker: "visa", from, to });
            };
            // Of a call that goes on without its caller, too.
            in_the_middle(&outside);
            let tool = tower::service_fn(move |call: ToolCall| {
                in_the_middle(&call);
                async move {
                    let said = format!("no visa for {PASSPORT} in block {ANSWERED}");
                    if answers {
                        let mut outcome = ToolOutcome::failure(ToolError::new("refused", said));
                        outcome.parts_mut().content =
                            Some(serde_json::json!({"block": ANSWERED}).into());
                        Ok(outcome)
                    } else {
                        Err(BoxError::from(format!("no visa for {PASSPORT}")))
                    }
                }
            });
            let tool = TelemetryLayer::attempt(&signals).layer(tool);
            let _ = TelemetryLayer::call(&signals).layer(tool).oneshot(call).await;
        }
        format!("{}\n{:?}", lines.text(), traced.spans())
    };
    let open = shown(&[]).await;
    assert!(open.contains(PASSPORT) && open.contains(ANSWERED) && open.contains("pin:string(8)"));
    let closed = shown(&["passportNo", "block", "pin"]).await;
    assert!(!closed.contains(PASSPORT), "{closed}");
    assert!(!closed.contains(ANSWERED), "{closed}");
    assert!(closed.contains("pin:[redacted]") && closed.contains("no visa for [redacted]"));
    // Twice for each call, and once more in the span of the attempt.
    assert!(closed.matches("no-[redacted]").count() >= 8, "{closed}");
    assert!(closed.contains("tool_call_circuit_state") && closed.contains("tool_call_retry"));
}

/// Counts what it is asked.
#[derive(Clone, Debug, Default)]
struct Counting(Arc<AtomicUsize>);

impl Redact for Counting {
    fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.0.fetch_add(1, Relaxed);
        Redactor::default().redact(text).into_owned().into()
    }
}

#[tokio::test]
async fn of_a_success_that_nothing_is_logged_of_nothing_is_redacted() {
    let warnings = |logs| registry().with(LevelFilter::WARN).with(JsonLines::new(logs));
    let (logs, _listening) = Logs::listen(warnings);
    let redactor = Counting::default();
    let signals = Signals::builder().redactor(redactor.clone()).build().unwrap();
    let mut asked = Vec::new();
    for error in [None, Some(ToolError::new("down", format!("token={IN_REPORT}")))] {
        let tool = tower::service_fn(move |_: ToolCall| {
            let end = error.clone().map_or_else(ToolOutcome::default, ToolOutcome::failure);
            async move { Ok::<_, BoxError>(end) }
        });
        let call = ToolCall::new(IN_TOOL, Params::empty_object()).session(IN_SESSION);
        TelemetryLayer::call(&signals).layer(tool).oneshot(call).await.unwrap();
        asked.push(redactor.0.load(Relaxed));
    }
    assert_eq!(asked[0], 0);
    let logged = logs.text();
    assert!(asked[1] > 0 && logged.contains("tool_call_end"), "{logged}");
    for secret in [IN_TOOL, IN_SESSION, IN_REPORT] {
        assert!(!logged.contains(secret), "{logged}");
    }
}
