//! The loop between the client, the guard and the server process.
use super::{
    Mode, Options,
    guard::Guard,
    http,
    limits::{BYTES_AT_ONCE, MAX_WAITING_BYTES},
    line_reader::LineReader,
    options::OnServerExit,
    out::write,
    proxy::Proxy,
    remote,
    restart::{Restart, Restarts},
    server::{self, INPUT_GRACE, LINGER, Server},
    stdio::{self, Input, Output},
    until::until,
};
use crate::supervise::{NOT_FOUND, NOT_STARTED};
use anyhow::Context as _;
use bytes::BytesMut;
use futures_util::FutureExt;
use std::{ffi::OsString, panic::resume_unwind, process::ExitCode, time::Duration};
use tokio::{
    process::ChildStdout,
    task::{JoinError, JoinHandle},
    time::{Instant, sleep_until},
};

/// The number of passes of the loop between two checks for attempts that have been overdue for long.
const BETWEEN_LOOKS: u32 = 256;
/// The signal for which a task has waited; its panic is passed on.
fn received(signal: Result<u8, JoinError>) -> u8 {
    signal.unwrap_or_else(|error| resume_unwind(error.into_panic()))
}

/// Runs the guard until the client disconnects, or the server ends.
pub(crate) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    if let Some(address) = options.http.listen {
        return http::run(options, address).await;
    }
    if options.http.upstream.is_some() {
        return remote::run(options).await;
    }
    anyhow::ensure!(
        options.restart == Restart::Never || options.mode == Mode::Enforce,
        "--restart crash needs --mode enforce: the other modes change nothing"
    );
    let logging = options.operation.log()?;
    let guard = Guard::new(&options, logging.is_some()).await?;
    let (beside, ended) = guard.beside(&options).await?;
    let ended = tokio::spawn(ended);
    let signals = ended.abort_handle();
    let connection = format!("mcp-{:016x}", fastrand::u64(..));
    let proxy = guard.proxy(guard.client(&connection));

    let client_in = stdio::input().context("cannot read standard input")?;
    let client_out = stdio::output().context("cannot write standard output")?;
    let server = Server::start(&options.command).context("cannot start the MCP server")?;
    let streams = Streams {
        from_client: LineReader::of(options.mode, client_in, options.max_line),
        client_out: Some(client_out),
        server,
        restarts: Restarts::new(options.restart),
        command: options.command,
        ended,
        max_line: options.max_line,
        timeout: guard.limits.idle,
        longest: guard.limits.hard,
    };
    // A separate task: waking the runtime's main future costs a system call each time.
    let pumped = tokio::spawn(streams.pump(proxy, options.on_server_exit)).await;
    let code = pumped.unwrap_or_else(|error| resume_unwind(error.into_panic()));
    signals.abort();
    guard.finish(beside).await;
    code
}

struct Streams {
    from_client: LineReader<Input>,
    /// `None` once the client has stopped reading.
    client_out: Option<Output>,
    server: Server,
    restarts: Restarts,
    /// The server's command.
    command: Vec<OsString>,
    /// The signal that ended the guard. A separate task waits for it, which costs a call almost nothing.
    ended: JoinHandle<u8>,
    max_line: usize,
    /// How long a server that is started again may take to answer `initialize`.
    timeout: Duration,
    /// How long the guard waits after the client has disconnected: for its open requests, and for it to read
    /// more of its answers.
    longest: Duration,
}

/// Whether the server is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Again {
    No,
    /// Perhaps: its exit code decides.
    Undecided,
    At(Instant),
}

impl Again {
    const fn at(self) -> Option<Instant> {
        match self {
            Self::At(at) => Some(at),
            _ => None,
        }
    }
}

/// How the start of another server went.
enum Started {
    /// It takes the place of the one before; its output.
    Up(Box<LineReader<ChildStdout>>),
    /// It ended with this code.
    Crashed(Option<u8>),
    /// It is not the server before, or does not say that it is.
    Other,
    /// The guard is to end.
    Signal(u8),
}

impl Streams {
    async fn pump(mut self, mut proxy: Proxy, on_exit: OnServerExit) -> anyhow::Result<ExitCode> {
        let mut from_server = LineReader::of(proxy.mode, self.server.take_output(), self.max_line);
        let (mut heard, mut gone, mut ended_first) = (false, false, false);
        // How long the server may run after the client has disconnected, and whether it may owe answers.
        let (mut patience, mut owed): (Option<Instant>, bool) = (None, false);
        // The server's exit code once it has ended; the time until which the guard waits for its end, or
        // for more of its output.
        let (mut exited, mut code) = (false, None);
        let (mut exits_by, mut silent_at): (Option<Instant>, Option<Instant>) = (None, None);
        // How long a disconnected client may leave answers unread.
        let mut unread_until: Option<Instant> = None;
        // How long the server's input stays open for calls of a disconnected client.
        let mut held_until: Option<Instant> = None;
        let mut again = Again::No;
        let mut passes = 0_u32;
        loop {
            passes = passes.wrapping_add(1);
            if passes.is_multiple_of(BETWEEN_LOOKS) {
                proxy.sweeper.end_late();
            }
            let client_open = self.from_client.is_open();
            // Refusals also accumulate if a client writes and does not read.
            let reading_client = client_open
                && proxy.to_server.len() < MAX_WAITING_BYTES
                && proxy.to_client.len() < MAX_WAITING_BYTES;
            let reading_server = from_server.is_open() && proxy.to_client.len() < MAX_WAITING_BYTES;
            let mut held = false;
            if !client_open && proxy.to_server.is_empty() {
                let until = *held_until.get_or_insert_with(|| Instant::now() + INPUT_GRACE);
                held = proxy.has_unsent() && Instant::now() < until;
                if !held {
                    self.server.close_input();
                }
            }
            if client_open || proxy.to_client.is_empty() {
                unread_until = None;
            } else if Instant::now()
                >= *unread_until.get_or_insert_with(|| Instant::now() + self.longest)
            {
                proxy.to_client.clear();
                self.client_out = None;
            }
            let drained = proxy.calls.is_empty() && proxy.to_client.is_empty();
            let is_over = gone
                && again == Again::No
                && (exited || exits_by.is_some_and(|by| Instant::now() >= by));
            if is_over && drained && on_exit == OnServerExit::Exit {
                // Lines that the client has sent already are answered; later ones fail to be written, as
                // without the guard.
                match self.from_client.next().now_or_never().flatten() {
                    Some(item) if reading_client => proxy.on_client(&item),
                    _ => break,
                }
                continue;
            }
            if !client_open && drained {
                if !from_server.is_open() {
                    break;
                }
                // If calls are not guarded, only the server knows which answers it owes.
                let may_owe =
                    self.client_out.is_some() && (proxy.mode != Mode::Enforce || proxy.is_asked());
                if std::mem::replace(&mut owed, may_owe) != may_owe {
                    patience = None;
                }
                let grace = if may_owe { self.longest } else { INPUT_GRACE };
                patience.get_or_insert_with(|| Instant::now() + grace);
            }
            tokio::select! {
                biased;
                finished = proxy.calls.step() => proxy.on_step(finished),
                wrote = server::write(&mut self.server.input, &mut proxy.to_server.bytes), if !proxy.to_server.is_empty() && again == Again::No => {
                    if wrote.is_err() {
                        // Its output may still hold answers, so wait for the end of that.
                        proxy.to_server.clear();
                        self.server.close_input();
                    }
                }
                wrote = write(&mut self.client_out, &mut proxy.to_client.bytes), if !proxy.to_client.is_empty() => {
                    unread_until = None;
                    if wrote.is_err() {
                        proxy.to_client.clear();
                        self.client_out = None;
                        self.from_client.close();
                    }
                }
                item = self.from_client.next(), if reading_client => {
                    if let Some(item) = item {
                        self.restarts.on_client(&item);
                        proxy.on_client(&item);
                        // Lines that arrived together are written together.
                        while proxy.to_server.len() < BYTES_AT_ONCE
                            && proxy.to_client.len() < BYTES_AT_ONCE
                            && let Some(item) = self.from_client.buffered()
                        {
                            self.restarts.on_client(&item);
                            proxy.between();
                            proxy.on_client(&item);
                        }
                    }
                }
                item = from_server.next(), if reading_server => match item {
                    Some(item) => {
                        heard = true;
                        silent_at = exited.then(|| Instant::now() + LINGER);
                        self.restarts.on_server(&item);
                        proxy.on_server(&item);
                        // Many small lines are handled at once, without polling everything else for each.
                        while proxy.to_client.len() < BYTES_AT_ONCE
                            && let Some(item) = from_server.buffered()
                        {
                            self.restarts.on_server(&item);
                            proxy.between();
                            proxy.on_server(&item);
                        }
                    }
                    // The output may end with a line, so its end is handled below.
                    None => {
                        if !heard && let Some(code) = self.not_started().await {
                            return Ok(code);
                        }
                    }
                },
                () = proxy.sweeper.round() => {}
                ended = server::exit(&mut self.server.supervisor), if !exited => {
                    (exited, code) = (true, ended);
                    silent_at = Some(Instant::now() + LINGER);
                }
                () = until(silent_at), if reading_server => from_server.close(),
                () = until(exits_by), if !is_over => {}
                () = until(again.at()) => match self.again(&mut proxy).await {
                    Started::Up(output) => {
                        from_server = *output;
                        (gone, exited, code, again) = (false, false, None, Again::No);
                        (exits_by, silent_at) = (None, None);
                        proxy.on_server_back();
                    }
                    Started::Crashed(ended) => (code, again) = (ended, Again::Undecided),
                    Started::Other => {
                        self.server.end().await;
                        again = Again::No;
                        proxy.on_server_gone();
                    }
                    Started::Signal(signal) => {
                        self.server.end().await;
                        return Ok(ExitCode::from(128 + signal));
                    }
                },
                () = until(held_until), if held => {}
                () = until(unread_until) => {}
                () = until(patience) => break,
                signal = &mut self.ended => {
                    self.server.end().await;
                    return Ok(ExitCode::from(128 + received(signal)));
                }
            }
            if !from_server.is_open() && !std::mem::replace(&mut gone, true) {
                ended_first = self.from_client.is_open();
                // It is about to end, and may have to clean up.
                exits_by = Some(Instant::now() + server::GRACE);
                if ended_first && self.restarts.may_happen() {
                    again = Again::Undecided;
                    proxy.on_server_crashed(Instant::now() + self.restarts.next_delay());
                } else {
                    proxy.on_server_gone();
                }
            }
            if again == Again::Undecided
                && (exited || exits_by.is_some_and(|by| Instant::now() >= by))
            {
                let crashed = exited.then(|| self.restarts.after(code, Instant::now())).flatten();
                again = match crashed {
                    Some(delay) => Again::At(Instant::now() + delay),
                    None => Again::No,
                };
                match again.at() {
                    Some(at) => proxy.on_server_crashed(at),
                    None => proxy.on_server_gone(),
                }
            }
        }
        if gone && !exited && exits_by.is_some_and(|by| Instant::now() < by) {
            code = self.server.wait().await;
        }
        self.server.end().await;
        Ok(ExitCode::from(code.filter(|_| gone && ended_first).unwrap_or(0)))
    }

    /// Starts a server in the place of the one that crashed.
    async fn again(&mut self, proxy: &mut Proxy) -> Started {
        let Ok(server) = Server::start(&self.command) else { return Started::Crashed(Some(1)) };
        self.server = server;
        let output = LineReader::of(proxy.mode, self.server.take_output(), self.max_line);
        let started = self.greet(output, proxy).await;
        if matches!(started, Started::Up(_))
            && let Some(ready) = self.restarts.ready()
        {
            proxy.to_server.first(ready);
        }
        started
    }

    /// Sends the client's own first line, and waits for the answer. What else the server says goes to the
    /// client.
    async fn greet(&mut self, mut output: LineReader<ChildStdout>, proxy: &mut Proxy) -> Started {
        let Some(hello) = self.restarts.hello() else { return Started::Up(Box::new(output)) };
        let mut unwritten = BytesMut::from(&hello[..]);
        let deadline = Instant::now() + self.timeout;
        loop {
            tokio::select! {
                biased;
                signal = &mut self.ended => return Started::Signal(received(signal)),
                wrote = server::write(&mut self.server.input, &mut unwritten), if !unwritten.is_empty() => {
                    if wrote.is_err() {
                        unwritten.clear();
                    }
                }
                Some(item) = output.next(), if output.is_open() => match self.restarts.is_same(&item) {
                    Some(true) => return Started::Up(Box::new(output)),
                    Some(false) => return Started::Other,
                    None => proxy.on_server(&item),
                },
                code = server::exit(&mut self.server.supervisor) => return Started::Crashed(code),
                () = sleep_until(deadline) => return Started::Other,
            }
        }
    }

    /// The exit code of a server that did not start.
    async fn not_started(&mut self) -> Option<ExitCode> {
        let code = self.server.wait().await?;
        matches!(code, NOT_FOUND | NOT_STARTED).then(|| ExitCode::from(code))
    }
}
