//! The begin of a session: the client's `initialize`, and the same once more when the session is lost. What would overtake
//! it is held back.
use super::{
    open::{Held, Kind, Open, not_begun},
    talk::Talk,
};
use crate::{
    engine::{out::Outgoing, server_event::ServerEvent},
    wire::{guess::answered, http_names::SESSION},
};
use bytes::Bytes;
use hyper::header::HeaderValue;
use serde_json::Value;
use std::time::Duration;
use tokio::time::Instant;

/// How long messages wait for a sign that `notifications/initialized` has reached the server.
const REACHED: Duration = Duration::from_secs(2);

impl Talk {
    /// Sends the client's `initialize` once more; what is sent meanwhile waits.
    pub(super) fn begin_again(&mut self) {
        let Some((line, id)) = self.initialize.clone() else { return };
        (self.session, self.version, self.is_lost) = (None, None, false);
        self.post(line, None, Some(id), Vec::new(), Kind::BeginsAgain);
        // What waits for it is answered before its own time is over.
        self.hold(Kind::BeginsAgain, self.patience / 2);
    }

    /// Says that the session has begun: what follows must not overtake it.
    pub(super) fn initialized(&mut self, note: Bytes) {
        self.post(note, None, None, Vec::new(), Kind::Initialized);
        self.hold(Kind::Initialized, REACHED);
        self.listen();
    }

    fn hold(&mut self, by: Kind, patience: Duration) {
        let messages = self.take_held();
        self.held = Some(Held { by, until: Instant::now() + patience, messages });
    }

    fn take_held(&mut self) -> Vec<Outgoing> {
        self.held.take().map(|held| held.messages).unwrap_or_default()
    }

    fn release(&mut self) {
        for message in self.take_held() {
            self.send(message);
        }
    }

    fn lose(&mut self) {
        self.is_lost = true;
        for message in self.take_held() {
            self.fail(message, not_begun());
        }
    }

    /// Messages have waited for long enough.
    pub(super) fn on_held_too_long(&mut self) {
        if self.is_held_by(Kind::BeginsAgain) {
            self.forget(Kind::BeginsAgain);
            self.lose();
        } else {
            self.release();
        }
    }

    fn is_held_by(&self, kind: Kind) -> bool {
        self.held.as_ref().is_some_and(|held| held.by == kind)
    }

    pub(super) fn on_begun(&mut self, open: &Open, heard: Option<&ServerEvent>) {
        let is_again = open.kind == Kind::BeginsAgain;
        match heard {
            _ if open.kind == Kind::Initialized && self.is_held_by(Kind::Initialized) => {
                self.release();
            }
            _ if open.kind == Kind::Initialized => {}
            Some(ServerEvent::Head(_, headers)) => self.session = headers.get(SESSION).cloned(),
            Some(ServerEvent::Message { line, .. }) => {
                let answer: Value = serde_json::from_slice(line).unwrap_or_default();
                let version = answer["result"]["protocolVersion"].as_str();
                if let Some(version) = version.and_then(|it| HeaderValue::from_str(it).ok()) {
                    self.version = Some(version);
                }
                if is_again && open.id.is_some() && answered(line) == open.id {
                    if answer["result"].is_object() {
                        let note = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
                        self.initialized(Bytes::from_static(note));
                    } else {
                        self.lose();
                    }
                }
            }
            // Once it is answered, the end of its stream says nothing.
            Some(ServerEvent::Refused(_) | ServerEvent::Failed(_)) | None
                if is_again && self.is_held_by(Kind::BeginsAgain) =>
            {
                self.lose();
            }
            _ => {}
        }
    }
}
