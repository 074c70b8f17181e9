//! What a user of `tool-guard mcp` feels over HTTP, beside a bare reverse proxy and the proxies that people run.
mod client;

use crate::{
    files::Folder,
    proxy::{Program, Session},
    turns::{Call, Page, Turn, Way, side_by_side},
};
use benches::measure::{Effort, median};
use client::Clients;
use compare::echo::LARGE;
use std::{
    env,
    ffi::OsString,
    fs,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tr_core::BoxError;

/// The folder with the proxies that people run, which `cargo lab bench` installs.
const PEERS: &str = "TR_BENCH_PEERS";

/// How long a program may take to listen.
const START: Duration = Duration::from_secs(30);

/// Clients at once.
const MANY: usize = 64;

type Both = Result<Option<[f64; 2]>, BoxError>;

/// A proxy that people run in front of a command.
#[derive(Clone, Copy, Debug)]
enum Peer {
    Supergateway,
    McpProxyPython,
    McpProxyNode,
}

/// Nanoseconds of a read, the middle one: through the guard, and through the relay.
pub(crate) fn read(effort: Effort) -> Both {
    beside_relay(effort, Call::Read, 1, 0.5)
}

/// The same, of a hundred the slowest but one.
pub(crate) fn read_p99(effort: Effort) -> Both {
    beside_relay(effort, Call::Read, 1, 0.99)
}

/// The same for each of 64 clients.
pub(crate) fn reads(effort: Effort) -> Both {
    beside_relay(effort, Call::Read, MANY, 0.5)
}

/// What the guard adds to a read that an event answers, in µs.
pub(crate) fn event(effort: Effort) -> Result<Option<f64>, BoxError> {
    let both = beside_relay(effort, Call::Stream, 1, 0.5)?;
    Ok(both.map(|[ours, bare]| (ours - bare) / 1e3))
}

/// A keyed payment, and one through the relay with two syncs more.
pub(crate) fn pay(effort: Effort) -> Both {
    beside_relay_and_syncs(effort, 1)
}

/// The same for each of 64 clients.
pub(crate) fn pays(effort: Effort) -> Both {
    beside_relay_and_syncs(effort, MANY)
}

/// Syncs of a keyed payment of one of 64 clients; `None` without strace.
pub(crate) fn syncs_of_pays(effort: Effort) -> Result<Option<f64>, BoxError> {
    let Some(programs) = Program::all()? else { return Ok(None) };
    if Command::new("strace").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Ok(None);
    }
    let folder = Folder::new()?;
    let counts = folder.file("strace");
    let server = Running::web(&programs)?;
    // With -D the guard is the child, and strace is not: it ends with its handle.
    let by: [OsString; 5] = [
        "strace".into(),
        "-Dfqqe".into(),
        "fsync,fdatasync".into(),
        "-o".into(),
        counts.clone().into(),
    ];
    let guard = Running::guard(&programs, &folder, &by, Behind::Web(server.port))?;
    let count = || fs::read_to_string(&counts).map(|text| text.matches("sync(").count());
    let mut clients = Clients::open(guard.port, MANY)?;
    clients.calls(Call::Pay, 1)?;
    let (before, batches) = (count()?, effort.batches / 4);
    for _ in 0..batches {
        clients.calls(Call::Pay, 1)?;
    }
    Ok(Some((count()? - before) as f64 / (batches * MANY) as f64))
}

/// A read of a command over HTTP, and through supergateway.
pub(crate) fn beside_supergateway(effort: Effort) -> Both {
    beside_gateway(effort, Peer::Supergateway)
}

/// A read of a command over HTTP, and through PyPI's mcp-proxy.
pub(crate) fn beside_mcp_proxy_python(effort: Effort) -> Both {
    beside_gateway(effort, Peer::McpProxyPython)
}

/// A read of a command over HTTP, and through npm's mcp-proxy.
pub(crate) fn beside_mcp_proxy_node(effort: Effort) -> Both {
    beside_gateway(effort, Peer::McpProxyNode)
}

/// A read of a server at an address by a client on stdio, and through mcp-remote.
pub(crate) fn beside_mcp_remote(effort: Effort) -> Both {
    let (Some(programs), Some(peers)) = (Program::all()?, peers()) else { return Ok(None) };
    let folder = Folder::new()?;
    let server = Running::web(&programs)?;
    let remote: [OsString; 3] = [
        peers.join("node_modules/.bin/mcp-remote").into(),
        server.url().into(),
        "--allow-http".into(),
    ];
    let ways = [Session::open(&to_web(&programs, &folder, server.port))?, Session::open(&remote)?];
    let turn = Turn { calls: 10, rounds: effort.batches, skipped: 3 };
    side_by_side(ways, (turn, Call::Read, 1), 0.5, || Ok(())).map(Some)
}

/// The guard's memory for an answer of 10 MiB, beyond its memory while idle, in answers: HTTP to HTTP.
pub(crate) fn large(_: Effort) -> Result<Option<f64>, BoxError> {
    over_http(Call::Large, |server| Behind::Web(server.port))
}

/// The same for an answer that is kept.
pub(crate) fn large_kept(_: Effort) -> Result<Option<f64>, BoxError> {
    over_http(Call::PayLarge, |server| Behind::Web(server.port))
}

/// The same for a command over HTTP.
pub(crate) fn large_of_command(_: Effort) -> Result<Option<f64>, BoxError> {
    over_http(Call::Large, |_| Behind::Command)
}

/// The same for a client on stdio and a server at an address.
pub(crate) fn large_to_stdio(_: Effort) -> Result<Option<f64>, BoxError> {
    let Some(programs) = Program::all()? else { return Ok(None) };
    let folder = Folder::new()?;
    let server = Running::web(&programs)?;
    let session = Session::open(&to_web(&programs, &folder, server.port))?;
    let id = session.id();
    peak(session, id, Call::Large).map(Some)
}

/// The same for a client and a server on stdio.
pub(crate) fn large_on_stdio(_: Effort) -> Result<Option<f64>, BoxError> {
    let Some(programs) = Program::all()? else { return Ok(None) };
    let folder = Folder::new()?;
    let words = [&of_guard(&programs, &folder)[..], &["--".into(), programs.echo.into()]].concat();
    let session = Session::open(&words)?;
    let id = session.id();
    peak(session, id, Call::Large).map(Some)
}

/// The guard's memory for each idle session of a command, in KiB; the command's processes are not counted.
pub(crate) fn idle_session(_: Effort) -> Result<Option<f64>, BoxError> {
    const SESSIONS: usize = 100;
    let Some(programs) = Program::all()? else { return Ok(None) };
    let folder = Folder::new()?;
    let guard = Running::guard(&programs, &folder, &[], Behind::Command)?;
    let warm = Clients::open(guard.port, 10)?;
    let before = memory(guard.child.id(), "VmRSS:")?;
    let idle = Clients::open(guard.port, SESSIONS)?;
    let after = memory(guard.child.id(), "VmRSS:")?;
    drop((warm, idle));
    Ok(Some((after - before) / SESSIONS as f64))
}

fn over_http(call: Call, behind: impl FnOnce(&Running) -> Behind) -> Result<Option<f64>, BoxError> {
    let Some(programs) = Program::all()? else { return Ok(None) };
    let folder = Folder::new()?;
    let server = Running::web(&programs)?;
    let guard = Running::guard(&programs, &folder, &[], behind(&server))?;
    peak(Clients::open(guard.port, 1)?, guard.child.id(), call).map(Some)
}

/// How many answers the process's memory grows by for one.
fn peak(mut way: impl Way, process: u32, call: Call) -> Result<f64, BoxError> {
    way.calls(Call::Read, 1)?;
    // From here on the peak is another.
    fs::write(format!("/proc/{process}/clear_refs"), "5")?;
    let idle = memory(process, "VmHWM:")?;
    for _ in 0..3 {
        way.calls(call, 1)?;
    }
    Ok((memory(process, "VmHWM:")? - idle) * 1024.0 / LARGE as f64)
}

/// A figure of a process's memory in KiB.
fn memory(process: u32, name: &str) -> Result<f64, BoxError> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let figure = line.and_then(|line| line.split_whitespace().next());
    Ok(figure.ok_or("the system does not say how much memory")?.parse()?)
}

fn beside_relay(effort: Effort, call: Call, clients: usize, quantile: f64) -> Both {
    let Some(programs) = Program::all()? else { return Ok(None) };
    let folder = Folder::new()?;
    let server = Running::web(&programs)?;
    let guard = Running::guard(&programs, &folder, &[], Behind::Web(server.port))?;
    let relay = Running::relay(&programs, server.port)?;
    let ways = [Clients::open(guard.port, clients)?, Clients::open(relay.port, clients)?];
    let shape = (Turn::of(effort), call, clients as u64);
    side_by_side(ways, shape, quantile, || Ok(())).map(Some)
}

/// The syncs are measured call by call: a disk is slow for some time, and then fast again.
fn beside_relay_and_syncs(effort: Effort, clients: usize) -> Both {
    const SYNCS: usize = 2;
    let Some(programs) = Program::all()? else { return Ok(None) };
    let folder = Folder::new()?;
    let server = Running::web(&programs)?;
    let guard = Running::guard(&programs, &folder, &[], Behind::Web(server.port))?;
    let relay = Running::relay(&programs, server.port)?;
    let ways = [Clients::open(guard.port, clients)?, Clients::open(relay.port, clients)?];
    let mut page = Page::new(&folder.file("plain"))?;
    let mut taken = Vec::new();
    let between = || {
        for _ in 0..SYNCS {
            taken.push(page.sync()?);
        }
        Ok(())
    };
    let turn = Turn { calls: 1, rounds: effort.batches * 5, skipped: 20 };
    let [ours, bare] = side_by_side(ways, (turn, Call::Pay, clients as u64), 0.5, between)?;
    Ok(Some([ours, bare + 2.0 * median(&mut taken)]))
}

fn beside_gateway(effort: Effort, peer: Peer) -> Both {
    let (Some(programs), Some(peers)) = (Program::all()?, peers()) else { return Ok(None) };
    let folder = Folder::new()?;
    let guard = Running::guard(&programs, &folder, &[], Behind::Command)?;
    let gateway = Running::gateway(&programs, &peers, peer)?;
    let ways = [Clients::open(guard.port, 1)?, Clients::open(gateway.port, 1)?];
    let turn = Turn { calls: 10, rounds: effort.batches, skipped: 3 };
    side_by_side(ways, (turn, Call::Read, 1), 0.5, || Ok(())).map(Some)
}

fn peers() -> Option<PathBuf> {
    env::var_os(PEERS).map(PathBuf::from)
}

/// The words that start a guard with records in a file.
fn of_guard(programs: &Program, folder: &Folder) -> Vec<OsString> {
    let records = folder.file("records").into();
    vec![programs.guard.clone().into(), "mcp".into(), "--records".into(), records]
}

/// The words that start a guard for a client on stdio, in front of a server at an address.
fn to_web(programs: &Program, folder: &Folder, port: u16) -> Vec<OsString> {
    let url = format!("http://127.0.0.1:{port}/mcp").into();
    [&of_guard(programs, folder)[..], &["--upstream".into(), url]].concat()
}

/// What is behind a guard that listens.
#[derive(Clone, Copy)]
enum Behind {
    Command,
    Web(u16),
}

/// A program that listens, until this is dropped.
struct Running {
    child: Child,
    port: u16,
}

impl Running {
    fn web(programs: &Program) -> Result<Self, BoxError> {
        Self::start(|port| vec![programs.web.clone().into(), port.to_string().into()])
    }

    fn relay(programs: &Program, server: u16) -> Result<Self, BoxError> {
        Self::start(|port| {
            let ports = [port, server].map(|port| port.to_string().into());
            [&[programs.relay.clone().into()], &ports[..]].concat()
        })
    }

    /// A guard, started by other programs' words if there are any.
    fn guard(
        programs: &Program,
        folder: &Folder,
        by: &[OsString],
        behind: Behind,
    ) -> Result<Self, BoxError> {
        Self::start(|port| {
            let mut words = [by, &of_guard(programs, folder)].concat();
            words.extend(["--listen".into(), format!("127.0.0.1:{port}").into()]);
            words.extend(match behind {
                Behind::Command => ["--".into(), programs.echo.clone().into()],
                Behind::Web(server) => {
                    ["--upstream".into(), format!("http://127.0.0.1:{server}/mcp").into()]
                }
            });
            words
        })
    }

    fn gateway(programs: &Program, peers: &Path, peer: Peer) -> Result<Self, BoxError> {
        let echo = &programs.echo;
        let node = |name: &str| peers.join("node_modules/.bin").join(name).into();
        Self::start(|port| match peer {
            Peer::Supergateway => vec![
                node("supergateway"),
                "--stdio".into(),
                echo.into(),
                "--outputTransport".into(),
                "streamableHttp".into(),
                "--stateful".into(),
                "--logLevel".into(),
                "none".into(),
                "--port".into(),
                port.to_string().into(),
            ],
            Peer::McpProxyPython => vec![
                peers.join("venv/bin/mcp-proxy").into(),
                "--port".into(),
                port.to_string().into(),
                "--log-level".into(),
                "ERROR".into(),
                "--".into(),
                echo.into(),
            ],
            Peer::McpProxyNode => vec![
                node("mcp-proxy"),
                "--host".into(),
                "127.0.0.1".into(),
                "--port".into(),
                port.to_string().into(),
                "--server".into(),
                "stream".into(),
                "--".into(),
                echo.into(),
            ],
        })
    }

    /// Starts a program at a free port, and waits until it listens.
    #[expect(clippy::disallowed_methods, reason = "what is measured begins later, in no test")]
    fn start(words: impl FnOnce(u16) -> Vec<OsString>) -> Result<Self, BoxError> {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        let words = words(port);
        let (program, args) = words.split_first().ok_or("no program")?;
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut running = Self { child: command.spawn()?, port };
        let begun = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            if let Some(end) = running.child.try_wait()? {
                return Err(format!("{} does not listen: {end}", program.display()).into());
            }
            if begun.elapsed() > START {
                return Err(format!("{} does not listen", program.display()).into());
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(running)
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/mcp", self.port)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
