//! A client on standard input and output, a server at an address: the guard is that server's client.
mod begun;
mod headers;
mod open;
mod own_stream;
mod talk;

use self::talk::Talk;
use super::{
    Mode, Options, answer,
    failure::Failure,
    guard::Guard,
    limits::MAX_WAITING_BYTES,
    line_reader::LineReader,
    lines::{Item, Oversized},
    message::{self, Line, NOT_FORWARDED, Token},
    out::{Outgoing, Unwritten, write},
    proxy::{Proxy, too_long},
    stdio::{self, Input, Output},
    until,
    upstream::{Heard, Upstream},
};
use anyhow::Context as _;
use bytes::{Buf as _, Bytes};
use std::{borrow::Cow, future::Future, pin::pin, process::ExitCode, time::Duration};
use tokio::time::Instant;
use tr_core::one_line;

/// How long what the client sent last may take to reach the server.
const LAST: Duration = Duration::from_secs(5);
/// How long the end of the session may take.
const GOODBYE: Duration = Duration::from_secs(2);

/// Runs the guard until the client disconnects.
pub(crate) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    let logging = options.operation.log()?;
    let headers = headers::Own::of(options.http.header_file.as_deref())?;
    let guard = Guard::new(&options, logging.is_some()).await?;
    let upstream = Upstream::new(&options.http, guard.statuses.clone(), options.max_line)?;
    let (beside, ended) = guard.beside(&options).await?;
    let connection = format!("mcp-{:016x}", fastrand::u64(..));
    let pump = Pump {
        proxy: guard.proxy(guard.client(&connection)).with_messages(),
        talk: Talk::new(
            upstream,
            headers,
            options.max_line,
            guard.effects.clone(),
            guard.limits.idle,
        ),
        from_client: LineReader::new(
            stdio::input().context("cannot read standard input")?,
            options.max_line,
        ),
        client_out: Some(stdio::output().context("cannot write standard output")?),
        unwritten: Unwritten::default(),
        refusals: Vec::new(),
        longest: guard.limits.hard,
    };
    let signal = pump.run(ended).await;
    guard.finish(beside).await;
    Ok(signal.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(128 + signal)))
}

struct Pump {
    proxy: Proxy,
    talk: Talk,
    from_client: LineReader<Input>,
    /// `None` once the client has stopped reading.
    client_out: Option<Output>,
    unwritten: Unwritten,
    /// Errors by which the server refused calls that did not run, for the client.
    refusals: Vec<(Token, Bytes)>,
    longest: Duration,
}

impl Pump {
    /// Returns the signal that ended it, if one did.
    async fn run(mut self, ended: impl Future<Output = u8>) -> Option<u8> {
        let (mut ended, mut signal) = (pin!(ended), None);
        // How long answers are waited for after the client has disconnected.
        let mut until: Option<Instant> = None;
        // How long other messages of the client's may still be on their way then.
        let mut leaving: Option<Instant> = None;
        loop {
            self.flush();
            if self.proxy.calls.is_empty() {
                self.refusals.clear();
            }
            let is_open = self.from_client.is_open();
            if !is_open {
                // What is not guarded, only the talk knows.
                let is_asked = self.proxy.mode != Mode::Enforce && self.talk.is_asked();
                let owes = !self.proxy.calls.is_empty() || self.proxy.is_asked() || is_asked;
                let leaves = *leaving.get_or_insert_with(|| Instant::now() + LAST);
                let is_busy = self.talk.is_busy() && Instant::now() < leaves;
                if !owes && !is_busy && !self.unwritten.has_remaining() || self.client_out.is_none()
                {
                    break;
                }
                until.get_or_insert_with(|| Instant::now() + self.longest);
            }
            let has_room = self.unwritten.remaining() < MAX_WAITING_BYTES;
            tokio::select! {
                biased;
                finished = self.proxy.calls.step() => self.proxy.on_step(finished),
                wrote = write(&mut self.client_out, &mut self.unwritten), if self.unwritten.has_remaining() => {
                    if wrote.is_err() {
                        self.client_out = None;
                        self.unwritten.clear();
                        self.from_client.close();
                    }
                }
                item = self.from_client.next(), if is_open && has_room => {
                    if let Some(item) = item {
                        self.talk.on_client(&item);
                        self.proxy.on_client(&item);
                        if let Item::Oversized(long) = &item {
                            self.on_long(long, true);
                        }
                    }
                }
                (open, heard) = self.talk.next(), if has_room => self.on_heard(&open, heard),
                () = self.proxy.sweeper.round() => {}
                () = until::until(leaving), if leaving.is_some_and(|leaves| Instant::now() < leaves) => {}
                () = until::until(until) => break,
                by = &mut ended => {
                    signal = Some(by);
                    break;
                }
            }
        }
        // A server that does not answer forgets the session by itself.
        let _ = tokio::time::timeout(GOODBYE, self.talk.end()).await;
        signal
    }

    fn flush(&mut self) {
        while let Some(outgoing) = self.proxy.to_server.next() {
            self.talk.send(outgoing);
        }
        while let Some(Outgoing { line, .. }) = self.proxy.to_client.next() {
            let line = self.refusal(&line).unwrap_or(line);
            match std::str::from_utf8(&line).map(|text| one_line(text.trim())) {
                Ok(Cow::Owned(text)) => self.unwritten.push(text.into()),
                Ok(Cow::Borrowed(text)) => self.unwritten.push(line.slice_ref(text.as_bytes())),
                Err(_) => self.unwritten.push(line.slice_ref(line.trim_ascii())),
            }
            self.unwritten.copy(b"\n");
        }
    }

    /// The server's own error in place of the guard's answer.
    fn refusal(&mut self, line: &[u8]) -> Option<Bytes> {
        if self.refusals.is_empty() {
            return None;
        }
        let Line::One(answer) = message::read(line) else { return None };
        let id = answer.id.filter(|_| answer.method.is_none()).and_then(Token::read)?;
        let at = self.refusals.iter().position(|(refused, _)| *refused == id)?;
        Some(self.refusals.swap_remove(at).1)
    }

    fn on_heard(&mut self, open: &open::Open, heard: Option<Heard>) {
        match heard {
            Some(Heard::Message { line, .. }) => self.proxy.on_server(&Item::Line(line)),
            Some(Heard::Oversized(long)) => {
                self.on_long(&long, false);
                self.proxy.on_server(&Item::Oversized(long));
            }
            Some(Heard::Head(..) | Heard::Between(_)) => {}
            Some(Heard::Refused(response)) => {
                let answer = self.talk.answer(open, &response);
                let failure = self.talk.refused(open, &response);
                match (answer, &open.id) {
                    (Some(answer), Some(id)) if open.is_call() && self.is_enforcing() => {
                        self.refusals.push((id.clone(), answer));
                        self.proxy.on_failed(id, failure);
                    }
                    (Some(answer), _) => self.proxy.on_server(&Item::Line(answer)),
                    (None, _) => self.fail(open, failure),
                }
            }
            Some(Heard::Failed(failure)) => self.fail(open, failure),
            // Nothing answers it any more: it has ended already, if it was answered.
            None if self.is_enforcing() => self.fail(open, Failure::UNANSWERED),
            None => {}
        }
    }

    fn is_enforcing(&self) -> bool {
        self.proxy.mode == Mode::Enforce
    }

    fn fail(&mut self, open: &open::Open, failure: Failure) {
        let said = failure.to_string();
        if self.is_enforcing() {
            for id in &open.batch {
                self.proxy.on_request_failed(id, &said);
            }
            if let Some(id) = &open.id {
                self.proxy.on_failed(id, failure);
            }
            return;
        }
        for id in open.id.iter().chain(&open.batch) {
            let error = answer::refusal(&id.to_json(), NOT_FORWARDED, &said);
            self.unwritten.copy(&error);
        }
    }

    /// Refuses a line that is too long to be a message over HTTP, also where nothing is guarded.
    fn on_long(&mut self, long: &Oversized, is_of_client: bool) {
        if self.is_enforcing() || long.id.is_none() {
            return;
        }
        let line = too_long(long, long.id.as_deref());
        // The side that asks gets it.
        if long.asks == is_of_client {
            self.unwritten.push(line);
        } else {
            self.talk.send(Outgoing { line, attempt: None });
        }
    }
}
