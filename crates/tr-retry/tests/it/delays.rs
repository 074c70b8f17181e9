//! How long a retry waits: doubling, jitter, the tool's own policy.

use crate::common::{Tool, exact, exhausted, ms, search, timeout};
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tower::{Layer, ServiceExt};
use tr_core::{Effect, Params, RetryOverride, ToolCall, ToolManifest, code};
use tr_retry::{RetryConfig, RetryLayer, RetryStop};
use tr_testkit::tool::Step;

const SEEDS: u64 = 1_000;

/// The delays that a call gets under `policy` and `seed` if all attempts fail at once.
async fn delays(config: &RetryConfig, seed: u64, call: ToolCall) -> Vec<Duration> {
    let layer = RetryLayer::builder().config(config.clone()).seed(seed).build().unwrap();
    let tool = layer.layer(Tool::script([timeout()]).then_repeat_last());
    let error = tool.oneshot(call).await.unwrap_err();
    exhausted(&error).retried().iter().map(|retried| retried.delay).collect()
}

fn within(delay: Duration, low: u64, high: u64) -> bool {
    (ms(low)..=ms(high)).contains(&delay)
}

#[tokio::test(start_paused = true)]
async fn tr_05_exponential_jitter_is_observed() {
    let mut firsts = BTreeSet::new();
    let mut sums = [0.0; 3];
    for seed in 0..SEEDS {
        let delays = delays(&RetryConfig::default(), seed, search()).await;
        for ((sum, delay), ceiling) in sums.iter_mut().zip(&delays).zip([200, 400, 800]) {
            assert!(within(*delay, 0, ceiling), "{delay:?}");
            *sum += delay.as_secs_f64();
        }
        assert_eq!(delays.len(), 3);
        firsts.insert(delays[0]);
    }
    assert!(firsts.len() > 990, "{} different first delays", firsts.len());
    #[expect(clippy::cast_precision_loss)]
    let means = sums.map(|sum| (sum / SEEDS as f64 * 1_000.0).round());
    for (mean, expected) in means.into_iter().zip([100.0, 200.0, 400.0]) {
        assert!(
            (mean - expected).abs() < expected * 0.06,
            "full jitter has a mean of half: {means:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn single_settings_change_and_the_others_stay() {
    let builder = || RetryLayer::builder().seed(7);
    let ends = async |layer: RetryLayer| {
        let tool = layer.layer(Tool::script([timeout()]).then_repeat_last());
        let error = tool.oneshot(search()).await.unwrap_err();
        exhausted(&error).retried().iter().map(|retried| retried.delay).collect::<Vec<_>>()
    };
    let plain = ends(builder().build().unwrap()).await;
    let two = ends(builder().attempts(2).build().unwrap()).await;
    assert_eq!(two, plain[..1]);
    let doubled = ends(builder().base(ms(400)).build().unwrap()).await;
    for (delay, plain) in doubled.iter().zip(&plain) {
        assert!(delay.abs_diff(*plain * 2) < ms(1), "{doubled:?}, {plain:?}");
    }
    let capped = ends(builder().cap(ms(200)).build().unwrap()).await;
    assert_eq!(capped[0], plain[0]);
    assert!(capped.iter().all(|delay| *delay <= ms(200)), "{capped:?}");
    let hurried = ends(builder().max_elapsed(plain[0] + ms(1)).build().unwrap()).await;
    assert_eq!(hurried, plain[..1]);
    let refused = RetryLayer::builder().attempts(0).cap(None).max_elapsed(None).build();
    assert!(refused.unwrap_err().to_string().contains("attempts"));
}

#[tokio::test(start_paused = true)]
async fn eh_2_1_delays_double_from_attempt_start_to_attempt_start() {
    for seed in 0..SEEDS {
        let delays = delays(&RetryConfig::fixed_cadence(), seed, search()).await;
        assert_eq!(delays.len(), 4);
        for (delay, nominal) in delays.iter().zip([100, 200, 400, 800]) {
            assert!(within(*delay, nominal * 9 / 10, nominal * 11 / 10), "{delay:?}");
        }
        assert!(within(delays.iter().sum(), 1_350, 1_650));
    }

    // The attempt's own time counts: nothing is left to wait after a slow one.
    let slow = Step::after(ms(150), timeout());
    let tool = Tool::script([slow.clone(), slow, timeout(), timeout(), timeout()]);
    let asked = tool.handle();
    let _ = exact(RetryConfig::fixed_cadence()).layer(tool).oneshot(search()).await;
    assert_eq!(asked.starts(), [0, 150, 350, 750, 1_550].map(ms));
}

#[tokio::test(start_paused = true)]
async fn eh_2_2_jitter_of_ten_percent() {
    let mut config = RetryConfig::fixed_cadence();
    (config.attempts, config.multiplier) = (11, 1.0);
    let (mut all, mut off) = (Duration::ZERO, 0);
    for seed in 0..SEEDS {
        let delays = delays(&config, seed, search()).await;
        assert!(delays.iter().all(|delay| within(*delay, 90, 110)), "{delays:?}");
        assert!(delays.iter().collect::<BTreeSet<_>>().len() >= 8, "{delays:?}");
        let mean = delays.iter().sum::<Duration>() / 10;
        off += u32::from(!within(mean, 95, 105));
        all += mean;
    }
    // Ten draws stray by 5 ms once in 150 times; the drawing itself is centred.
    assert!(off <= 20, "{off} of {SEEDS} means stray");
    assert!(within(all / 1_000, 99, 101), "{all:?}");
}

#[tokio::test(start_paused = true)]
async fn eh_2_3_no_sixth_attempt() {
    let tool = Tool::script(std::iter::repeat_n(timeout(), 5)); // a sixth call would panic
    let asked = tool.handle();
    let error = RetryLayer::fixed_cadence().layer(tool).oneshot(search()).await.unwrap_err();
    assert_eq!((exhausted(&error).attempts(), asked.calls()), (5, 5));
}

#[tokio::test(start_paused = true)]
async fn eh_2_4_no_attempt_starts_after_two_seconds() {
    let mut config = RetryConfig::fixed_cadence();
    config.max_elapsed = Some(ms(2_000));
    let tool = Tool::script([Step::after(ms(600), timeout())]).then_repeat_last();
    let asked = tool.handle();
    let layer = RetryLayer::builder().config(config).build().unwrap();
    let error = layer.layer(tool).oneshot(search()).await.unwrap_err();

    assert_eq!(asked.starts(), [0, 600, 1_200, 1_800].map(ms));
    assert_eq!(asked.ends().last(), Some(&ms(2_400)), "the one in flight ends");
    let error = exhausted(&error);
    assert_eq!((error.why(), error.code()), (RetryStop::Elapsed, code::RETRY_EXHAUSTED));
    let latencies: Vec<_> = error.retried().iter().map(|one| one.latency).collect();
    assert_eq!(latencies, [600, 600, 600].map(ms));
}

#[tokio::test(start_paused = true)]
async fn eh_2_5_the_manifest_overrides_the_policy() {
    let mut manifest = ToolManifest::new("custom_api");
    manifest.effect = Some(Effect::ReadOnly);
    manifest.retry = Some(RetryOverride {
        base: Some(ms(50)),
        cap: Some(ms(2_000)),
        attempts: Some(3),
        ..RetryOverride::default()
    });
    let custom_api =
        ToolCall::new("custom_api", Params::empty_object()).manifested(Arc::new(manifest));
    for seed in 0..SEEDS {
        let delays = delays(&RetryConfig::fixed_cadence(), seed, custom_api.clone()).await;
        assert_eq!(delays.len(), 2, "3 attempts and not 5");
        assert!(within(delays[0], 45, 55) && within(delays[1], 90, 110), "{delays:?}");
    }

    let tool = Tool::script([timeout()]).then_repeat_last();
    let asked = tool.handle();
    let _ = exact(RetryConfig::fixed_cadence()).layer(tool).oneshot(custom_api).await;
    assert_eq!(asked.starts(), [0, 50, 150].map(ms));
}
