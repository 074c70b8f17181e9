//! The sessions of a process: in memory, and where there is a store, there too.
use super::{CycleMode, Session, ToolUse};
use crate::{
    config::{ConfigError, Layer0Config},
    format::Format,
    remote::{Log, Remote},
    store::SessionStore,
};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};
use tr_core::{CallInfo, Event, KeyRef, Observer, SessionAction, SystemClock, WallClock};

/// Sessions under different locks, so that threads with different sessions seldom meet.
const SHARDS: usize = 16;

/// The sessions of a process; a clone shares them.
///
/// A session is opened by the first call that names it, and stays in memory until it is
/// [removed](Self::remove). With a [store](SessionsBuilder::store), layers load a session before
/// its first call, and record each tool's intent and end there; what is done by [`with`](Self::with)
/// is written along with the next of these, or by [`flush`](Self::flush), or at once by
/// [`change`](Self::change).
///
/// ```
/// use tr_integrity::{Format, Sessions};
///
/// let sessions = Sessions::new(Format::OpenAiChat);
/// let message = Format::OpenAiChat.read(r#"{"role":"user","content":"hi"}"#)?;
/// let len = sessions.with("s-1", |session, _now| {
///     session.push(message);
///     session.transcript().len()
/// });
/// assert_eq!(len, 1);
/// # Ok::<_, tr_integrity::ReadError>(())
/// ```
#[derive(Clone)]
pub struct Sessions(Arc<Shared>);

struct Shared {
    shards: [Mutex<Shard>; SHARDS],
    format: Format,
    config: Arc<Layer0Config>,
    mode: CycleMode,
    clock: Arc<dyn WallClock>,
    remote: Option<Arc<Remote>>,
    listeners: Mutex<Vec<Box<Listener>>>,
    observers: Mutex<Vec<Arc<dyn Observer>>>,
    /// One of them was given by default.
    default_observer: OnceLock<()>,
}

/// What was done while a session was loaded; about which cycle, if not about the session.
pub(crate) type LoadNote = (Option<ToolUse>, SessionAction);

/// Is told of the session in which a turn begins.
type Listener = dyn Fn(&str) + Send + Sync;

type Shard = HashMap<Box<str>, Slot>;

/// An open session, and its way to the store.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) session: Arc<Mutex<Session>>,
    pub(crate) log: Option<Arc<Log>>,
}

/// Configures [`Sessions`].
#[derive(Debug)]
#[must_use]
pub struct SessionsBuilder {
    format: Format,
    config: Layer0Config,
    mode: CycleMode,
    clock: Arc<dyn WallClock>,
    store: Option<Arc<dyn SessionStore>>,
}

impl Sessions {
    /// With the defaults; new sessions are in this format.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self::builder(format).build().expect("the defaults are valid")
    }

    /// Starts from the defaults; new sessions are in this format.
    pub fn builder(format: Format) -> SessionsBuilder {
        SessionsBuilder {
            format,
            config: Layer0Config::default(),
            mode: CycleMode::default(),
            clock: Arc::new(SystemClock),
            store: None,
        }
    }

    /// Tells `listener`, from now on, of each session to which a user's message is pushed that holds
    /// more than results: a turn begins there. It is called while the session is locked, so it must
    /// neither block nor use the sessions.
    pub fn on_turn(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        lock(&self.0.listeners).push(Box::new(listener));
    }

    /// Tells `observer`, from now on, of what is done while a session is loaded: it is repaired
    /// ([`Repaired`](SessionAction::Repaired)), and cycles whose process died are settled
    /// ([`Abandoned`](SessionAction::Abandoned) if their tools may have run, else
    /// [`RolledBack`](SessionAction::RolledBack)). What is done in a call is told to the observer of
    /// its layer. An observer that is given twice is told once.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        let mut observers = lock(&self.0.observers);
        if !observers.iter().any(|other| Arc::ptr_eq(other, &observer)) {
            observers.push(observer);
        }
    }

    /// The same for who tells of these sessions unless somebody else does: only the first that is
    /// given here is told. So several stacks over the same sessions tell once what loading did.
    pub fn observe_by_default(&self, observer: Arc<dyn Observer>) {
        if self.0.default_observer.set(()).is_ok() {
            self.observe(observer);
        }
    }

    /// Tells the observers what was done while this session was loaded.
    pub(crate) fn tell_loaded(&self, id: &str, done: &[LoadNote]) {
        if done.is_empty() {
            return;
        }
        let observers = lock(&self.0.observers).clone();
        for observer in observers.iter().filter(|observer| observer.enabled()) {
            for (tool_use, action) in done {
                let mut call = CallInfo::of(tool_use.as_ref().map_or("model", |used| &used.name));
                call.tool_call_id = tool_use.as_ref().map(|used| &*used.id);
                call.session = Some(id);
                observer.on_event(&call, &Event::Session { action: *action, removed: 0 });
            }
        }
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Layer0Config {
        &self.0.config
    }

    /// Does something with a session, which is opened if it is new, and the time in milliseconds
    /// since the Unix epoch. The session is locked meanwhile.
    ///
    /// With a store, [load](Self::load) the session first: one that is opened here begins anew, and
    /// is a conflict if the store has it.
    pub fn with<T>(&self, id: &str, work: impl FnOnce(&mut Session, u64) -> T) -> T {
        self.work(&self.open(id), work)
    }

    /// Does something with a session if it is open.
    pub fn with_open<T>(&self, id: &str, work: impl FnOnce(&mut Session, u64) -> T) -> Option<T> {
        self.slot(id).map(|slot| self.work(&slot.session, work))
    }

    /// Takes a session that exists already; one of the same id goes. With a store, it is written
    /// with its next change, and is a conflict if the store has one of this id.
    pub fn insert(&self, session: Session) {
        let id: Box<str> = session.id().into();
        let slot = self.begun(self.set_up(session));
        lock(self.shard(&id)).insert(id, slot);
    }

    /// Closes a session and gives it back, if it is open, no call is on its way in it, and nothing
    /// of it waits for the store.
    #[must_use]
    pub fn remove(&self, id: &str) -> Option<Session> {
        let mut shard = lock(self.shard(id));
        let is_written = |slot: &Slot| {
            slot.log
                .as_ref()
                .is_none_or(|log| log.is_lost() || log.is_written(&lock(&slot.session)))
        };
        let (id, slot) =
            shard.get(id).is_some_and(is_written).then(|| shard.remove_entry(id))??;
        let Slot { session, log } = slot;
        match Arc::try_unwrap(session) {
            Ok(session) => Some(session.into_inner().unwrap_or_else(PoisonError::into_inner)),
            Err(session) => {
                shard.insert(id, Slot { session, log });
                None
            }
        }
    }

    /// How many are open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    /// Whether none is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether there is a store.
    pub(crate) fn is_durable(&self) -> bool {
        self.0.remote.is_some()
    }

    pub(crate) fn remote(&self) -> Option<&Arc<Remote>> {
        self.0.remote.as_ref()
    }

    /// The session if it is open.
    pub(crate) fn slot(&self, id: &str) -> Option<Slot> {
        lock(self.shard(id)).get(id).cloned()
    }

    pub(crate) fn open(&self, id: &str) -> Arc<Mutex<Session>> {
        self.open_slot(id).session
    }

    /// The session, which is opened if it is new, whatever the store has.
    pub(crate) fn open_slot(&self, id: &str) -> Slot {
        let mut shard = lock(self.shard(id));
        if let Some(slot) = shard.get(id) {
            return slot.clone();
        }
        let slot = self.begun(self.fresh(id));
        shard.insert(id.into(), slot.clone());
        slot
    }

    /// Puts a session in the place of `expected`; `None` if another is there by now.
    pub(crate) fn put(
        &self,
        id: &str,
        slot: Slot,
        expected: Option<&Arc<Mutex<Session>>>,
    ) -> Option<Slot> {
        let mut shard = lock(self.shard(id));
        let found = shard.get(id).map(|slot| Arc::as_ptr(&slot.session));
        if found != expected.map(Arc::as_ptr) {
            return None;
        }
        shard.insert(id.into(), slot.clone());
        Some(slot)
    }

    pub(crate) fn forget(&self, id: &str) -> bool {
        lock(self.shard(id)).remove(id).is_some()
    }

    /// A session without messages.
    pub(crate) fn fresh(&self, id: &str) -> Session {
        self.set_up(Session::new(id, self.0.format))
    }

    /// A session with the settings of these.
    pub(crate) fn set_up(&self, session: Session) -> Session {
        let Shared { config, mode, remote, .. } = &*self.0;
        let driver = remote.as_ref().map_or(0, |remote| remote.driver);
        session.configured(config, *mode, driver)
    }

    /// A session that the store does not have.
    fn begun(&self, mut session: Session) -> Slot {
        let log = self.0.remote.as_ref().map(|remote| {
            session.keep_changes(false);
            Arc::new(Log::new(session.id(), Arc::clone(remote), None))
        });
        Slot { session: Arc::new(Mutex::new(session)), log }
    }

    pub(crate) fn work<T>(
        &self,
        session: &Mutex<Session>,
        work: impl FnOnce(&mut Session, u64) -> T,
    ) -> T {
        self.work_on_cycle(session, |session, now| {
            let turns = session.turns;
            let done = work(session, now);
            if session.turns != turns {
                lock(&self.0.listeners).iter().for_each(|listener| listener(&session.id));
            }
            session.worked();
            done
        })
    }

    /// The same, for changes that would be made anew if another writer was first.
    pub(crate) fn work_on_cycle<T>(
        &self,
        session: &Mutex<Session>,
        work: impl FnOnce(&mut Session, u64) -> T,
    ) -> T {
        let now = self.0.clock.unix_ms();
        work(&mut lock(session), now)
    }

    fn shard(&self, id: &str) -> &Mutex<Shard> {
        let hash = KeyRef::new(id).hash as usize;
        &self.0.shards[hash % SHARDS]
    }
}

/// A panic elsewhere leaves a session as it was between two operations.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SessionsBuilder {
    /// 002's configuration.
    pub fn config(mut self, config: Layer0Config) -> Self {
        self.config = config;
        self
    }

    /// What to do with a cycle that failed: [`CycleMode::Preserve`] by default.
    pub fn mode(mut self, mode: CycleMode) -> Self {
        self.mode = mode;
        self
    }

    /// Where timestamps come from: the machine's clock by default.
    pub fn clock(mut self, clock: Arc<dyn WallClock>) -> Self {
        self.clock = clock;
        self
    }

    /// Keeps the sessions here too, so that they outlive the process: none by default.
    pub fn store(self, store: impl SessionStore) -> Self {
        self.shared_store(Arc::new(store))
    }

    /// The same with a store that others have too.
    pub fn shared_store(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.store = Some(store);
        self
    }

    /// The sessions.
    ///
    /// # Errors
    /// If a value is out of its range; all faults are listed.
    pub fn build(self) -> Result<Sessions, ConfigError> {
        let Self { format, config, mode, clock, store } = self;
        config.check()?;
        let (shards, config) = (Default::default(), Arc::new(config));
        let remote = store.map(|store| Arc::new(Remote::new(store, Arc::clone(&clock))));
        let (listeners, observers) = (Mutex::default(), Mutex::default());
        Ok(Sessions(Arc::new(Shared {
            shards,
            format,
            config,
            mode,
            clock,
            remote,
            listeners,
            observers,
            default_observer: OnceLock::new(),
        })))
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("open", &self.len()).finish_non_exhaustive()
    }
}
