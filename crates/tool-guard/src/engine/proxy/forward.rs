//! Forwards the client's requests that are no tool calls. If an answer to a call may still come under the id of
//! one, it is forwarded under an id of the guard's, so that its answer ends no call.
use super::{
    Mode, Proxy,
    requests::{CLOSED, CONNECTION_CLOSED, OVERLOADED, Open},
};
use crate::{
    engine::answer,
    wire::{
        batch::{self, Asked},
        jsonrpc::{self, Token},
        scan::{self, Guess},
    },
};
use bytes::Bytes;

const TOO_MANY: &str = "too many requests are open: this one was not forwarded";

impl Proxy {
    /// Whether the server may send another answer under this id.
    pub(super) fn is_taken(&self, id: &Token) -> bool {
        self.requests.open.contains_key(id) || self.wire.lock().in_flight.may_be_answered(id)
    }

    /// Forwards a line with these requests of the client's; returns the refusal if there are too many.
    pub(super) fn forward(
        &mut self,
        line: &[u8],
        requests: Vec<Asked>,
    ) -> Result<(), &'static str> {
        if self.mode != Mode::Enforce {
            for Asked { id, is_list, .. } in requests {
                // The line was forwarded already: an answer to a given-up call is not told from its own.
                self.wire.lock().in_flight.forget(&id);
                self.requests.insert(id, Open::new(is_list, None));
            }
            return Ok(());
        }
        let taken = requests.iter().filter(|asked| self.is_taken(&asked.id)).count();
        if taken > self.requests.room() {
            return Err(TOO_MANY);
        }
        let mut replaced = Vec::new();
        for Asked { id, place, is_list } in requests {
            if self.is_taken(&id) {
                let wire_id = self.wire.lock().in_flight.own_id();
                replaced.push((place.clone(), wire_id.to_json()));
                let text = String::from_utf8_lossy(&line[place]).into();
                self.requests.insert(wire_id, Open::new(is_list, Some((id, text))));
            } else {
                self.requests.insert(id, Open::new(is_list, None));
            }
        }
        if replaced.is_empty() {
            self.to_server.line(line);
        } else {
            let parts: Vec<_> = replaced.iter().map(|(place, id)| (place.clone(), &**id)).collect();
            self.to_server.line(&jsonrpc::splice(line, &parts));
        }
        Ok(())
    }

    /// Forwards a line that is no valid JSON and calls no tool. The server may read it all the same.
    pub(super) fn forward_unreadable(&mut self, line: &Bytes) {
        let mut asked = |part: &[u8], at: usize| {
            let Guess { id, place, is_answer, .. } = Guess::of(part)?;
            if is_answer {
                self.end_ask(Some(id.clone()));
            }
            let place = place.start + at..place.end + at;
            (!is_answer && self.is_taken(&id)).then_some(Asked { id, place, is_list: false })
        };
        let taken: Vec<_> = if scan::bare(line).starts_with(b"[") {
            let parts = batch::parts(line);
            parts.filter_map(|it| asked(&it, it.as_ptr().addr() - line.as_ptr().addr())).collect()
        } else {
            asked(line, 0).into_iter().collect()
        };
        if let Err(why) = self.forward(line, taken) {
            self.refuse("null", OVERLOADED, why);
        }
    }

    /// Answers the open requests, since the server has ended.
    pub(super) fn close_requests(&mut self) {
        for (id, open) in std::mem::take(&mut self.requests.open) {
            let id = open.client.map_or_else(|| id.to_json(), |(_, text)| text.into());
            self.pass_to_client(&answer::refusal(&id, CONNECTION_CLOSED, CLOSED));
        }
    }
}
