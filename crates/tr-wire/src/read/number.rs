//! Numbers, with whole ones kept exact.
use std::fmt;

/// The largest whole number that every JSON reader keeps exact.
pub(super) const MAX_SAFE: u64 = (1 << 53) - 1;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    Whole(i128),
    Real(f64),
}

impl Number {
    /// A JSON number; `5e3` and `5000.0` are as whole as `5000`.
    pub fn parse(text: &str) -> Option<Self> {
        match text.parse() {
            Ok(whole) => Some(Self::Whole(whole)),
            Err(_) => text.parse().ok().map(Self::real),
        }
    }

    pub(crate) fn real(real: f64) -> Self {
        if real.fract() == 0.0 && real.abs() <= MAX_SAFE as f64 {
            return Self::Whole(real as i128);
        }
        Self::Real(real)
    }

    pub fn whole(self, min: u64, max: u64) -> Option<u64> {
        match self {
            Self::Whole(whole) => {
                u64::try_from(whole).ok().filter(|whole| (min..=max).contains(whole))
            }
            Self::Real(_) => None,
        }
    }

    pub fn between(self, min: f64, max: f64) -> Option<f64> {
        let real = match self {
            Self::Whole(whole) => whole as f64,
            Self::Real(real) => real,
        };
        (min..=max).contains(&real).then_some(real)
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(whole) => whole.fmt(f),
            Self::Real(real) if real.abs() >= 1e15 => write!(f, "{real:e}"),
            Self::Real(real) => real.fmt(f),
        }
    }
}
