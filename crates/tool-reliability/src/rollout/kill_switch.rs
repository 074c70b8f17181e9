//! The handle that turns a stack on and off and changes its rollout.
use super::{Mode, Rollout};
use std::{
    fmt,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, AtomicU8, Ordering::Relaxed},
    },
};
use tr_core::ToolCall;

/// Turns a stack off and on again while it runs, and changes its [`Rollout`]. Running calls end
/// in the mode in which they began. Off applies to the next call, on to the next call that polls readiness.
///
/// A clone is another handle of the same switch.
#[derive(Clone)]
pub struct KillSwitch(Arc<Setting>);

struct Setting {
    /// The place in `MODES` of the mode of all calls. A call reads nothing else, unless it is `DIFFERS`.
    all: AtomicU8,
    on: AtomicBool,
    rollout: RwLock<Rollout>,
}

const MODES: [Mode; 4] = [Mode::Off, Mode::Observe, Mode::Shadow, Mode::Enforce];
const ENFORCE: u8 = 3;
/// The mode depends on the call.
const DIFFERS: u8 = 4;

impl fmt::Debug for KillSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rollout = self.0.rollout.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_struct("KillSwitch").field("on", &self.is_on()).field("rollout", &*rollout).finish()
    }
}

impl KillSwitch {
    /// On or off, with the default [`Rollout`]: all calls are enforced.
    #[must_use]
    pub fn new(on: bool) -> Self {
        let switch = Self(Arc::new(Setting {
            all: AtomicU8::new(ENFORCE),
            on: AtomicBool::new(true),
            rollout: RwLock::default(),
        }));
        switch.set(on);
        switch
    }

    /// Turns it on or off. Off applies to all calls, whatever the rollout.
    pub fn set(&self, on: bool) {
        let rollout = self.0.rollout.write().unwrap_or_else(PoisonError::into_inner);
        self.0.on.store(on, Relaxed);
        self.0.publish(&rollout);
    }

    /// Whether it is on.
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.0.on.load(Relaxed)
    }

    /// Which calls are guarded from now on, while it is on.
    pub fn set_rollout(&self, rollout: Rollout) {
        let mut current = self.0.rollout.write().unwrap_or_else(PoisonError::into_inner);
        *current = rollout;
        self.0.publish(&current);
    }

    /// Which calls are guarded while it is on.
    #[must_use]
    pub fn rollout(&self) -> Rollout {
        self.0.rollout.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The mode for this call.
    ///
    /// One relaxed load, unless the rollout tells calls apart; then calls share a lock for reading.
    #[must_use]
    #[inline]
    pub fn mode(&self, call: &ToolCall) -> Mode {
        match MODES.get(usize::from(self.0.all.load(Relaxed))) {
            Some(mode) => *mode,
            None => self.0.rollout.read().unwrap_or_else(PoisonError::into_inner).mode(call),
        }
    }

    /// Whether the next call may be enforced, as far as one can tell before there is a call.
    #[inline]
    pub(crate) fn may_enforce(&self) -> bool {
        self.0.all.load(Relaxed) >= ENFORCE
    }
}

impl Setting {
    /// Writes the mode of all calls. The caller holds the rollout's lock for writing, so that of two changes
    /// at once the later one wins.
    fn publish(&self, rollout: &Rollout) {
        let mode = if self.on.load(Relaxed) { rollout.uniform() } else { Some(Mode::Off) };
        // A mode that is unknown here is read from the rollout, call by call.
        let place = MODES.iter().position(|known| Some(*known) == mode);
        self.all.store(place.map_or(DIFFERS, |place| place as u8), Relaxed);
    }
}
