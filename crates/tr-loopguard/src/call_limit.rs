//! How many calls a turn and a session may have.
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// The limits for all tools together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CallLimits {
    pub(crate) per_turn: Option<u32>,
    pub(crate) per_session: Option<u32>,
}

/// The calls of a turn or a session.
#[derive(Debug, Default)]
pub(crate) struct CallCount {
    all: u32,
    /// Of the tools with a limit of their own.
    tools: HashMap<u64, u32>,
    pub(crate) last: Option<Instant>,
}

impl CallLimits {
    pub(crate) const fn is_any(&self) -> bool {
        self.per_turn.is_some() || self.per_session.is_some()
    }
}

impl CallCount {
    /// Forgets the one that has been still for the longest time, if another is to be kept.
    pub(crate) fn make_room(all: &mut HashMap<u64, Self>, hash: u64, most: usize) {
        if all.len() >= most
            && !all.contains_key(&hash)
            && let Some(oldest) = all.iter().min_by_key(|(_, it)| it.last).map(|(hash, _)| *hash)
        {
            all.remove(&oldest);
        }
    }

    /// Counts from zero again after this time without a call.
    pub(crate) fn expire(&mut self, after: Option<Duration>, now: Instant) {
        let pause = self.last.map(|last| now.saturating_duration_since(last));
        if after.zip(pause).is_some_and(|(after, pause)| pause >= after) {
            *self = Self::default();
        }
    }

    /// The calls, if they have reached a limit: that for all, or that of the tool, as the second says.
    pub(crate) fn reached(&self, [all, own]: [Option<u32>; 2], tool: u64) -> Option<(u32, bool)> {
        let of_tool = self.tools.get(&tool).copied().unwrap_or(0);
        let own = own.filter(|limit| of_tool >= *limit).map(|_| (of_tool, true));
        own.or_else(|| all.filter(|limit| self.all >= *limit).map(|_| (self.all, false)))
    }

    pub(crate) fn add(&mut self, [_, own]: [Option<u32>; 2], tool: u64, now: Instant) {
        self.all = self.all.saturating_add(1);
        if own.is_some() {
            *self.tools.entry(tool).or_default() += 1;
        }
        self.last = Some(now);
    }
}
