//! Measures what layers add to a call: a bare service beside the same one with layers around it.
//!
//! # When to use
//!
//! In a benchmark or an example of your own, to see what your stack costs with your settings and
//! your requests. Build it with `--release`: unoptimized layers take ten times as long and more.
//!
//! # Example
//!
//! ```
//! use std::{convert::Infallible, time::Duration};
//! use tower::{ServiceBuilder, service_fn};
//! use tr_testkit::overhead;
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), tr_testkit::BoxError> {
//! let bare = service_fn(async |n: u64| Ok::<_, Infallible>(n));
//! let stacked = ServiceBuilder::new().timeout(Duration::from_secs(10)).service(bare);
//! println!("{}", overhead::measure(bare, stacked, |n| n).await?);
//! # Ok(()) }
//! ```
//!
//! It prints one line: `… ns added to … ns per call (9 of 10 rounds: … to … ns)`.
//!
//! # How it measures
//!
//! Rounds in which both services take turns, so that what slows the machine slows both. A round
//! calls the bare service some times, one call after the other, then the stacked one as often, with
//! the same requests; the difference of the two times, per call, is one sample. Both times include
//! making the request, so the difference does not. The time is real time, whatever tokio's clock
//! does. A machine that is busy with other programs makes the spread wider.
//!
//! A tool that answers at once shows the layers alone. Around a tool that takes milliseconds, its
//! own spread hides them.

use std::{
    fmt,
    future::poll_fn,
    hint::black_box,
    ops::Range,
    sync::LazyLock,
    time::{Duration, Instant},
};

use tower_service::Service;
use tr_core::{BoxError, setters};

/// How much is measured.
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct Plan {
    rounds: usize,
    calls: Option<u64>,
    clock: fn() -> Duration,
}

/// The bare calls of a round last at least this long, unless their number is set: reading the clock counts little then.
const ROUND: Duration = Duration::from_micros(100);

/// The most calls of a round that are chosen without being asked for.
const MOST: u64 = 1 << 16;

impl Default for Plan {
    fn default() -> Self {
        Self::new()
    }
}

impl Plan {
    /// 200 rounds in real time, each with as many calls as the bare service answers in 100 µs, at most 65,536.
    pub const fn new() -> Self {
        Self { rounds: 200, calls: None, clock: real_time }
    }

    setters! {
        /// Sets the number of rounds, at least 1; 200 by default.
        fn rounds(rounds: usize) { rounds = if rounds == 0 { 1 } else { rounds } }

        /// Sets the calls of a round to each service, at least 1. With 1, each sample is a single
        /// call, so the percentiles are those of calls; reading the clock then adds some 20 ns to
        /// each, bare and stacked alike.
        fn calls(calls: u64) { calls = Some(if calls == 0 { 1 } else { calls }) }

        /// Reads the time from `clock`, which only has to grow: the processor time of the thread,
        /// say, of which other programs take nothing. Calls must not wait for anything then.
        fn clock(clock: fn() -> Duration) { clock = clock }
    }

    /// Calls both services with the requests that `request` makes of 0, 1, 2 and so on. Both get the same
    /// numbers, the first ones unmeasured, to fill caches and buffers.
    ///
    /// A stack that recognizes repeats by a key needs another key for each number: else it replays the first
    /// answer, and the tool does not run.
    ///
    /// # Errors
    ///
    /// The first error of a service. A refusal takes another time than a call, so no figure is made of it.
    pub async fn measure<Req, A, B>(
        self,
        mut bare: A,
        mut stacked: B,
        mut request: impl FnMut(u64) -> Req,
    ) -> Result<Overhead, BoxError>
    where
        A: Service<Req, Error: Into<BoxError>>,
        B: Service<Req, Error: Into<BoxError>>,
    {
        let mut next = 0;
        let mut calls = self.calls.unwrap_or(1);
        loop {
            let numbers = next..next + calls;
            next = numbers.end;
            let took = self.batch(&mut bare, numbers.clone(), &mut request).await?;
            self.batch(&mut stacked, numbers, &mut request).await?;
            if self.calls.is_some() || took >= ROUND || calls >= MOST {
                break;
            }
            calls *= 2;
        }
        let mut taken = [const { Vec::new() }; 3];
        for _ in 0..self.rounds {
            let numbers = next..next + calls;
            next = numbers.end;
            let per_call = |took: Duration| took.as_nanos() as f64 / calls as f64;
            let of_bare = per_call(self.batch(&mut bare, numbers.clone(), &mut request).await?);
            let of_stacked = per_call(self.batch(&mut stacked, numbers, &mut request).await?);
            for (taken, time) in taken.iter_mut().zip([of_bare, of_stacked, of_stacked - of_bare]) {
                taken.push(time);
            }
        }
        let [bare, stacked, added] = taken.map(Times::new);
        Ok(Overhead { bare, stacked, added })
    }

    /// How long it takes to make the requests of these numbers and to have them answered.
    async fn batch<Req, S>(
        self,
        service: &mut S,
        numbers: Range<u64>,
        request: &mut impl FnMut(u64) -> Req,
    ) -> Result<Duration, BoxError>
    where
        S: Service<Req, Error: Into<BoxError>>,
    {
        let begun = (self.clock)();
        for number in numbers {
            let request = black_box(request(number));
            poll_fn(|cx| service.poll_ready(cx)).await.map_err(Into::into)?;
            black_box(service.call(request).await).map_err(Into::into)?;
        }
        Ok((self.clock)().saturating_sub(begun))
    }
}

/// [`Plan::measure`] with the default plan; it takes less than a second where calls take microseconds.
///
/// # Errors
///
/// The first error of a service.
pub async fn measure<Req, A, B>(
    bare: A,
    stacked: B,
    request: impl FnMut(u64) -> Req,
) -> Result<Overhead, BoxError>
where
    A: Service<Req, Error: Into<BoxError>>,
    B: Service<Req, Error: Into<BoxError>>,
{
    Plan::new().measure(bare, stacked, request).await
}

#[expect(clippy::disallowed_methods, reason = "real time is measured, whatever tokio's clock does")]
fn real_time() -> Duration {
    static BEGUN: LazyLock<Instant> = LazyLock::new(Instant::now);
    BEGUN.elapsed()
}

/// What was measured. `Display` shows medians, and the range of added time in 9 of 10 rounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Overhead {
    /// Time per call of the bare service.
    pub bare: Times,
    /// Time per call of the service with its layers.
    pub stacked: Times,
    /// The difference of the two in the same round; it can be negative.
    pub added: Times,
}

impl fmt::Display for Overhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bare, added, .. } = self;
        let [low, high] = [5.0, 95.0].map(|percent| added.percentile(percent));
        let unit =
            if low.abs().max(high.abs()) < 10_000.0 { Unit(1.0, "ns") } else { Unit(1e3, "µs") };
        let (median, bare) = (unit.show(added.median()), unit.show(bare.median()));
        let (low, high, Unit(_, name)) = (unit.show(low), unit.show(high), &unit);
        write!(
            f,
            "{median} {name} added to {bare} {name} per call (9 of 10 rounds: {low} to {high} {name})"
        )
    }
}

struct Unit(f64, &'static str);

impl Unit {
    fn show(&self, nanoseconds: f64) -> String {
        let value = nanoseconds / self.0;
        let decimals = if self.0 > 1.0 && value.abs() < 100.0 { 1 } else { 0 };
        format!("{value:.decimals$}")
    }
}

/// Nanoseconds per call, one figure for each round.
#[derive(Clone, Debug, PartialEq)]
pub struct Times(Vec<f64>);

impl Times {
    fn new(mut times: Vec<f64>) -> Self {
        times.sort_unstable_by(f64::total_cmp);
        Self(times)
    }

    /// The middle one, in nanoseconds.
    pub fn median(&self) -> f64 {
        self.percentile(50.0)
    }

    /// The smallest that this percentage of all does not exceed, in nanoseconds: 95 for the 95th percentile. It is a
    /// time that was measured; 0 and less give the smallest, 100 and more the largest.
    pub fn percentile(&self, percent: f64) -> f64 {
        let rank = (self.0.len() as f64 * percent / 100.0).ceil() as usize;
        self.0[rank.clamp(1, self.0.len()) - 1]
    }
}
