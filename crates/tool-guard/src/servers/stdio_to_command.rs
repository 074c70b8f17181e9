//! A server that runs as a command, for one client. One that crashes can be started again.
use super::{
    pipes::{PipeEvent, Pipes},
    process::{GRACE, Server},
    restart::Restarts,
};
use crate::{
    engine::{
        guard::Guard,
        limits::INPUT_GRACE,
        one_client,
        options::{Mode, Options},
        out::Out,
        proxy::Proxy,
    },
    supervise::{NOT_FOUND, NOT_STARTED},
    wire::lines::Item,
};
use anyhow::Context as _;
use bytes::{Buf, Bytes};
use futures_util::future::OptionFuture;
use std::{io, process::ExitCode, time::Duration};
use tokio::time::{Instant, sleep_until};
use tool_reliability::telemetry::TARGET;

/// A server that runs as a command.
#[derive(Debug)]
pub(crate) struct StdioToCommand {
    options: Options,
    /// How long one that is started again may take to answer `initialize`.
    patience: Duration,
    restarts: Restarts,
    pipes: Pipes,
    state: State,
    /// Whether its client was there when its output ended.
    ended_first: bool,
    /// How the last one exited.
    code: Option<u8>,
    /// How long its input stays open for calls of a client that has left.
    held_until: Option<Instant>,
}

#[derive(Debug)]
enum State {
    Runs,
    /// Its output has ended. It is about to exit, and may have to clean up; what its exit code decides, waits until then.
    Exits {
        by: Instant,
        is_undecided: bool,
    },
    /// It crashed, and is started again then.
    Crashed(Instant),
    /// It was started again, and has to answer the client's first line.
    Greets {
        by: Instant,
        unwritten: Bytes,
    },
    Ended,
}

impl StdioToCommand {
    /// Starts the command of the options. Call this from the main thread: see [`Server::start`].
    ///
    /// # Errors
    /// If no process can be started.
    pub(crate) fn start(options: Options, guard: &Guard) -> anyhow::Result<Self> {
        Ok(Self {
            patience: guard.limits.idle,
            restarts: Restarts::new(options.restart),
            pipes: pipes(&options).context("cannot start the MCP server")?,
            options,
            state: State::Runs,
            ended_first: false,
            code: None,
            held_until: None,
        })
    }

    /// Gives the proxy what was read.
    fn read(&mut self, proxy: &mut Proxy) {
        let mut is_first = true;
        while let Some(item) = self.pipes.buffered() {
            if let State::Greets { .. } = self.state
                && let Some(is_same) = self.restarts.is_same(&item)
            {
                if is_same {
                    self.on_up(proxy);
                    continue;
                }
                return self.refuse(proxy);
            }
            self.restarts.on_server(&item);
            if !std::mem::replace(&mut is_first, false) {
                proxy.between();
            }
            proxy.on_server(&item);
        }
    }

    /// Its output has ended.
    fn on_end(&mut self, proxy: &mut Proxy, has_client: bool) -> Option<ExitCode> {
        self.ended_first = has_client;
        // Of a command that was not started, the code says so.
        let is_undecided = !self.pipes.heard || has_client && self.restarts.may_happen();
        if !is_undecided {
            proxy.on_server_ended(None);
        } else if self.pipes.heard {
            proxy.on_server_ended(Some(Instant::now() + self.restarts.next_delay()));
        }
        self.state = State::Exits { by: Instant::now() + GRACE, is_undecided };
        self.pipes.exited.and_then(|_| self.on_exit(proxy))
    }

    /// It has exited, or takes too long to.
    fn on_exit(&mut self, proxy: &mut Proxy) -> Option<ExitCode> {
        let is_undecided = match self.state {
            State::Exits { is_undecided, .. } => is_undecided,
            State::Greets { .. } => true,
            _ => return None,
        };
        self.code = self.pipes.exited.flatten();
        if self.options.mode != Mode::Off && self.ended_first && self.pipes.exited.is_some() {
            tracing::warn!(target: TARGET, event = "server_exited", code = self.code);
        }
        if !self.pipes.heard
            && let Some(code @ (NOT_FOUND | NOT_STARTED)) = self.code
        {
            return Some(ExitCode::from(code));
        }
        if is_undecided {
            let exited = self.pipes.exited.filter(|_| self.ended_first);
            let delay = exited.and_then(|code| self.restarts.after(code, Instant::now()));
            self.decide(delay, proxy);
            if exited.is_none() && !self.pipes.heard {
                self.state = State::Exits { by: Instant::now() + GRACE, is_undecided: false };
            }
        } else {
            self.state = State::Ended;
        }
        None
    }

    /// Starts it again after this delay, if there is one.
    fn decide(&mut self, delay: Option<Duration>, proxy: &mut Proxy) {
        let at = delay.map(|delay| Instant::now() + delay);
        self.state = at.map_or(State::Ended, State::Crashed);
        proxy.on_server_ended(at);
    }

    /// Starts another in its place, which first gets the client's own first line.
    fn start_again(&mut self, proxy: &mut Proxy) {
        let Ok(pipes) = pipes(&self.options) else {
            let delay = self.restarts.after(Some(1), Instant::now());
            return self.decide(delay, proxy);
        };
        self.pipes = pipes;
        // The command is there: its code says nothing else any more.
        self.pipes.heard = true;
        match self.restarts.hello().cloned() {
            Some(unwritten) => {
                self.state = State::Greets { by: Instant::now() + self.patience, unwritten };
            }
            None => self.on_up(proxy),
        }
    }

    fn on_up(&mut self, proxy: &mut Proxy) {
        if let Some(ready) = self.restarts.ready() {
            proxy.to_server.first(ready);
        }
        self.state = State::Runs;
        proxy.on_server_back();
    }

    /// It is another server than the one that crashed, or does not say that it is the same.
    fn refuse(&mut self, proxy: &mut Proxy) {
        self.pipes.end_output();
        self.pipes.server.close_input();
        self.pipes.server.terminate();
        self.decide(None, proxy);
    }
}

fn pipes(options: &Options) -> io::Result<Pipes> {
    Pipes::new(Server::start(&options.command)?, options.mode.lines(options.max_line))
}

impl one_client::Server for StdioToCommand {
    /// `None` if the state's time is over.
    type Event = Option<PipeEvent>;

    fn on_client(&mut self, item: &Item, _: &mut Proxy) {
        self.restarts.on_client(item);
    }

    async fn next(&mut self, to_server: &mut Out, reads: bool) -> Self::Event {
        if matches!(self.state, State::Runs) {
            return Some(self.pipes.next(&mut to_server.bytes, reads).await);
        }
        let mut nothing = Bytes::new();
        let is_greeting = matches!(self.state, State::Greets { .. });
        let (due, mut unwritten): (_, &mut (dyn Buf + Send)) = match &mut self.state {
            State::Runs | State::Ended => (None, &mut to_server.bytes),
            State::Exits { by, is_undecided: false } => (Some(*by), &mut to_server.bytes),
            State::Exits { by, .. } | State::Crashed(by) => (Some(*by), &mut nothing),
            State::Greets { by, unwritten } => (Some(*by), unwritten),
        };
        tokio::select! {
            biased;
            event = self.pipes.next(&mut unwritten, reads || is_greeting) => Some(event),
            Some(()) = OptionFuture::from(due.map(sleep_until)) => None,
        }
    }

    fn on_event(
        &mut self,
        event: Self::Event,
        proxy: &mut Proxy,
        has_client: bool,
    ) -> Option<ExitCode> {
        match (event, &mut self.state) {
            (Some(PipeEvent::Wrote(_)), _) => {}
            (Some(PipeEvent::NotWritten), State::Greets { unwritten, .. }) => {
                unwritten.clear();
            }
            (Some(PipeEvent::NotWritten), _) => proxy.to_server.clear(),
            (Some(PipeEvent::Read), _) => self.read(proxy),
            (Some(PipeEvent::Ended), _) => {
                self.read(proxy);
                return self.on_end(proxy, has_client);
            }
            (Some(PipeEvent::Exited), _) | (None, State::Exits { .. }) => {
                return self.on_exit(proxy);
            }
            (None, State::Crashed(_)) => self.start_again(proxy),
            (None, _) => self.refuse(proxy),
        }
        None
    }

    fn is_over(&self, _: &Proxy) -> bool {
        // Of a command that said nothing, the exit code may say that it was not started.
        let may_say = !self.pipes.heard && matches!(self.state, State::Exits { .. });
        !self.pipes.is_open() && !may_say
    }

    fn has_ended(&self) -> bool {
        matches!(self.state, State::Ended)
    }

    fn may_owe(&self, _: &Proxy) -> bool {
        // If calls are not guarded, only the server knows which answers it owes.
        self.options.mode != Mode::Enforce
    }

    fn on_client_left(&mut self, proxy: &Proxy) -> Option<Instant> {
        if !proxy.to_server.is_empty() {
            return None;
        }
        let until = *self.held_until.get_or_insert_with(|| Instant::now() + INPUT_GRACE);
        if proxy.has_unsent() && Instant::now() < until {
            return Some(until);
        }
        self.pipes.server.close_input();
        None
    }

    async fn end(mut self) -> Option<u8> {
        if matches!(self.state, State::Exits { .. }) {
            self.code = self.pipes.server.wait().await;
        }
        let has_ended = matches!(self.state, State::Exits { .. } | State::Ended);
        self.pipes.server.end().await;
        self.code.filter(|_| has_ended && self.ended_first)
    }
}
