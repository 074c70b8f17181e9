//! Invalid settings.
use std::{error::Error, fmt};

/// Invalid settings, with every fault of every builder. Each `build()` returns it, and no setter
/// fails. Its `Debug` says the same as its `Display`, for programs that return it from `main`.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigError(Vec<Part>);

/// The faults of one builder.
#[derive(Clone, PartialEq, Eq)]
struct Part {
    of: &'static str,
    faults: Vec<String>,
}

impl ConfigError {
    /// Fails if there are faults; `of` says what is configured.
    ///
    /// ```
    /// use tr_policy::ConfigError;
    ///
    /// let faults = vec!["`after` is 0ns, must be 1ms to 24h".to_owned()];
    /// let error = ConfigError::check("timeout", faults).unwrap_err();
    /// assert_eq!(error.to_string(), "invalid timeout configuration: `after` is 0ns, must be 1ms to 24h");
    /// assert!(ConfigError::check("timeout", Vec::new()).is_ok());
    /// ```
    ///
    /// # Errors
    /// If `faults` is not empty.
    pub fn check(of: &'static str, faults: Vec<String>) -> Result<(), Self> {
        if faults.is_empty() { Ok(()) } else { Err(Self(vec![Part { of, faults }])) }
    }

    /// The faults of both.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        self.0.extend(other.0);
        self
    }

    /// The faults, one by one.
    pub fn faults(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flat_map(|part| &part.faults).map(String::as_str)
    }
}

impl fmt::Debug for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One line for each builder.
impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, Part { of, faults }) in self.0.iter().enumerate() {
            let begin = if n == 0 { "" } else { "\n" };
            write!(f, "{begin}invalid {of} configuration: {}", faults.join("; "))?;
        }
        Ok(())
    }
}

impl Error for ConfigError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_faults_of_all_builders_are_listed() {
        let error = |of, faults: &[&str]| {
            let faults = faults.iter().map(|&fault| fault.to_owned()).collect();
            ConfigError::check(of, faults).unwrap_err()
        };
        let joined = error("retry", &["a", "b"]).and(error("breaker", &["c"]));
        assert_eq!(joined.faults().collect::<Vec<_>>(), ["a", "b", "c"]);
        assert_eq!(
            joined.to_string(),
            "invalid retry configuration: a; b\ninvalid breaker configuration: c"
        );
    }
}
