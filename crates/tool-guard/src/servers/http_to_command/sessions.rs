//! The sessions of clients: whose they are, and when they end. No I/O.
use std::{
    collections::HashMap,
    time::{Duration, Instant},
};

/// For so long a session is no other client's to end.
const NEVER_BEFORE: Duration = Duration::from_secs(60);

/// How many sessions there may be, and how long one may go without a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) most: usize,
    pub(crate) idle: Duration,
}

/// The sessions, by their ids.
#[derive(Debug)]
pub(super) struct Sessions<T> {
    limits: Limits,
    all: HashMap<Box<str>, Session<T>>,
}

/// A session.
#[derive(Debug)]
pub(super) struct Session<T> {
    /// The credential of the client that began it.
    owner: [u8; 32],
    pub(super) last_used: Instant,
    /// Whether it has called a tool.
    pub(super) has_called: bool,
    pub(super) value: T,
}

impl<T> Sessions<T> {
    pub(super) fn new(limits: Limits) -> Self {
        Self { limits, all: HashMap::new() }
    }

    /// Ends a session for one of this owner's, if there is no place, and returns it. Clients often leave without a word.
    /// So the longest idle session that has called no tool is ended, else the longest idle one of this owner's.
    ///
    /// # Errors
    /// How long it is until there can be room.
    pub(super) fn make_room(
        &mut self,
        owner: &[u8; 32],
        now: Instant,
        is_busy: impl Fn(&T) -> bool,
    ) -> Result<Option<Session<T>>, Duration> {
        if self.all.len() < self.limits.most {
            return Ok(None);
        }
        let idle = |session: &Session<T>| now.duration_since(session.last_used);
        let may_end = |it: &Session<T>| !it.has_called || it.owner == *owner;
        let quiet = |it: &Session<T>| !is_busy(&it.value);
        let is_over = |it: &Session<T>| may_end(it) && idle(it) >= NEVER_BEFORE && quiet(it);
        let over = self.all.iter().filter(|(_, it)| is_over(it));
        let first = over.min_by_key(|(_, it)| (it.has_called, it.last_used));
        if let Some(id) = first.map(|(id, _)| id.clone()) {
            return Ok(self.all.remove(&id));
        }
        let until = |it: &Session<T>| {
            let limit = if may_end(it) { NEVER_BEFORE } else { self.limits.idle };
            limit.saturating_sub(idle(it))
        };
        let waits = self.all.values().filter(|it| quiet(it)).map(until);
        Err(waits.min().unwrap_or(NEVER_BEFORE))
    }

    /// Adds a session of this owner, under an id from these random bits.
    pub(super) fn add(
        &mut self,
        random: [u8; 16],
        owner: [u8; 32],
        now: Instant,
        value: T,
    ) -> Box<str> {
        let id: Box<str> = format!("{:032x}", u128::from_be_bytes(random)).into();
        let session = Session { owner, last_used: now, has_called: false, value };
        self.all.insert(id.clone(), session);
        id
    }

    /// The session, for its owner, which now `calls` a tool or not.
    pub(super) fn get(
        &mut self,
        id: &str,
        owner: &[u8; 32],
        now: Instant,
        calls: bool,
    ) -> Option<&T> {
        let session = self.all.get_mut(id).filter(|session| session.owner == *owner)?;
        session.last_used = now;
        session.has_called |= calls;
        Some(&session.value)
    }

    /// Removes a session, for its owner.
    pub(super) fn remove(&mut self, id: &str, owner: &[u8; 32]) -> Option<T> {
        self.all.get(id).filter(|session| session.owner == *owner)?;
        self.all.remove(id).map(|session| session.value)
    }

    /// Removes the sessions that are over, or were not used for long.
    pub(super) fn expire(
        &mut self,
        now: Instant,
        is_over: impl Fn(&T) -> bool,
        is_used: impl Fn(&T) -> bool,
    ) -> Vec<T> {
        let ended = self.all.extract_if(|_, session| {
            if is_used(&session.value) {
                session.last_used = now;
            }
            is_over(&session.value) || now.duration_since(session.last_used) >= self.limits.idle
        });
        ended.map(|(_, session)| session.value).collect()
    }

    /// Removes all of them.
    pub(super) fn take_all(&mut self) -> Vec<T> {
        self.all.drain().map(|(_, session)| session.value).collect()
    }

    /// All sessions.
    pub(super) fn values(&self) -> impl Iterator<Item = &T> {
        self.all.values().map(|session| &session.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALICE: [u8; 32] = [1; 32];
    const MALLORY: [u8; 32] = [2; 32];
    const IDLE: Duration = Duration::from_secs(30 * 60);
    const SECOND: Duration = Duration::from_secs(1);

    fn sessions<T>(most: usize) -> (Sessions<T>, Instant) {
        let sessions = Sessions::new(Limits { most, idle: IDLE });
        (sessions, tokio::time::Instant::now().into_std())
    }

    #[test]
    fn a_session_is_its_owner_s_alone() {
        let (mut sessions, now) = sessions(9);
        let id = sessions.add([0xa7; 16], ALICE, now, "shop");
        assert_eq!(&*id, "a7".repeat(16));
        assert_eq!(sessions.get(&id, &ALICE, now, false), Some(&"shop"));
        assert_eq!(sessions.get(&id, &MALLORY, now, false), None);
        assert_eq!(sessions.remove(&id, &MALLORY), None);
        assert_eq!(sessions.remove(&id, &ALICE), Some("shop"));
        assert_eq!(sessions.get(&id, &ALICE, now, false), None);
    }

    #[test]
    fn a_session_ends_with_its_server_or_after_half_an_hour_without_use() {
        let (mut sessions, start) = sessions(9);
        let used = sessions.add([1; 16], ALICE, start, "idle");
        sessions.add([2; 16], ALICE, start, "idle");
        sessions.add([3; 16], ALICE, start, "streaming");
        sessions.add([4; 16], ALICE, start, "over");
        let is_over = |it: &&str| *it == "over";
        let is_used = |it: &&str| *it == "streaming";
        assert_eq!(sessions.expire(start, is_over, is_used), ["over"]);
        let later = start + IDLE - SECOND;
        sessions.get(&used, &ALICE, later, false);
        assert!(sessions.expire(later, is_over, is_used).is_empty());
        assert_eq!(sessions.expire(start + IDLE, is_over, is_used), ["idle"]);
        // The stream has just ended.
        let ended = sessions.expire(start + IDLE + 5 * SECOND, is_over, |_| false);
        assert_eq!((ended.len(), sessions.values().count()), (0, 2));
    }

    #[test]
    fn at_the_limit_those_end_that_called_nothing_then_the_owner_s_longest_idle() {
        let (mut sessions, start) = sessions(4);
        let at = |seconds: u32| start + seconds * SECOND;
        let mut add = |n: u8, owner| {
            assert!(matches!(sessions.make_room(&owner, start, |_| false), Ok(None)));
            sessions.add([n; 16], owner, start, n)
        };
        let [first, second, other, _silent] =
            [add(1, ALICE), add(2, ALICE), add(3, MALLORY), add(4, MALLORY)];
        sessions.get(&other, &MALLORY, start, true);
        sessions.get(&second, &ALICE, at(1), true);
        sessions.get(&first, &ALICE, at(2), true);
        let mut room = |owner, now, busy: &[u8]| {
            let made = sessions.make_room(&owner, now, |it| busy.contains(it));
            let made = made.map(|made| made.map(|ended| (ended.value, ended.has_called)));
            // The place is taken by one that is always busy.
            if let Ok(Some(_)) = made {
                sessions.add([made.unwrap().unwrap().0 + 10; 16], owner, now, 0);
            }
            made
        };
        assert_eq!(room(ALICE, at(59), &[0]), Err(SECOND));
        assert_eq!(room(ALICE, at(60), &[0]), Ok(Some((4, false))));
        assert_eq!(room(ALICE, at(60), &[0]), Err(SECOND));
        // A call is open in it.
        assert_eq!(room(ALICE, at(61), &[0, 2]), Err(SECOND));
        assert_eq!(room(ALICE, at(61), &[0]), Ok(Some((2, true))));
        assert_eq!(room(ALICE, at(100), &[0]), Ok(Some((1, true))));
        // Another client's is left alone until it is over.
        assert_eq!(room(ALICE, at(100), &[0]), Err(IDLE - 100 * SECOND));
        assert_eq!(room(ALICE, at(100), &[0, 3]), Err(NEVER_BEFORE));
    }
}
