//! The settings from which a stack starts.
use tr_retry::RetryConfig;
use tr_wire::read::words;

/// The settings from which a stack starts, by the name of the document that asks for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Preset {
    /// 4 attempts with full jitter within 30 s, 10 s for an attempt, breakers by declared effect.
    #[default]
    ToolReliability,
    /// 5 attempts at a steady rate, 30 s for an attempt, breakers that one success closes.
    ErrorHandling,
    /// 3 attempts, an attempt as long as its request says, the breakers of `tool_reliability`.
    Utee,
}

words! {
    Preset {
        ToolReliability = "tool_reliability", ErrorHandling = "error_handling", Utee = "utee",
    }
}

impl Preset {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::ToolReliability, Self::ErrorHandling, Self::Utee];

    /// Its attempts and delays.
    #[must_use]
    pub fn retry(self) -> RetryConfig {
        match self {
            Self::ToolReliability => RetryConfig::default(),
            Self::ErrorHandling => RetryConfig::fixed_cadence(),
            Self::Utee => RetryConfig::per_request(),
        }
    }

    /// The preset's name.
    #[must_use]
    pub fn name(self) -> &'static str {
        <Self as tr_wire::read::Words>::word(self)
    }
}
