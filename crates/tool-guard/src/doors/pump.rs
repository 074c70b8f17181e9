//! A client on standard input and output: the loop between it, the guard and its server.
use super::stdio::{self, Input, Output};
use crate::{
    engine::{
        guard::Guard,
        limits::{BYTES_AT_ONCE, INPUT_GRACE, MAX_WAITING_BYTES},
        one_client::Server,
        options::OnServerExit,
        out::Unwritten,
        proxy::Proxy,
    },
    wire::lines::{Item, LineReader, Lines},
};
use anyhow::Context as _;
use bytes::Buf as _;
use futures_util::{FutureExt as _, future::OptionFuture};
use std::{io, panic::resume_unwind, process::ExitCode, time::Duration};
use tokio::{
    io::AsyncWriteExt as _,
    task::JoinHandle,
    time::{Instant, sleep_until},
};

/// The number of passes of the loop between two checks for attempts that have been overdue for long.
const BETWEEN_LOOKS: u32 = 256;

/// A client, the guard and its server.
pub(crate) struct Pump<S> {
    proxy: Proxy,
    server: S,
    from_client: LineReader<Input>,
    /// `None` once the client has stopped reading.
    client_out: Option<Output>,
    on_exit: OnServerExit,
    /// How long the guard waits after the client has disconnected: for its open requests, and for it to read
    /// more of its answers.
    longest: Duration,
    /// How long a disconnected client may leave answers unread.
    unread_until: Option<Instant>,
    /// How long the server may run after the client has disconnected, and whether it may owe answers.
    patience: Option<Instant>,
    owed: bool,
}

/// What happened on either side.
enum Side<E> {
    Client(Option<Item>),
    Server(E),
}

impl<S: Server> Pump<S> {
    /// # Errors
    /// If standard input or output cannot be used.
    pub(crate) fn new(
        guard: &Guard,
        proxy: Proxy,
        server: S,
        lines: Lines,
        on_exit: OnServerExit,
    ) -> anyhow::Result<Self> {
        let input = stdio::input().context("cannot read standard input")?;
        let output = stdio::output().context("cannot write standard output")?;
        Ok(Self {
            from_client: LineReader::new(input, lines),
            client_out: Some(output),
            proxy,
            server,
            on_exit,
            longest: guard.limits.hard,
            unread_until: None,
            patience: None,
            owed: false,
        })
    }

    /// Runs until the client disconnects, the server ends, or the signal comes.
    pub(crate) async fn run(mut self, mut signal: JoinHandle<u8>) -> ExitCode {
        let mut passes = 0_u32;
        loop {
            passes = passes.wrapping_add(1);
            if passes.is_multiple_of(BETWEEN_LOOKS) {
                self.proxy.sweeper.end_late();
            }
            self.server.take(&mut self.proxy);
            let is_open = self.from_client.is_open();
            let has_room = self.proxy.to_client.len() < MAX_WAITING_BYTES;
            // Refusals also accumulate if a client writes and does not read.
            let reads = is_open && has_room && self.proxy.to_server.len() < MAX_WAITING_BYTES;
            if self.server.has_ended() && self.is_drained() && self.on_exit == OnServerExit::Exit {
                // Lines that the client has sent already are answered; later ones fail to be written, as
                // without the guard.
                match self.from_client.next().now_or_never().flatten() {
                    Some(item) if reads => self.proxy.on_client(&item),
                    _ => break,
                }
                continue;
            }
            let wake = if is_open { None } else { self.on_client_left() };
            if wake.is_some_and(|at| at <= Instant::now()) {
                break;
            }
            let Self { proxy, server, from_client, client_out, .. } = &mut self;
            // Neither side holds up the other: each is asked first every other time.
            let side = async {
                let client = from_client.next();
                let served = server.next(&mut proxy.to_server, has_room);
                match passes.is_multiple_of(2) {
                    true => tokio::select! {
                        biased;
                        item = client, if reads => Side::Client(item),
                        event = served => Side::Server(event),
                    },
                    false => tokio::select! {
                        biased;
                        event = served => Side::Server(event),
                        item = client, if reads => Side::Client(item),
                    },
                }
            };
            tokio::select! {
                biased;
                finished = proxy.calls.step() => proxy.on_step(finished),
                wrote = write(client_out, &mut proxy.to_client.bytes), if proxy.to_client.bytes.has_remaining() => {
                    self.unread_until = None;
                    if wrote.is_err() {
                        self.stop_writing();
                        self.from_client.close();
                    }
                }
                side = side => match side {
                    Side::Client(item) => self.on_client(item),
                    Side::Server(event) => {
                        if let Some(code) = self.server.on_event(event, &mut self.proxy, is_open) {
                            return code;
                        }
                    }
                },
                () = proxy.sweeper.round() => {}
                Some(()) = OptionFuture::from(wake.map(sleep_until)) => {}
                signal = &mut signal => {
                    self.server.end().await;
                    let signal = signal.unwrap_or_else(|error| resume_unwind(error.into_panic()));
                    return ExitCode::from(128 + signal);
                }
            }
        }
        ExitCode::from(self.server.end().await.unwrap_or(0))
    }

    /// Handles what the client sent; lines that arrived together are written together.
    fn on_client(&mut self, mut next: Option<Item>) {
        while let Some(item) = next {
            self.server.on_client(&item, &mut self.proxy);
            self.proxy.on_client(&item);
            let is_full = self.proxy.to_server.len() >= BYTES_AT_ONCE
                || self.proxy.to_client.len() >= BYTES_AT_ONCE;
            next = if is_full { None } else { self.from_client.buffered() };
            if next.is_some() {
                self.proxy.between();
            }
        }
    }

    /// What the guard waits for after the client has disconnected: returns when to look again, a time that has come if
    /// for nothing.
    fn on_client_left(&mut self) -> Option<Instant> {
        let now = Instant::now();
        let held = self.server.on_client_left(&self.proxy);
        if self.proxy.to_client.is_empty() {
            self.unread_until = None;
        } else if now >= *self.unread_until.get_or_insert(now + self.longest) {
            self.unread_until = None;
            self.stop_writing();
        }
        if !self.is_drained() {
            return held.into_iter().chain(self.unread_until).min();
        }
        if self.server.is_over(&self.proxy) {
            return Some(now);
        }
        let may_owe = self.client_out.is_some()
            && (self.proxy.is_asked() || self.server.may_owe(&self.proxy));
        if std::mem::replace(&mut self.owed, may_owe) != may_owe {
            self.patience = None;
        }
        let grace = if may_owe { self.longest } else { INPUT_GRACE };
        let patience = *self.patience.get_or_insert(now + grace);
        held.into_iter().chain([patience]).min()
    }

    fn stop_writing(&mut self) {
        self.proxy.to_client.clear();
        self.client_out = None;
    }

    /// Whether all calls have ended, and the client has their answers.
    fn is_drained(&self) -> bool {
        self.proxy.calls.is_empty() && self.proxy.to_client.is_empty()
    }
}

/// Writes some of it to the client, while that reads.
async fn write(out: &mut Option<Output>, unwritten: &mut Unwritten) -> io::Result<()> {
    let out = out.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
    out.write_buf(unwritten).await?;
    if unwritten.has_remaining() { Ok(()) } else { out.flush().await }
}
