//! `tool-guard decide`: the stack for hosts that run their tools themselves. A host says which call it is
//! about to make and how each ended, as lines of JSON; it learns which to make, and what to add for the model.
//! It runs on standard input and output until the host closes it, or on a socket.
use crate::{
    doors::{
        host::{
            calls,
            decider::Decider,
            streams::{self, Answers, Place, Socket, StreamEvent},
            table::Connection,
        },
        stdio,
    },
    engine::{
        guard::Guard,
        operation::Operation,
        options::{
            HttpOptions, JoinAfter, Mode, OnServerExit, Overrides, Restart, Trust, duration,
            line_limit,
        },
    },
    mcp,
};
use anyhow::Context as _;
use clap::Args;
use futures_util::future::OptionFuture;
use std::{
    collections::{HashMap, VecDeque},
    path::PathBuf,
    pin::pin,
    process::ExitCode,
    time::Duration,
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep_until, timeout},
};

/// How long open calls may take to be recorded as unknown at the end, and answers to be written.
const GRACE: Duration = Duration::from_secs(5);

/// Decides about the calls of a host that runs its tools itself.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// What the guard does with calls
    #[arg(long, value_enum, default_value_t = Mode::Enforce)]
    mode: Mode,

    /// The stack's configuration, as TOML or JSON; options on the command line and variables override it.
    /// Read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// The catalog of the host's tools, as TOML or JSON; it overrides what the host says of them. Read
    /// again on SIGHUP
    #[arg(long, value_name = "FILE")]
    catalog: Option<PathBuf>,

    #[command(flatten)]
    overrides: Overrides,

    /// How long the host waits for a decision; then the call is refused
    #[arg(long, value_parser = duration, value_name = "DURATION", default_value = "10s")]
    pub(crate) decide_within: Duration,

    /// Serve hosts that are several processes, or one process for each event, on a Unix socket at PATH, in
    /// place of standard input and output. If a guard serves it already, the command ends
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,

    /// How long the guard of a socket stays without a connection and without an open call
    #[arg(long, value_parser = duration, value_name = "DURATION", default_value = "30m", requires = "socket")]
    idle: Duration,

    /// The longest line that is read, in bytes
    #[arg(long, default_value_t = 64 * 1024 * 1024, value_name = "BYTES", value_parser = line_limit)]
    max_line: usize,

    #[command(flatten)]
    operation: Operation,
}

impl Options {
    /// For the guard that is inside: its server is the host.
    pub(crate) fn guard(self) -> mcp::Options {
        mcp::Options {
            mode: self.mode,
            config: self.config,
            operation: self.operation,
            overrides: self.overrides,
            max_timeout: None,
            max_line: self.max_line,
            catalog: self.catalog,
            trust_annotations: Some(Trust::All),
            join_after: JoinAfter(None),
            on_server_exit: OnServerExit::Exit,
            restart: Restart::Never,
            // Names the host in the records, unless it has a name.
            command: vec!["decide".into()],
            http: HttpOptions::default(),
            host_runs: true,
        }
    }
}

/// Runs until the host closes standard input, a signal, or, on a socket, until nothing has happened for long.
pub(crate) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    let socket = match &options.socket {
        Some(path) => match streams::claim(path).await? {
            Some(socket) => Some(socket),
            // Another guard serves it.
            None => return Ok(ExitCode::SUCCESS),
        },
        None => None,
    };
    let (within, idle) = (options.decide_within, options.idle);
    let options = options.guard();
    let (guard, beside, signal) = Guard::start(&options).await?;
    let connection = format!("decide-{:016x}", fastrand::u64(..));
    let client = guard.client(&connection).of_host(calls::identity());
    let decider = Decider::new(guard.proxy(client), within);
    let (events, event) = mpsc::channel(streams::WAITING);
    let mut hosts = Hosts { decider, event, open: HashMap::new() };
    let signal = match socket {
        None => {
            let input = stdio::input().context("cannot read standard input")?;
            let output = stdio::output().context("cannot write standard output")?;
            let written = streams::serve(events, 0, input, output, options.max_line);
            let signal = hosts.serve(None, signal).await;
            hosts.finish().await;
            drop(hosts);
            let _ = timeout(GRACE, written).await;
            signal
        }
        Some(socket) => {
            let listening = tokio::spawn(Socket::serve(socket, events, options.max_line));
            let signal = hosts.serve(Some(idle), signal).await;
            // The next guard of this socket waits until this one has recorded what it knows.
            hosts.finish().await;
            listening.abort();
            let _ = listening.await;
            signal
        }
    };
    guard.finish(beside).await;
    Ok(signal.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(128 + signal)))
}

/// The connections, and the decider of their calls.
struct Hosts {
    decider: Decider,
    event: mpsc::Receiver<StreamEvent>,
    open: HashMap<Connection, Host>,
}

/// The host of a connection.
struct Host {
    answers: Answers,
    /// The places of lines that are not answered, which come back as the answers are written.
    places: VecDeque<Place>,
    /// It sends no more.
    is_closing: bool,
}

impl Hosts {
    /// Serves until the last host has gone, or a signal: with `idle`, hosts come and go, and it ends once none
    /// was there for that long.
    async fn serve(
        &mut self,
        idle: Option<Duration>,
        signal: impl Future<Output = u8>,
    ) -> Option<u8> {
        let mut signal = pin!(signal);
        let mut quiet_since = Instant::now();
        let mut was_open = false;
        loop {
            self.answer();
            if was_open && self.open.is_empty() {
                // On standard input and output there is no other host.
                idle?;
            }
            let is_quiet = self.open.is_empty() && self.decider.is_idle();
            if !is_quiet {
                quiet_since = Instant::now();
            }
            let ends = idle.filter(|_| is_quiet).map(|idle| quiet_since + idle);
            let deadline = self.decider.table.first_deadline();
            tokio::select! {
                biased;
                finished = self.decider.proxy.calls.step() => self.decider.on_step(finished),
                signal = &mut signal => return Some(signal),
                Some(()) = OptionFuture::from(deadline.map(sleep_until)) => self.decider.on_time(Instant::now()),
                () = self.decider.proxy.sweeper.round() => {}
                Some(()) = OptionFuture::from(ends.map(sleep_until)) => return None,
                event = self.event.recv() => match event {
                    Some(StreamEvent::Opened(connection, answers)) => {
                        let host = Host { answers, places: VecDeque::new(), is_closing: false };
                        self.open.insert(connection, host);
                        was_open = true;
                    }
                    Some(StreamEvent::Line(connection, item, place)) => {
                        if let Some(host) = self.open.get_mut(&connection) {
                            host.places.push_back(place);
                        }
                        self.decider.on_item(connection, &item, Instant::now());
                    }
                    Some(StreamEvent::Closed(connection)) => {
                        if let Some(host) = self.open.get_mut(&connection) {
                            host.is_closing = true;
                        }
                        self.close_ended(connection);
                    }
                    None => return None,
                },
            }
        }
    }

    /// Hands the answers to their connections. The answer of a host that has gone is lost.
    fn answer(&mut self) {
        while let Some((connection, answer)) = self.decider.answers.pop_front() {
            let Some(host) = self.open.get_mut(&connection) else { continue };
            let _ = host.answers.send((answer.line(), host.places.pop_front()));
            self.close_ended(connection);
        }
    }

    /// Forgets a host that sends no more and has all its answers.
    fn close_ended(&mut self, connection: Connection) {
        let is_ended = |host: &Host| host.is_closing && host.places.is_empty();
        if self.open.get(&connection).is_some_and(is_ended) {
            self.open.remove(&connection);
        }
    }

    /// Records calls whose hosts have gone as of unknown outcome, as the next guard would find them if this one
    /// were killed.
    async fn finish(&mut self) {
        self.decider.on_hosts_gone();
        let recorded = async {
            while !self.decider.proxy.calls.is_empty() {
                let finished = self.decider.proxy.calls.step().await;
                self.decider.on_step(finished);
            }
        };
        let _ = timeout(GRACE, recorded).await;
        self.answer();
        self.open.clear();
    }
}
