//! Durations for people.
use std::{fmt, time::Duration};

/// `50 ms`, `1.5 s`, `300 s`: at most three significant digits.
pub(super) struct HumanDuration(pub(super) Duration);

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_secs_f64() * 1e3;
        let text = match millis {
            _ if self.0.is_zero() => "0 s".to_owned(),
            ..0.9995 => format!("{:.0} µs", millis * 1e3),
            ..999.5 => format!("{millis:.0} ms"),
            _ if self.0.subsec_nanos() == 0 => format!("{} s", self.0.as_secs()),
            ..99_950.0 => format!("{:.1} s", millis / 1e3),
            _ => format!("{:.0} s", millis / 1e3),
        };
        f.pad(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (millis, text) in [
            (0.0, "0 s"),
            (0.25, "250 µs"),
            (50.0, "50 ms"),
            (1500.0, "1.5 s"),
            (20e3, "20 s"),
            (300e3, "300 s"),
        ] {
            assert_eq!(HumanDuration(Duration::from_secs_f64(millis / 1e3)).to_string(), text);
        }
    }
}
