//! The tools that have series of their own, bounded.
use super::{Instruments, OTHER, Series};
use crate::redact::{self, Redact};
use hashbrown::HashTable;
use std::{
    array,
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock},
};
use tr_core::{KeyRef, STRIPES, Sharded, ToolId, stripe};

/// The tools that have series of their own: those that were named, and the first so many others.
pub(crate) struct Tools {
    instruments: Arc<Instruments>,
    redactor: Arc<dyn Redact>,
    known: Mutex<Known>,
    other: Sharded<Series>,
    /// What threads of one stripe have met, under a lock of their own.
    met: [Met; STRIPES],
}

struct Known {
    by_label: HashMap<Box<str>, Sharded<Series>>,
    room: usize,
}

#[derive(Default)]
#[repr(align(128))]
struct Met(RwLock<HashTable<Entry>>);

struct Entry {
    hash: u64,
    name: Box<str>,
    series: Sharded<Series>,
}

/// Keys remembered per label: tools of several namespaces may have one label.
const KEYS_PER_LABEL: usize = 4;

/// Longer labels are cut, and tools whose labels read the same then share their series.
const LABEL: usize = 128;

/// Longer names are looked up by their label at each call: they are not kept.
const NAME: usize = 512;

impl Tools {
    pub(super) fn new(
        instruments: &Arc<Instruments>,
        redactor: Arc<dyn Redact>,
        named: &[ToolId],
        room: usize,
    ) -> Self {
        let other = Sharded::new(Series::new(instruments.clone(), OTHER, None));
        let known = Known { by_label: HashMap::new(), room: named.len() };
        let tools = Self {
            instruments: instruments.clone(),
            redactor,
            known: Mutex::new(known),
            other,
            met: array::from_fn(|_| Met::default()),
        };
        for tool in named {
            tools.of_label(tool.label(), tool.action());
        }
        tools.known().room = room;
        tools
    }

    #[inline]
    pub(super) fn of_call<'r>(
        &self,
        key: KeyRef<'_>,
        named: impl FnOnce() -> (&'r str, Option<&'r str>),
    ) -> Sharded<Series> {
        let met = self.met[stripe()].0.read().unwrap_or_else(PoisonError::into_inner);
        let is_it = |entry: &Entry| entry.hash == key.hash && key.is_named(&entry.name);
        if let Some(entry) = met.find(key.hash, is_it) {
            return entry.series.clone();
        }
        drop(met);
        let (label, action) = named();
        self.meet(key, label, action)
    }

    #[cold]
    fn meet(&self, key: KeyRef<'_>, label: &str, action: Option<&str>) -> Sharded<Series> {
        let series = self.of_label(label, action);
        let name = Some(key).filter(|key| key.name.len() <= NAME).map(|key| key.to_string());
        let Some(name) = name.filter(|name| name.len() <= NAME) else { return series };
        let most = KEYS_PER_LABEL * self.known().by_label.len();
        let mut met = self.met[stripe()].0.write().unwrap_or_else(PoisonError::into_inner);
        // A tool without series of its own is not remembered: there is no end of them.
        let is_there = met.find(key.hash, |entry| key.is_named(&entry.name)).is_some();
        if !is_there && met.len() < most && !self.is_other(&series) {
            let entry = Entry { hash: key.hash, name: name.into(), series: series.clone() };
            met.insert_unique(key.hash, entry, |entry| entry.hash);
        }
        series
    }

    /// The series with this label, made if there is room.
    pub(crate) fn of_label(&self, label: &str, action: Option<&str>) -> Sharded<Series> {
        let cut = || redact::cut(&*self.redactor, label, LABEL);
        let kept = if label.len() > LABEL { cut() } else { label.into() };
        if kept.is_empty() {
            return self.other.clone();
        }
        let mut known = self.known();
        if let Some(series) = known.by_label.get(&*kept) {
            return series.clone();
        }
        if known.room == 0 {
            return self.other.clone();
        }
        known.room -= 1;
        let series = Sharded::new(Series::new(self.instruments.clone(), &cut(), action));
        known.by_label.insert(kept.into(), series.whole());
        series
    }

    fn is_other(&self, series: &Series) -> bool {
        std::ptr::eq(&raw const *self.other, series)
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tools").field("known", &self.known().by_label.len()).finish_non_exhaustive()
    }
}
