//! The sessions of a process, in memory.
use super::{CycleMode, Session};
use crate::{
    config::{ConfigError, Layer0Config},
    format::Format,
};
use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tr_core::{KeyRef, SystemClock, WallClock};

/// Sessions under different locks, so that threads with different sessions seldom meet.
const SHARDS: usize = 16;

/// The sessions of a process, in memory; a clone shares them.
///
/// A session is opened by the first call that names it, and stays until it is
/// [removed](Self::remove).
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
    listeners: Mutex<Vec<Box<Listener>>>,
}

/// Is told of the session in which a turn begins.
type Listener = dyn Fn(&str) + Send + Sync;

type Shard = HashMap<Box<str>, SharedSession>;
type SharedSession = Arc<Mutex<Session>>;

/// Configures [`Sessions`].
#[derive(Debug)]
#[must_use]
pub struct SessionsBuilder {
    format: Format,
    config: Layer0Config,
    mode: CycleMode,
    clock: Arc<dyn WallClock>,
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
        }
    }

    /// Tells `listener`, from now on, of each session to which a user's message is pushed that holds
    /// more than results: a turn begins there. It is called while the session is locked, so it must
    /// neither block nor use the sessions.
    pub fn on_turn(&self, listener: impl Fn(&str) + Send + Sync + 'static) {
        lock(&self.0.listeners).push(Box::new(listener));
    }

    /// The configuration.
    #[must_use]
    pub fn config(&self) -> &Layer0Config {
        &self.0.config
    }

    /// Does something with a session, which is opened if it is new, and the time in milliseconds
    /// since the Unix epoch. The session is locked meanwhile.
    pub fn with<T>(&self, id: &str, work: impl FnOnce(&mut Session, u64) -> T) -> T {
        self.work(&self.open(id), work)
    }

    /// Does something with a session if it is open.
    pub fn with_open<T>(&self, id: &str, work: impl FnOnce(&mut Session, u64) -> T) -> Option<T> {
        let session = lock(self.shard(id)).get(id).cloned();
        session.map(|session| self.work(&session, work))
    }

    /// Takes a session that exists already; one of the same id goes.
    pub fn insert(&self, session: Session) {
        let Shared { config, mode, .. } = &*self.0;
        let session = session.configured(config, *mode);
        let id: Box<str> = session.id().into();
        lock(self.shard(&id)).insert(id.clone(), Arc::new(Mutex::new(session)));
    }

    /// Closes a session and gives it back, if it is open and no call is on its way in it.
    #[must_use]
    pub fn remove(&self, id: &str) -> Option<Session> {
        let mut shard = lock(self.shard(id));
        let (id, session) = shard.remove_entry(id)?;
        match Arc::try_unwrap(session) {
            Ok(session) => Some(session.into_inner().unwrap_or_else(PoisonError::into_inner)),
            Err(session) => {
                shard.insert(id, session);
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

    pub(crate) fn open(&self, id: &str) -> SharedSession {
        let Shared { format, config, mode, .. } = &*self.0;
        let mut shard = lock(self.shard(id));
        if let Some(session) = shard.get(id) {
            return Arc::clone(session);
        }
        let session = Session::new(id, *format).configured(config, *mode);
        let session = Arc::new(Mutex::new(session));
        shard.insert(id.into(), Arc::clone(&session));
        session
    }

    pub(crate) fn work<T>(
        &self,
        session: &Mutex<Session>,
        work: impl FnOnce(&mut Session, u64) -> T,
    ) -> T {
        let now = self.0.clock.unix_ms();
        let mut session = lock(session);
        let turns = session.turns;
        let done = work(&mut session, now);
        if session.turns != turns {
            lock(&self.0.listeners).iter().for_each(|listener| listener(&session.id));
        }
        done
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

    /// The sessions.
    ///
    /// # Errors
    /// If a value is out of its range; all faults are listed.
    pub fn build(self) -> Result<Sessions, ConfigError> {
        let Self { format, config, mode, clock } = self;
        config.check()?;
        let (shards, config) = (Default::default(), Arc::new(config));
        let listeners = Mutex::default();
        Ok(Sessions(Arc::new(Shared { shards, format, config, mode, clock, listeners })))
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").field("open", &self.len()).finish_non_exhaustive()
    }
}
