//! Who began the sessions, and with which credentials their callers go on.
use crate::engine::identity::Via;
use indexmap::IndexMap;
use std::sync::Mutex;
use tokio::time::Instant;
use tr_core::{canonical::Digest, internal::lock};

/// The sessions of which it is known when they began; beyond it the oldest is another client's.
const MOST_SESSIONS: usize = 10_000;

/// The credentials of one session at a time; beyond it the oldest but the first is forgotten.
const MOST_CREDENTIALS: usize = 8;

/// The sessions that the guard knows, by their names.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<IndexMap<Box<str>, Session>>);

#[derive(Debug)]
struct Session {
    /// When it began; `None` if the guard has not seen that.
    begun: Option<Instant>,
    /// Its client, as `name/version`.
    client: Option<Box<str>>,
    /// Who began it.
    caller: Box<str>,
    /// The credential with which it began, and those that the server has accepted in it since; `None` if clients share
    /// it.
    credentials: Option<Vec<Digest>>,
}

impl Sessions {
    /// A session has begun with this request. If the server gives its name to clients of two credentials, it is shared.
    pub(super) fn begin(
        &self,
        session: Box<str>,
        begun: Instant,
        client: Option<Box<str>>,
        via: &Via,
    ) {
        let mut new = Session { begun: Some(begun), client, ..Session::of(via) };
        let mut all = lock(&self.0);
        if all.get(&session).is_some_and(|known| known.credentials != new.credentials) {
            new.credentials = None;
        }
        add(&mut all, session, new);
    }

    /// The request as one of its session, whose caller may have renewed its credential: if it `works`, since the server
    /// has accepted it in this session, and no session of another caller knows it.
    pub(super) fn of(&self, via: Via, works: impl FnOnce() -> bool) -> Via {
        let (Some(name), Some(credential)) = (via.session(), via.credential) else { return via };
        let mut all = lock(&self.0);
        let Some(Session { caller, credentials, .. }) = all.get(name) else {
            if works() {
                add(&mut all, name.into(), Session::of(&via));
            }
            return via;
        };
        let Some(known) = credentials else { return via };
        // A session may begin without a credential.
        let caller = if known.is_empty() { via.caller() } else { caller };
        let is_of_another = |session: &Session| {
            *session.caller != *caller
                && session.credentials.iter().flatten().any(|it| *it == credential)
        };
        let is_new = !known.contains(&credential) && !all.values().any(is_of_another) && works();
        let caller = Box::<str>::from(caller);
        let Some(Session { caller: of, credentials: Some(known), .. }) = all.get_mut(name) else {
            return via;
        };
        if is_new {
            of.clone_from(&caller);
            if known.len() == MOST_CREDENTIALS {
                known.remove(1);
            }
            known.push(credential);
        }
        if known.is_empty() {
            return via;
        }
        let is_its = known.contains(&credential);
        let others = known.iter().filter(|it| is_its && **it != credential).copied().collect();
        via.in_session_of(&caller, is_its, others)
    }

    pub(super) fn began(&self, session: &str) -> Option<Instant> {
        lock(&self.0).get(session)?.begun
    }

    pub(super) fn client(&self, session: &str) -> Option<Box<str>> {
        lock(&self.0).get(session)?.client.clone()
    }
}

impl Session {
    fn of(via: &Via) -> Self {
        let (caller, credentials) = (via.caller().into(), via.credential.into_iter().collect());
        let credentials = Some(credentials);
        Self { begun: None, client: None, caller, credentials }
    }
}

fn add(all: &mut IndexMap<Box<str>, Session>, name: Box<str>, session: Session) {
    all.shift_remove(&name);
    if all.len() == MOST_SESSIONS {
        all.shift_remove_index(0);
    }
    all.insert(name, session);
}
