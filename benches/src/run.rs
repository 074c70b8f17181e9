//! The loop around a service that everything is measured in.
use rustix::time::{ClockId, clock_gettime};
use std::{cell::Cell, fmt, hint::black_box, time::Duration};
use tokio::runtime::{Builder, Runtime};
use tower::{Service, ServiceExt};

thread_local! {
    static LEAF: Cell<u64> = const { Cell::new(0) };
}

/// Notes that a leaf service ran, so that a run can show that it did the work it is named after.
#[inline]
pub fn note_leaf() {
    LEAF.set(LEAF.get() + 1);
}

/// What each call of a run comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comes {
    /// To a success of the leaf.
    Through,
    /// To a success without the leaf.
    Replayed,
    /// To an error without the leaf.
    Refused,
}

/// Some work, to be done as often as one likes.
pub struct Run {
    /// Does it so often, and says how many calls succeeded.
    work: Box<dyn FnMut(u64) -> u64>,
    comes: Comes,
    /// Calls until nothing about it is new any more.
    warm: u64,
}

/// Calls after which every part of a cache of [`RECORDS`](crate::ours::RECORDS) is full and all buffers have grown.
const WARM: u64 = 4 * crate::ours::RECORDS as u64;

impl Run {
    /// Calls `service`, on a current-thread runtime, with one request after the other.
    pub fn service<S, Q>(comes: Comes, service: S, request: impl FnMut() -> Q + 'static) -> Self
    where
        S: Service<Q> + 'static,
    {
        Self::service_on(runtime(), comes, service, request)
    }

    /// The same on a runtime of the caller's.
    pub fn service_on<S, Q>(
        runtime: Runtime,
        comes: Comes,
        mut service: S,
        mut request: impl FnMut() -> Q + 'static,
    ) -> Self
    where
        S: Service<Q> + 'static,
    {
        let work = move |times| {
            runtime.block_on(async {
                let mut successes = 0;
                for _ in 0..times {
                    let request = black_box(request());
                    let Ok(service) = service.ready().await else { continue };
                    successes += u64::from(black_box(service.call(request).await).is_ok());
                }
                successes
            })
        };
        Self { work: Box::new(work), comes, warm: WARM }
    }

    /// Awaits, on a current-thread runtime, one future after the other.
    pub fn futures<F, T, E>(comes: Comes, mut next: impl FnMut() -> F + 'static) -> Self
    where
        F: Future<Output = Result<T, E>>,
    {
        let runtime = runtime();
        let work = move |times| {
            runtime.block_on(async {
                let mut successes = 0;
                for _ in 0..times {
                    successes += u64::from(black_box(next().await).is_ok());
                }
                successes
            })
        };
        Self { work: Box::new(work), comes, warm: WARM }
    }

    /// Calls a function; it has no leaf.
    pub fn function<T>(mut function: impl FnMut() -> T + 'static) -> Self {
        let work = move |times| {
            for _ in 0..times {
                black_box(function());
            }
            times
        };
        Self { work: Box::new(work), comes: Comes::Replayed, warm: 100 }
    }

    /// Enters something each time before it works.
    #[must_use]
    pub fn within<G>(self, enter: impl Fn() -> G + 'static) -> Self {
        let Self { mut work, comes, warm } = self;
        let work = move |times| {
            let _inside = enter();
            work(times)
        };
        Self { work: Box::new(work), comes, warm }
    }

    /// Keeps something alive for as long as itself.
    #[must_use]
    pub fn holding(self, held: impl Sized + 'static) -> Self {
        let Self { mut work, comes, warm } = self;
        let work = move |times| {
            let _alive = &held;
            work(times)
        };
        Self { work: Box::new(work), comes, warm }
    }

    /// Is warm after so many calls.
    #[must_use]
    pub fn warm_after(self, calls: u64) -> Self {
        Self { warm: calls, ..self }
    }

    /// Does the work so often.
    pub fn times(&mut self, times: u64) {
        black_box((self.work)(times));
    }

    /// Does the work so often and says how long this thread [worked] for it.
    pub fn timed(&mut self, times: u64) -> Duration {
        let before = worked();
        self.times(times);
        worked().saturating_sub(before)
    }

    /// Does it until nothing about it is new any more.
    ///
    /// # Panics
    /// If it does not do what it says: then all figures of it would be wrong.
    #[must_use]
    pub fn warm(mut self) -> Self {
        self.times(self.warm);
        assert_eq!(self.seen(), self.wanted(), "of 100 calls: (successes, runs of the leaf)");
        self
    }

    /// Of 100 calls, those that succeed and those that run the leaf.
    pub fn seen(&mut self) -> (u64, u64) {
        let before = LEAF.get();
        let successes = (self.work)(100);
        (successes, LEAF.get() - before)
    }

    /// The same, as the run says of itself.
    #[must_use]
    pub const fn wanted(&self) -> (u64, u64) {
        match self.comes {
            Comes::Through => (100, 100),
            Comes::Replayed => (100, 0),
            Comes::Refused => (0, 0),
        }
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("comes", &self.comes).finish_non_exhaustive()
    }
}

/// How long this thread has worked. Other programs on the machine don't count.
#[must_use]
pub fn worked() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The runtime that all runs use.
///
/// # Panics
/// If the system has no runtime to give.
#[must_use]
pub fn runtime() -> Runtime {
    Builder::new_current_thread().enable_time().build().expect("a current-thread runtime")
}

/// Makes a run.
pub type Make = fn() -> Run;
