//! The open sessions of a process, with an optional store.
use super::{CycleMode, Session, cycle::LoadNote};
use crate::{
    config::Layer0Config,
    remote::{Log, Remote},
    store::SessionStore,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};
use tr_core::{
    CallInfo, ConfigError, Event, KeyRef, Observer, SystemClock, WallClock, debug_parts,
    internal::lock, setters,
};
use tr_transcript::Format;

/// The number of locks over the map of sessions, to reduce contention.
const SHARDS: usize = 16;

/// The open sessions of a process; a clone shares them.
///
/// The first call that names a session opens it; it stays in memory until it is
/// [removed](Self::remove). With a [store](SessionsBuilder::store), layers load a session before
/// its first call, and store each tool's intent and end; changes made by [`with`](Self::with) are
/// stored with the next of these, or by [`flush`](Self::flush), or at once by
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
    /// Set once a default observer was added.
    default_observer: OnceLock<()>,
}

/// Called with the id of a session in which a turn begins.
type Listener = dyn Fn(&str) + Send + Sync;

type Shard = HashMap<Box<str>, Slot>;

/// An open session and its log.
#[derive(Clone)]
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
    /// Uses the defaults; new sessions are in this format.
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

    /// Calls `listener` from now on with the id of each session in which a turn begins: a user's
    /// message with more than results is pushed. The session is locked during the call, so the
    /// listener must neither block nor use the sessions.
    pub fn on_turn(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        lock(&self.0.listeners).push(Box::new(listener));
    }

    /// Notifies `observer` from now on of changes made while a session is loaded: it is repaired
    /// ([`Repaired`](tr_core::SessionAction::Repaired)), and cycles whose process died are settled
    /// ([`Abandoned`](tr_core::SessionAction::Abandoned) if their tools may have run, else
    /// [`RolledBack`](tr_core::SessionAction::RolledBack)). Changes made in a call go to the observer of its
    /// layer. Adding the same observer twice has no further effect.
    pub fn observe(&self, observer: Arc<dyn Observer>) {
        let mut observers = lock(&self.0.observers);
        if !observers.iter().any(|other| Arc::ptr_eq(other, &observer)) {
            observers.push(observer);
        }
    }

    /// Adds a default observer: only the first one that is given here is added. So several stacks
    /// over the same sessions report the changes of a load once.
    pub fn observe_by_default(&self, observer: Arc<dyn Observer>) {
        if self.0.default_observer.set(()).is_ok() {
            self.observe(observer);
        }
    }

    /// Notifies the observers of what was done while this session was loaded.
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

    /// Calls `work` with a session, which is opened if necessary, and the time in milliseconds
    /// since the Unix epoch. The session is locked during the call.
    ///
    /// With a store, [load](Self::load) the session first: a session that is opened here is empty,
    /// and its first write is a conflict if the store has one with this id.
    pub fn with<T>(&self, id: &str, work: impl FnOnce(&mut Session, u64) -> T) -> T {
        self.work(&self.open_slot(id), work)
    }

    /// Adds an existing session; replaces one with the same id. With a store, it is written with
    /// its next change, which is a conflict if the store has one with this id.
    pub fn insert(&self, session: Session) {
        let id: Box<str> = session.id().into();
        let slot = self.begun(self.set_up(session));
        lock(self.shard(&id)).insert(id, slot);
    }

    /// Closes a session and returns it, if it is open, no call is running in it, and all of its
    /// changes are stored.
    #[must_use]
    pub fn remove(&self, id: &str) -> Option<Session> {
        let mut shard = lock(self.shard(id));
        let Slot { session, log } = shard.get(id)?;
        let is_written = |log: &Arc<Log>| log.is_lost() || log.is_written(&lock(session));
        // No caller gets another share of it while the shard is locked.
        if Arc::strong_count(session) > 1 || !log.as_ref().is_none_or(is_written) {
            return None;
        }
        let session = Arc::into_inner(shard.remove(id)?.session)?;
        Some(session.into_inner().unwrap_or_else(PoisonError::into_inner))
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

    /// The session, if it is open.
    pub(crate) fn slot(&self, id: &str) -> Option<Slot> {
        lock(self.shard(id)).get(id).cloned()
    }

    /// The session; opened empty if necessary, without a look into the store.
    pub(crate) fn open_slot(&self, id: &str) -> Slot {
        let mut shard = lock(self.shard(id));
        if let Some(slot) = shard.get(id) {
            return slot.clone();
        }
        let slot = self.begun(self.fresh(id));
        shard.insert(id.into(), slot.clone());
        slot
    }

    /// Replaces the session `expected`; `None` if another one is open.
    pub(crate) fn put(&self, id: &str, slot: Slot, expected: Option<&Slot>) -> Option<Slot> {
        let mut shard = lock(self.shard(id));
        let session = |slot: &Slot| Arc::as_ptr(&slot.session);
        if shard.get(id).map(session) != expected.map(session) {
            return None;
        }
        shard.insert(id.into(), slot.clone());
        Some(slot)
    }

    pub(crate) fn forget(&self, id: &str) -> bool {
        lock(self.shard(id)).remove(id).is_some()
    }

    /// A session without messages, with these settings.
    pub(crate) fn fresh(&self, id: &str) -> Session {
        self.set_up(Session::new(id, self.0.format))
    }

    /// Applies these settings to a session.
    pub(crate) fn set_up(&self, session: Session) -> Session {
        let Shared { config, mode, remote, .. } = &*self.0;
        let driver = remote.as_ref().map_or(0, |remote| remote.driver);
        session.configured(config, *mode, driver)
    }

    /// Opens a session that the store does not have.
    fn begun(&self, mut session: Session) -> Slot {
        let log = self.0.remote.as_ref().map(|remote| {
            session.keep_changes(false);
            Arc::new(Log::new(session.id(), Arc::clone(remote), None))
        });
        Slot { session: Arc::new(Mutex::new(session)), log }
    }

    /// Works on an open session, with the time in milliseconds since the Unix epoch.
    pub(crate) fn work<T>(&self, slot: &Slot, work: impl FnOnce(&mut Session, u64) -> T) -> T {
        self.work_on_cycle(slot, |session, now| {
            let turns = session.turns;
            let done = work(session, now);
            if session.turns != turns {
                lock(&self.0.listeners).iter().for_each(|listener| listener(&session.id));
            }
            session.worked();
            done
        })
    }

    /// The same for changes that a call makes again after a conflict.
    pub(crate) fn work_on_cycle<T>(
        &self,
        slot: &Slot,
        work: impl FnOnce(&mut Session, u64) -> T,
    ) -> T {
        let now = self.0.clock.unix_ms();
        work(&mut lock(&slot.session), now)
    }

    fn shard(&self, id: &str) -> &Mutex<Shard> {
        let hash = KeyRef::new(id).hash as usize;
        &self.0.shards[hash % SHARDS]
    }
}

impl SessionsBuilder {
    setters! {
        /// Sets the session layers' configuration.
        fn config(config: Layer0Config) { config = config }

        /// Sets how failed cycles are treated: [`CycleMode::Preserve`] by default.
        fn mode(mode: CycleMode) { mode = mode }

        /// Sets the source of timestamps: the system clock by default.
        fn clock(clock: Arc<dyn WallClock>) { clock = clock }

        /// Sets a store that is shared with others.
        fn shared_store(store: Arc<dyn SessionStore>) { store = Some(store) }
    }

    /// Sets the store, so that sessions outlive the process: none by default.
    pub fn store(self, store: impl SessionStore) -> Self {
        self.shared_store(Arc::new(store))
    }

    /// Builds the sessions.
    ///
    /// # Errors
    /// If a value is out of its range; lists all errors.
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

debug_parts! { Sessions, |it| open = it.len() }
