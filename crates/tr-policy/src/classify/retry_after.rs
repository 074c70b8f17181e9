//! When a callee asks us to come back.
use crate::WallClock;
use std::time::{Duration, UNIX_EPOCH};

/// The upper bound of a hint: adding it to any instant cannot overflow.
const LONGEST: Duration = Duration::from_secs(u32::MAX as u64);

/// What the headers ask for; the finer one first.
pub(super) fn from_headers<'h>(
    header: impl Fn(&str) -> Option<&'h str>,
    clock: &dyn WallClock,
) -> Option<Duration> {
    let millis = header("retry-after-ms").and_then(millis);
    millis.or_else(|| retry_after(header("retry-after")?, clock))
}

/// Reads a `Retry-After` value: seconds, or one of the three dates of RFC 9110.
///
/// A date that has passed means now. `None` for anything else.
#[must_use]
pub fn retry_after(value: &str, clock: &dyn WallClock) -> Option<Duration> {
    let value = value.trim_ascii();
    if let Some(seconds) = digits(value) {
        return Some(Duration::from_secs(seconds).min(LONGEST));
    }
    let date = httpdate::parse_http_date(value).ok()?.duration_since(UNIX_EPOCH).ok()?;
    let now = Duration::from_millis(clock.unix_ms());
    Some(date.saturating_sub(now).min(LONGEST))
}

/// Reads milliseconds, as `retry-after-ms` and gRPC's pushback give them.
pub(super) fn millis(value: &str) -> Option<Duration> {
    digits(value.trim_ascii()).map(|millis| Duration::from_millis(millis).min(LONGEST))
}

/// Digits only: no sign, no fraction. A number too large for 64 bits is still a long wait.
fn digits(value: &str) -> Option<u64> {
    let all = !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
    all.then(|| value.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SetClock;

    /// Sun, 06 Nov 1994 08:49:37 GMT, RFC 9110's own example.
    const EXAMPLE: u64 = 784_111_777_000;

    fn read(value: &str, now: u64) -> Option<Duration> {
        retry_after(value, &SetClock::at(now))
    }

    #[test]
    fn seconds() {
        assert_eq!(read("0", 0), Some(Duration::ZERO));
        assert_eq!(read(" 120 ", 0), Some(Duration::from_secs(120)));
        assert_eq!(read("99999999999999999999999", 0), Some(LONGEST));
    }

    #[test]
    fn all_three_dates() {
        for date in [
            "Sun, 06 Nov 1994 08:49:37 GMT",
            "Sunday, 06-Nov-94 08:49:37 GMT",
            "Sun Nov  6 08:49:37 1994",
        ] {
            assert_eq!(read(date, EXAMPLE - 30_000), Some(Duration::from_secs(30)), "{date}");
            assert_eq!(read(date, EXAMPLE + 1), Some(Duration::ZERO), "{date} has passed");
        }
    }

    #[test]
    fn malformed_means_absent() {
        for value in ["", "soon", "-1", "+1", "1.5", "1e3", "12 s", "Sun, 99 Nov 1994 08:49:37 GMT"]
        {
            assert_eq!(read(value, 0), None, "{value}");
        }
    }

    #[test]
    fn milliseconds_come_first_if_they_are_well_formed() {
        let ask = |ms: &'static str| {
            let header = move |name: &str| match name {
                "retry-after-ms" => Some(ms),
                "retry-after" => Some("7"),
                _ => None,
            };
            from_headers(header, &SetClock::at(0))
        };
        assert_eq!(ask("250"), Some(Duration::from_millis(250)));
        assert_eq!(ask("2.5"), Some(Duration::from_secs(7)));
    }
}
