//! When a call came in, by both clocks.
use std::time::{Duration, Instant};

/// When a call came in, by both clocks: what turns a wall time of the wire into a deadline.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// By the monotonic clock.
    pub now: Instant,
    /// By the wall clock, in milliseconds since the Unix epoch.
    pub unix_ms: u64,
}

impl Arrival {
    /// The instant of a wall time; a past one is now. `None` if it is too far off to matter.
    pub(crate) fn instant_of(self, unix_ms: u64) -> Option<Instant> {
        self.now.checked_add(Duration::from_millis(unix_ms.saturating_sub(self.unix_ms)))
    }
}

/// A UUIDv7 for a request that names none, from the wall time and 80 random bits.
///
/// ```
/// let id = tr_wire::uuid_v7(0x0123_4567_89ab, [0xff; 10]);
/// assert_eq!(&*id, "01234567-89ab-7fff-bfff-ffffffffffff");
/// ```
#[must_use]
pub fn uuid_v7(unix_ms: u64, random: [u8; 10]) -> Box<str> {
    let [a, b, rest @ ..] = random;
    let high = (unix_ms << 16) | 0x7000 | u64::from(u16::from_be_bytes([a, b]) & 0x0fff);
    let low = (1 << 63) | (u64::from_be_bytes(rest) & (u64::MAX >> 2));
    let time = high >> 16;
    format!(
        "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
        (time >> 16) & 0xffff_ffff,
        time & 0xffff,
        high & 0xffff,
        low >> 48,
        low & 0xffff_ffff_ffff
    )
    .into()
}
