//! Durations of the command line.
use std::time::Duration;

/// Reads `50s`, `500ms`, `10m`, `1.5h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("give a number and ms, s, m or h, such as 50s".into()),
    };
    let number: f64 = number.parse().map_err(|_| "give a number before the unit, such as 50s")?;
    let duration = Duration::try_from_secs_f64(number * scale).ok();
    let day = Duration::from_secs(24 * 3600);
    duration
        .filter(|duration| !duration.is_zero() && *duration <= day)
        .ok_or_else(|| "must be more than 0 and at most 24h".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("50s"), Ok(Duration::from_secs(50)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        for bad in ["", "50", "s", "-1s", "0s", "infs", "1e300h", "NaNs", "5 weeks"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
