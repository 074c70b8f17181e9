//! Durations as people write them: `30s`, `500ms`, `1.5s`.
use std::{fmt, time::Duration};

/// A duration in whole milliseconds, from one second on in seconds; a shorter one in microseconds.
#[derive(Clone, Copy, Debug)]
pub struct HumanDuration(pub Duration);

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, millis) = (self.0.as_secs(), self.0.subsec_millis());
        match (seconds, millis) {
            (0, 0) if !self.0.is_zero() => write!(f, "{}µs", self.0.as_micros()),
            (0, 1..) => write!(f, "{millis}ms"),
            (_, 0) => write!(f, "{seconds}s"),
            _ => write!(f, "{seconds}.{}s", format!("{millis:03}").trim_end_matches('0')),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_read_as_people_write_them() {
        for (micros, text) in [
            (0, "0s"),
            (7, "7µs"),
            (1_000, "1ms"),
            (500_000, "500ms"),
            (1_000_000, "1s"),
            (1_005_000, "1.005s"),
            (1_500_999, "1.5s"),
            (30_000_000, "30s"),
            (90_000_000, "90s"),
        ] {
            assert_eq!(HumanDuration(Duration::from_micros(micros)).to_string(), text);
        }
    }
}
