//! Whether a server that crashed is started again, and how it takes the place of the one before.
use crate::{
    engine::options::Restart,
    wire::{
        jsonrpc::{self, Line, Token},
        lines::Item,
    },
};
use bytes::Bytes;
use serde_json::{Value, json};
use std::{collections::VecDeque, time::Duration};
use tokio::time::Instant;

/// The restarts within [`WINDOW`] after which the server stays down.
const MOST: usize = 5;
const WINDOW: Duration = Duration::from_secs(10 * 60);
/// The first delay; each later one within the window is twice as long.
const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// The lines of the client and of the server in which a handshake is looked for.
const HANDSHAKE_LINES: u32 = 100;

/// The restarts of one server.
#[derive(Debug)]
pub(crate) struct Restarts {
    when: Restart,
    recent: VecDeque<Instant>,
    /// How many lines were read of what the client and the server told each other first.
    lines: u32,
    /// The client's `initialize`, with its id.
    asked: Option<(Token, Bytes)>,
    /// Who the server said it is.
    answered: Option<Value>,
    /// The client's `notifications/initialized`.
    ended: Option<Bytes>,
}

impl Restarts {
    pub(crate) fn new(when: Restart) -> Self {
        Self { when, recent: VecDeque::new(), lines: 0, asked: None, answered: None, ended: None }
    }

    /// Whether a server that ends may be started again.
    pub(crate) const fn may_happen(&self) -> bool {
        matches!(self.when, Restart::Crash)
    }

    /// How long to wait before the server that ended with `code` is started again; `None` if it is not.
    pub(crate) fn after(&mut self, code: Option<u8>, now: Instant) -> Option<Duration> {
        // A server without an exit code was ended with its supervisor.
        if !self.may_happen() || code == Some(0) {
            return None;
        }
        while self.recent.front().is_some_and(|at| now.duration_since(*at) >= WINDOW) {
            self.recent.pop_front();
        }
        if self.recent.len() >= MOST {
            return None;
        }
        let delay = self.next_delay();
        self.recent.push_back(now);
        Some(delay)
    }

    /// The delay before the next restart, if there is one.
    pub(crate) fn next_delay(&self) -> Duration {
        (FIRST_DELAY * (1 << self.recent.len().min(MOST))).min(LONGEST_DELAY)
    }

    /// Reads an item of the client's.
    pub(crate) fn on_client(&mut self, item: &Item) {
        if self.when != Restart::Crash || self.ended.is_some() || self.lines > HANDSHAKE_LINES {
            return;
        }
        let Item::Line(line) = item else { return };
        self.lines += 1;
        let Line::One(message) = jsonrpc::read(line) else { return };
        match (message.method.as_deref(), message.token()) {
            (Some("initialize"), Some(id)) if self.asked.is_none() => {
                self.asked = Some((id, line.clone()));
            }
            (Some("notifications/initialized"), None) => self.ended = Some(line.clone()),
            _ => {}
        }
    }

    /// Reads an item of the server's.
    pub(crate) fn on_server(&mut self, item: &Item) {
        if self.answered.is_some() || self.lines > HANDSHAKE_LINES {
            return;
        }
        let (Some((id, _)), Item::Line(line)) = (&self.asked, item) else { return };
        self.lines += 1;
        self.answered = answer(line, id).flatten();
    }

    /// The line that is sent first, if the client began with a handshake that the server has answered.
    pub(crate) fn hello(&self) -> Option<&Bytes> {
        self.answered.as_ref()?;
        self.asked.as_ref().map(|(_, line)| line)
    }

    /// The line that ends the handshake.
    pub(crate) const fn ready(&self) -> Option<&Bytes> {
        self.ended.as_ref()
    }

    /// Whether an item of a server that was started again says that it is the one that crashed; `None` if it says
    /// nothing about that.
    pub(crate) fn is_same(&self, item: &Item) -> Option<bool> {
        let (Some((id, _)), Item::Line(line)) = (&self.asked, item) else { return None };
        let server = answer(line, id)?;
        Some(server.is_some() && server == self.answered)
    }
}

/// Who answers `id` with this line; `None` if it answers something else, `Some(None)` if it is an error.
fn answer(line: &Bytes, id: &Token) -> Option<Option<Value>> {
    let Line::One(message) = jsonrpc::read(line) else { return None };
    if message.method.is_some() || message.token().as_ref() != Some(id) {
        return None;
    }
    Some(message.result.and_then(|result| {
        let said: Value = serde_json::from_str(result.get()).ok()?;
        let info = said["serverInfo"].as_object()?;
        Some(json!([info.get("name"), info.get("version"), said["capabilities"]]))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Item {
        Item::Line(format!("{text}\n").into())
    }

    fn shaken() -> Restarts {
        let mut restarts = Restarts::new(Restart::Crash);
        restarts.on_client(&line(r#"{"id":"a","method":"initialize","params":{}}"#));
        restarts.on_server(&line(r#"{"method":"notifications/message"}"#));
        restarts.on_server(&line(
            r#"{"id":"a","result":{"serverInfo":{"name":"shop","version":"1"},"capabilities":{"tools":{}}}}"#,
        ));
        restarts.on_client(&line(r#"{"method":"notifications/initialized"}"#));
        restarts
    }

    #[test]
    fn only_crashes_count_with_growing_delays_and_five_in_ten_minutes() {
        let (mut restarts, start) = (Restarts::new(Restart::Crash), Instant::now());
        assert_eq!(restarts.after(Some(0), start), None);
        for expected in [500, 1000, 2000, 4000, 8000] {
            assert_eq!(restarts.next_delay().as_millis(), expected);
            assert_eq!(restarts.after(Some(137), start).unwrap().as_millis(), expected);
        }
        assert_eq!(restarts.after(Some(1), start + WINDOW - Duration::from_secs(1)), None);
        assert_eq!(restarts.after(Some(1), start + WINDOW), Some(FIRST_DELAY));
        assert_eq!(Restarts::new(Restart::Never).after(Some(1), start), None);
    }

    #[test]
    fn the_server_must_be_the_one_before() {
        let restarts = shaken();
        assert!(restarts.hello().unwrap().starts_with(br#"{"id":"a","method":"initialize""#));
        assert!(restarts.ready().is_some());
        for (said, expected) in [
            (
                r#"{"id":"a","result":{"capabilities":{"tools":{}},"serverInfo":{"version":"1","name":"shop"}}}"#,
                Some(true),
            ),
            (
                r#"{"id":"a","result":{"serverInfo":{"name":"shop","version":"2"},"capabilities":{"tools":{}}}}"#,
                Some(false),
            ),
            (
                r#"{"id":"a","result":{"serverInfo":{"name":"shop","version":"1"},"capabilities":{}}}"#,
                Some(false),
            ),
            (r#"{"id":"a","error":{"code":-32603,"message":"no"}}"#, Some(false)),
            (r#"{"id":"b","result":{}}"#, None),
            (r#"{"id":"a","method":"ping"}"#, None),
            ("starting...", None),
        ] {
            assert_eq!(restarts.is_same(&line(said)), expected, "{said}");
        }
    }

    #[test]
    fn without_a_handshake_nothing_is_said_first() {
        let mut restarts = Restarts::new(Restart::Crash);
        restarts.on_client(&line(r#"{"id":1,"method":"tools/list"}"#));
        restarts.on_server(&line(r#"{"id":1,"result":{}}"#));
        assert_eq!((restarts.hello(), restarts.ready()), (None, None));
    }
}
