//! `tool-guard session check` and `repair` on a file of a million lines, beside a parser of its lines.
use crate::files::Folder;
use benches::{
    measure::{Effort, median},
    run::worked,
};
use std::{
    env,
    fmt::Write as _,
    fs::{self, File},
    hint::black_box,
    io::{BufRead as _, BufReader, BufWriter, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};
use tr_core::BoxError;

const LINES: u64 = 1_000_000;

/// Lines of a turn: a prompt, a call, its result, an answer.
const TURN: u64 = 4;

/// Turns of which one has lost its result.
const EVERY: u64 = 25_000;

/// The figures of a row are medians of so many runs.
const RUNS: usize = 3;

/// What a run of the command took.
struct Taken {
    /// Nanoseconds of processor time.
    worked: f64,
    /// Bytes that it held at its peak.
    peak: f64,
}

/// Nanoseconds of the command, and of parsing the lines; `None` if the guard is not built.
fn beside_parser(command: &str, damaged: bool) -> Result<Option<[f64; 2]>, BoxError> {
    let Some((_folder, guard, file)) = set_up(damaged)? else { return Ok(None) };
    let mut taken = [Vec::new(), Vec::new()];
    for _ in 0..RUNS {
        taken[0].push(run(&guard, command, &file)?.worked);
        let before = worked();
        for line in BufReader::new(File::open(&file)?).lines() {
            black_box(serde_json::from_str::<serde_json::Value>(&line?)?);
        }
        taken[1].push((worked() - before).as_nanos() as f64);
    }
    Ok(Some(taken.map(|mut taken| median(&mut taken))))
}

pub(crate) fn check(_: Effort) -> Result<Option<[f64; 2]>, BoxError> {
    beside_parser("check", false)
}

pub(crate) fn repair(_: Effort) -> Result<Option<[f64; 2]>, BoxError> {
    beside_parser("repair", true)
}

/// Megabytes that the check holds.
pub(crate) fn check_holds(_: Effort) -> Result<Option<f64>, BoxError> {
    let Some((_folder, guard, file)) = set_up(false)? else { return Ok(None) };
    Ok(Some(run(&guard, "check", &file)?.peak / 1e6))
}

/// How many times the file the repair holds.
pub(crate) fn repair_holds(_: Effort) -> Result<Option<f64>, BoxError> {
    let Some((_folder, guard, file)) = set_up(true)? else { return Ok(None) };
    Ok(Some(run(&guard, "repair", &file)?.peak / fs::metadata(&file)?.len() as f64))
}

/// The guard beside this program, and a file of which some turns may have lost their results.
fn set_up(damaged: bool) -> Result<Option<(Folder, PathBuf, PathBuf)>, BoxError> {
    let own = env::current_exe()?;
    let guard = own.parent().ok_or("this program lies nowhere")?.join("tool-guard");
    if !guard.exists() {
        return Ok(None);
    }
    let folder = Folder::new()?;
    let file = folder.file("million");
    write(&file, damaged)?;
    Ok(Some((folder, guard, file)))
}

/// Writes a session of Claude Code's.
fn write(file: &Path, damaged: bool) -> Result<(), BoxError> {
    let mut out = BufWriter::new(File::create(file)?);
    let (mut parent, mut id) = ("null".to_owned(), String::new());
    for line in 0..LINES {
        let turn = line / TURN;
        let is_lost = damaged && turn % EVERY == EVERY / 2;
        let (kind, message) = match line % TURN {
            0 => ("user", format!(r#"{{"role":"user","content":"prompt {turn}"}}"#)),
            1 => (
                "assistant",
                answer(
                    line,
                    &format!(r#""type":"tool_use","id":"toolu_{turn}","name":"pay","input":{{}}"#),
                ),
            ),
            2 if is_lost => ("user", r#"{"role":"user","content":"Are you there?"}"#.to_owned()),
            2 => (
                "user",
                format!(
                    r#"{{"role":"user","content":[{{"type":"tool_result","tool_use_id":"toolu_{turn}","content":"ok"}}]}}"#
                ),
            ),
            _ => ("assistant", answer(line, r#""type":"text","text":"done""#)),
        };
        id.clear();
        write!(
            id,
            "\"{:08x}-0000-4000-8000-{line:012x}\"",
            (line as u32).wrapping_mul(0x9e37_79b9)
        )?;
        writeln!(
            out,
            r#"{{"parentUuid":{parent},"type":"{kind}","message":{message},"uuid":{id}}}"#
        )?;
        parent.clone_from(&id);
    }
    Ok(out.flush()?)
}

fn answer(line: u64, block: &str) -> String {
    format!(r#"{{"id":"msg_{line}","role":"assistant","content":[{{{block}}}]}}"#)
}

/// Runs the command. What it prints, and with which code it ends, the tests of the guard look at.
fn run(guard: &Path, command: &str, file: &Path) -> Result<Taken, BoxError> {
    let before = children_worked()?;
    let mut child = Command::new(guard)
        .args(["session", command])
        .arg(file)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0.0;
    while child.try_wait()?.is_none() {
        // Once it has ended there are no figures any more.
        let told = fs::read_to_string(&status).unwrap_or_default();
        let kilobytes = told.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = kilobytes.and_then(|it| it.trim().strip_suffix(" kB")?.parse().ok());
        peak = kilobytes.map_or(peak, |kilobytes: f64| kilobytes * 1024.0);
        #[expect(clippy::disallowed_methods, reason = "a sample of memory each 2 ms, in no test")]
        thread::sleep(Duration::from_millis(2));
    }
    Ok(Taken { worked: children_worked()? - before, peak })
}

/// Nanoseconds that the programs have worked which this one started, and which have ended.
fn children_worked() -> Result<f64, BoxError> {
    /// Linux counts in hundredths of a second.
    const TICK: f64 = 1e7;
    let told = fs::read_to_string("/proc/self/stat")?;
    let fields = told.rsplit_once(')').ok_or("/proc/self/stat is not understood")?.1;
    let mut ticks = fields.split_whitespace().skip(13).take(2).map(str::parse::<f64>);
    let (Some(own), Some(system)) = (ticks.next(), ticks.next()) else {
        return Err("/proc/self/stat is too short".into());
    };
    Ok((own? + system?) * TICK)
}
