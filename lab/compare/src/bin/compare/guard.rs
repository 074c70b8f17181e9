//! What a user of `tool-guard mcp` feels, beside a bare line pump: round trips, syncs, start and size.
use crate::{
    files::Folder,
    proxy::{Program, Session},
    turns::{Call, OneCore, Page, Turn, Way as _, side_by_side},
};
use benches::measure::{Effort, median};
use std::{
    ffi::OsString,
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt as _,
    process::{Command, Stdio},
    thread,
};
use tokio::time::Instant;
use tr_core::BoxError;

/// Requests that are sent before the first answer is read.
const PIPELINED: u64 = 64;

/// Where the guard's records are.
#[derive(Clone, Copy, Debug)]
enum Records {
    Memory,
    Sqlite,
}

type Both = Result<Option<[f64; 2]>, BoxError>;

/// Nanoseconds of a read, the middle one: with records in SQLite, and through the pump.
pub(crate) fn read(effort: Effort) -> Both {
    beside_pump(effort, Call::Read, 1, 0.5)
}

/// The same, of a hundred the slowest but one.
pub(crate) fn read_p99(effort: Effort) -> Both {
    beside_pump(effort, Call::Read, 1, 0.99)
}

/// The same for each of 64 reads at once.
pub(crate) fn reads(effort: Effort) -> Both {
    beside_pump(effort, Call::Read, PIPELINED, 0.5)
}

/// Reads with records in SQLite, and with records in memory, call by call and on one core.
pub(crate) fn read_beside_memory(effort: Effort) -> Both {
    let Some(programs) = Program::all()? else { return Ok(None) };
    let folder = Folder::new()?;
    let _one_core = OneCore::new()?;
    let ways = [
        guard(&programs, Records::Sqlite, &folder, &[])?,
        guard(&programs, Records::Memory, &folder, &[])?,
    ];
    let turn = Turn { calls: 1, rounds: effort.batches * 50, skipped: 100 };
    side_by_side(ways, (turn, Call::Read, 1), 0.5, || Ok(())).map(Some)
}

/// A read of a guard that shows all that it can, and of one that shows nothing.
pub(crate) fn read_shown(effort: Effort) -> Both {
    shown(effort, Call::Read, 1)
}

/// The same for each of 64 reads at once.
pub(crate) fn reads_shown(effort: Effort) -> Both {
    shown(effort, Call::Read, PIPELINED)
}

/// The same for a keyed payment.
pub(crate) fn pay_shown(effort: Effort) -> Both {
    shown(effort, Call::Pay, 1)
}

/// With a log of all calls, metrics and spans that are sent, and pages; and without.
fn shown(effort: Effort, call: Call, at_once: u64) -> Both {
    let Some(programs) = Program::all()? else { return Ok(None) };
    let folder = Folder::new()?;
    let collector = format!("OTEL_EXPORTER_OTLP_ENDPOINT=http://{}", collector()?);
    let (log, token) = (folder.file("log"), folder.file("token"));
    fs::write(&token, "0123456789abcdef0123456789abcdef")?;
    fs::set_permissions(&token, fs::Permissions::from_mode(0o600))?;
    let all = [
        "--log".into(),
        "info".into(),
        "--log-file".into(),
        log.into(),
        "--metrics".into(),
        "127.0.0.1:0".into(),
        "--admin".into(),
        "127.0.0.1:0".into(),
        "--admin-token-file".into(),
        token.into(),
    ];
    let ways = [
        guard_with(&programs, Records::Sqlite, &folder, &["env".into(), collector.into()], &all)?,
        guard_with(&programs, Records::Sqlite, &folder, &[], &["--log".into(), "off".into()])?,
    ];
    side_by_side(ways, (Turn::of(effort), call, at_once), 0.5, || Ok(())).map(Some)
}

/// Where a collector of telemetry listens that takes all it gets.
fn collector() -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let take = |stream: TcpStream| -> Result<(), BoxError> {
        let (mut from, mut to) = (BufReader::new(stream.try_clone()?), stream);
        loop {
            let (mut line, mut length) = (String::new(), 0);
            while from.read_line(&mut line)? > 2 {
                let lower = line.to_ascii_lowercase();
                if let Some(said) = lower.strip_prefix("content-length:") {
                    length = said.trim().parse()?;
                }
                line.clear();
            }
            if length == 0 {
                return Ok(());
            }
            io::copy(&mut from.by_ref().take(length), &mut io::sink())?;
            to.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
        }
    };
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || take(stream).is_ok());
        }
    });
    Ok(address)
}

/// A keyed payment with records in SQLite, and through the pump with two syncs more.
pub(crate) fn pay(effort: Effort) -> Both {
    beside_pump_and_syncs(effort, 1)
}

/// The same for each of 64 payments at once.
pub(crate) fn pays(effort: Effort) -> Both {
    beside_pump_and_syncs(effort, PIPELINED)
}

/// Syncs of a keyed payment; `None` without strace.
pub(crate) fn syncs_of_pay(effort: Effort) -> Result<Option<f64>, BoxError> {
    syncs(effort, 1)
}

/// The same, 64 at once.
pub(crate) fn syncs_of_pays(effort: Effort) -> Result<Option<f64>, BoxError> {
    syncs(effort, PIPELINED)
}

fn syncs(effort: Effort, at_once: u64) -> Result<Option<f64>, BoxError> {
    let Some(programs) = Program::all()? else { return Ok(None) };
    if Command::new("strace").arg("--version").stdout(Stdio::null()).status().is_err() {
        return Ok(None);
    }
    let folder = Folder::new()?;
    let counts = folder.file("strace");
    let traced: [OsString; 5] = [
        "strace".into(),
        "-fqqe".into(),
        "fsync,fdatasync".into(),
        "-o".into(),
        counts.clone().into(),
    ];
    let count = || fs::read_to_string(&counts).map(|text| text.matches("sync(").count());
    let mut session = guard(&programs, Records::Sqlite, &folder, &traced)?;
    session.calls(Call::Pay, at_once)?;
    let (before, batches) = (count()?, effort.batches as u64 / 4);
    for _ in 0..batches {
        session.calls(Call::Pay, at_once)?;
    }
    Ok(Some((count()? - before) as f64 / (batches * at_once) as f64))
}

/// Nanoseconds from the start to the first answer: guard and pump.
pub(crate) fn start(effort: Effort) -> Both {
    start_of(Program::all()?, effort)
}

/// The same for the guard of the profile `dist`.
pub(crate) fn start_of_dist(effort: Effort) -> Both {
    start_of(Program::dist()?, effort)
}

fn start_of(programs: Option<Program>, effort: Effort) -> Both {
    let Some(programs) = programs else { return Ok(None) };
    let folder = Folder::new()?;
    let mut taken = [Vec::new(), Vec::new()];
    for round in 0..effort.batches / 4 + 1 {
        let begin = Instant::now();
        let ours = guard(&programs, Records::Sqlite, &folder, &[])?;
        let between = Instant::now();
        drop(ours);
        let again = Instant::now();
        let pump = pump(&programs)?;
        let times = [between - begin, again.elapsed()];
        drop(pump);
        // The first makes the file, and warms caches.
        if round > 0 {
            for (taken, time) in taken.iter_mut().zip(times) {
                taken.push(time.as_nanos() as f64);
            }
        }
    }
    Ok(Some(taken.map(|mut taken| median(&mut taken))))
}

/// The guard's resident memory after its first answers, in MiB.
pub(crate) fn idle_memory(_: Effort) -> Result<Option<f64>, BoxError> {
    idle_memory_of(Program::all()?)
}

/// The same for the guard of the profile `dist`.
pub(crate) fn idle_memory_of_dist(_: Effort) -> Result<Option<f64>, BoxError> {
    idle_memory_of(Program::dist()?)
}

fn idle_memory_of(programs: Option<Program>) -> Result<Option<f64>, BoxError> {
    let Some(programs) = programs else { return Ok(None) };
    let folder = Folder::new()?;
    let mut session = guard(&programs, Records::Sqlite, &folder, &[])?;
    session.calls(Call::Read, 1)?;
    session.calls(Call::Pay, 1)?;
    let status = fs::read_to_string(format!("/proc/{}/status", session.id()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib: f64 =
        line.and_then(|line| line.split_whitespace().next()).ok_or("no VmRSS")?.parse()?;
    Ok(Some(kib / 1024.0))
}

/// The size of the binary without its symbols, in MB; `None` without strip.
pub(crate) fn stripped(_: Effort) -> Result<Option<f64>, BoxError> {
    stripped_of(Program::all()?)
}

/// The same for the guard of the profile `dist`.
pub(crate) fn stripped_of_dist(_: Effort) -> Result<Option<f64>, BoxError> {
    stripped_of(Program::dist()?)
}

fn stripped_of(programs: Option<Program>) -> Result<Option<f64>, BoxError> {
    let Some(programs) = programs else { return Ok(None) };
    let folder = Folder::new()?;
    let file = folder.file("stripped");
    let strip = Command::new("strip").arg("-o").arg(&file).arg(&programs.guard).status();
    if !strip.is_ok_and(|end| end.success()) {
        return Ok(None);
    }
    Ok(Some(fs::metadata(&file)?.len() as f64 / 1e6))
}

/// A session with the guard, started by other programs' words if there are any.
fn guard(
    programs: &Program,
    records: Records,
    folder: &Folder,
    by: &[OsString],
) -> Result<Session, BoxError> {
    guard_with(programs, records, folder, by, &[])
}

/// The same, with more options.
fn guard_with(
    programs: &Program,
    records: Records,
    folder: &Folder,
    by: &[OsString],
    options: &[OsString],
) -> Result<Session, BoxError> {
    let place = match records {
        Records::Memory => "memory".into(),
        Records::Sqlite => folder.file("records"),
    };
    let words = [programs.guard.clone().into(), "mcp".into(), "--records".into(), place.into()];
    let server = ["--".into(), programs.echo.clone().into()];
    Session::open(&[by, &words, options, &server].concat())
}

fn pump(programs: &Program) -> Result<Session, BoxError> {
    Session::open(&[programs.pump.clone().into(), programs.echo.clone().into()])
}

fn beside_pump(effort: Effort, call: Call, at_once: u64, quantile: f64) -> Both {
    let Some(programs) = Program::all()? else { return Ok(None) };
    let folder = Folder::new()?;
    let ways = [guard(&programs, Records::Sqlite, &folder, &[])?, pump(&programs)?];
    side_by_side(ways, (Turn::of(effort), call, at_once), quantile, || Ok(())).map(Some)
}

/// The syncs are measured call by call: a disk is slow for some time, and then fast again.
fn beside_pump_and_syncs(effort: Effort, at_once: u64) -> Both {
    const SYNCS: usize = 2;
    let Some(programs) = Program::all()? else { return Ok(None) };
    let folder = Folder::new()?;
    let ways = [guard(&programs, Records::Sqlite, &folder, &[])?, pump(&programs)?];
    let mut page = Page::new(&folder.file("plain"))?;
    let mut taken = Vec::new();
    let between = || {
        for _ in 0..SYNCS {
            taken.push(page.sync()?);
        }
        Ok(())
    };
    let turn = Turn { calls: 1, rounds: effort.batches * 10, skipped: 20 };
    let [ours, bare] = side_by_side(ways, (turn, Call::Pay, at_once), 0.5, between)?;
    Ok(Some([ours, bare + 2.0 * median(&mut taken)]))
}
