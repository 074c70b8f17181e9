//! A monotonic time in one 64-bit word.
use std::{
    fmt,
    num::NonZeroU64,
    sync::OnceLock,
    time::{Duration, Instant},
};

/// A time of the monotonic clock in one 64-bit word, as a request carries it to inner layers.
///
/// Subtracting two [`Instant`]s costs half as much as reading the clock, and an atomic cannot hold
/// one. So the layer that reads the clock converts the time once, and inner layers use the result.
/// It is valid in this process only.
///
/// ```
/// use std::time::Duration;
/// use tr_policy::internal::CoarseInstant;
///
/// # let began = std::time::Instant::now();
/// let (began, ended) = (CoarseInstant::at(began), CoarseInstant::at(began + Duration::from_millis(5)));
/// assert_eq!(ended.since(began), Duration::from_millis(5));
/// assert_eq!(began.since(ended), Duration::ZERO);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoarseInstant(NonZeroU64);

/// The word of [`ZERO`]. Words count nanoseconds from there, 292 years in both directions: a test
/// may have advanced the clock before the first use.
const MIDDLE: NonZeroU64 = NonZeroU64::new(1 << 63).expect("not zero");

/// A day before the first instant that was converted, so that most others are later.
static ZERO: OnceLock<Instant> = OnceLock::new();

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl CoarseInstant {
    /// Converts `instant`.
    #[inline]
    pub fn at(instant: Instant) -> Self {
        let zero = *ZERO.get_or_init(|| instant.checked_sub(DAY).unwrap_or(instant));
        match instant.checked_duration_since(zero) {
            Some(after) => Self(MIDDLE | nanos(after)),
            None => Self::before(zero.saturating_duration_since(instant)),
        }
    }

    #[cold]
    fn before(by: Duration) -> Self {
        Self(NonZeroU64::new(MIDDLE.get().saturating_sub(nanos(by))).unwrap_or(NonZeroU64::MIN))
    }

    /// The instant that it was made from.
    pub fn instant(self) -> Instant {
        let zero = *ZERO.get().expect("set by `at`");
        let (word, middle) = (self.0.get(), MIDDLE.get());
        if word >= middle {
            zero + Duration::from_nanos(word - middle)
        } else {
            zero.checked_sub(Duration::from_nanos(middle - word)).unwrap_or(zero)
        }
    }

    /// The time since `earlier`; zero if that is not earlier.
    #[inline]
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.nanos_since(earlier))
    }

    /// The same in nanoseconds.
    #[inline]
    pub const fn nanos_since(self, earlier: Self) -> u64 {
        self.0.get().saturating_sub(earlier.0.get())
    }

    /// The word, for an atomic. Words are ordered like their times, and none is 0.
    #[inline]
    pub const fn to_word(self) -> u64 {
        self.0.get()
    }
}

/// Wraps after 584 years.
#[inline]
const fn nanos(duration: Duration) -> u64 {
    duration.as_secs().wrapping_mul(1_000_000_000).wrapping_add(duration.subsec_nanos() as u64)
}

impl fmt::Debug for CoarseInstant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "CoarseInstant({:+.9} s)",
            (self.0.get() as i64).wrapping_sub(i64::MIN) as f64 * 1e-9
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        #[expect(clippy::disallowed_methods, reason = "any instant will do; no time passes here")]
        fn stamps_are_as_far_apart_as_their_instants(by in 0_u64..1 << 60, back: bool) {
            let now = Instant::now();
            let by = Duration::from_nanos(by);
            let Some(then) = (if back { now.checked_sub(by) } else { now.checked_add(by) }) else {
                return Ok(());
            };
            let (now, then) = (CoarseInstant::at(now), CoarseInstant::at(then));
            let (early, late) = if back { (then, now) } else { (now, then) };
            prop_assert_eq!(late.since(early), by);
            prop_assert_eq!(early.since(late), Duration::ZERO);
            prop_assert_eq!(early.cmp(&late), early.instant().cmp(&late.instant()));
            prop_assert_eq!(late.instant() - early.instant(), by);
            prop_assert_eq!(early.to_word().cmp(&late.to_word()), early.cmp(&late));
        }
    }

    #[test]
    fn a_request_has_room_for_one_in_a_word() {
        assert_eq!(size_of::<Option<CoarseInstant>>(), size_of::<u64>());
    }
}
