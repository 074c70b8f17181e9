//! Settings that contradict each other.
use super::{Config, breaker::BreakerConfig};
use tr_wire::read::Faults;

/// The window and the least calls of a rate, where nothing is said.
const WINDOW: u32 = 20;
const MIN_CALLS: u32 = 10;

/// Reports the settings that contradict others.
pub(super) fn relations(config: &Config, faults: &mut Faults) {
    of_breaker(&config.breaker, faults);
    let retry = &config.retry;
    let preset = config.preset.unwrap_or_default().retry();
    let base = retry.base.unwrap_or(preset.base);
    if let Some(cap) = retry.cap.unwrap_or(preset.cap).filter(|cap| *cap < base) {
        let (base, cap) = (base.as_millis(), cap.as_millis());
        let (at, expected, found) = match retry.cap {
            Some(_) => ("cap_ms", format!("{base} milliseconds or more, as `base_ms` is"), cap),
            None => ("base_ms", format!("at most {cap} milliseconds, as `cap_ms` is"), base),
        };
        faults.add(format!("/retry/{at}"), expected, found.to_string());
    }
}

fn of_breaker(breaker: &BreakerConfig, faults: &mut Faults) {
    let window = breaker.window.unwrap_or(WINDOW);
    let min_calls = breaker.min_calls.unwrap_or(MIN_CALLS);
    if min_calls > window {
        let (at, expected, found) = match breaker.min_calls {
            Some(_) => ("min_calls", format!("at most {window}, as `window` is"), min_calls),
            None => ("window", format!("{min_calls} or more, as `min_calls` is"), window),
        };
        faults.add(format!("/breaker/{at}"), expected, found.to_string());
    }
    if breaker.forced_open == Some(true) && breaker.mode == Some(tr_breaker::Mode::Disabled) {
        let expected = "false, where the mode is `disabled`";
        faults.add("/breaker/forced_open", expected, "true");
    }
    let is_none = breaker.consecutive_failures == Some(None)
        && breaker.failure_rate == Some(None)
        && breaker.slow_calls.is_none();
    if is_none {
        let expected = "`consecutive`, `failure_rate` or `slow_calls`, by which breakers open";
        faults.add("/breaker/consecutive", expected, "none of them");
    }
}
