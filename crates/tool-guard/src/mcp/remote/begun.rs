//! The begin of a session: the client's `initialize`, and the same once more when the session is lost.
use super::{
    open::{Kind, Open, not_begun},
    talk::Talk,
};
use crate::mcp::{identity::SESSION, upstream::Heard};
use bytes::Bytes;
use hyper::header::HeaderValue;
use serde_json::Value;

impl Talk {
    /// Sends the client's `initialize` once more; what is sent meanwhile waits.
    pub(super) fn begin_again(&mut self) {
        let Some((line, id)) = self.initialize.clone() else { return };
        (self.session, self.version, self.is_lost) = (None, None, false);
        self.post(line, None, vec![id], Kind::BeginsAgain);
        self.held = Some(Vec::new());
    }

    pub(super) fn on_begun(&mut self, open: &Open, heard: Option<&Heard>) {
        match heard {
            Some(Heard::Head(_, headers)) => self.session = headers.get(SESSION).cloned(),
            Some(Heard::Message { line, .. }) => {
                let answer: Value = serde_json::from_slice(line).unwrap_or_default();
                let version = answer["result"]["protocolVersion"].as_str();
                if let Some(version) = version.and_then(|it| HeaderValue::from_str(it).ok()) {
                    self.version = Some(version);
                }
                if open.kind == Kind::BeginsAgain && !answer["id"].is_null() {
                    let note = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
                    let held = self.held.take().unwrap_or_default();
                    self.post(Bytes::from_static(note), None, Vec::new(), Kind::Message);
                    self.listen();
                    for message in held {
                        self.send(message);
                    }
                }
            }
            // Once it is answered, the end of its stream says nothing.
            None if self.held.is_none() => {}
            Some(Heard::Refused(_) | Heard::Failed(_)) | None => {
                self.is_lost = open.kind == Kind::BeginsAgain;
                for message in self.held.take().unwrap_or_default() {
                    self.fail(message, not_begun());
                }
            }
            _ => {}
        }
    }
}
