//! `cargo lab worst`: what hostile input costs `tool-guard`, beside ordinary input of the same size.
//!
//! Each case runs in a process of its own. Time is what the process and its server took of the CPU,
//! memory the most that it held.

mod cost;
mod files;
mod lines;

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use cost::Cost;
use xtask::{
    need::{self, PYTHON, TIME},
    repo::Repo,
    shell,
};

/// Bytes of each input when the user names none.
pub(crate) const BYTES: usize = 10_000_000;
/// Times the ordinary input's time that a worst case may take, and times its memory.
const LIMITS: (f64, f64) = (3.0, 2.0);
/// Runs of each case; the quickest counts.
const RUNS: usize = 3;

/// An input of any size.
#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    make: fn(usize) -> Input,
}

impl Case {
    const fn mcp(name: &'static str, make: fn(usize) -> Input) -> Self {
        Self { name, make }
    }

    const fn file(name: &'static str, make: fn(usize) -> Input) -> Self {
        Self { name, make }
    }
}

enum Input {
    /// A session file with this name.
    File(&'static str, Vec<u8>),
    /// What the server answers to a call, or to another request.
    Answer(&'static str, Vec<u8>),
    /// What the client sends.
    Sent(Vec<u8>),
}

/// Measures every case whose name contains `wanted`.
pub(crate) fn run(repo: &Repo, bytes: usize, wanted: &str, guard: Option<PathBuf>) -> Result<()> {
    need::ensure(repo, &[&PYTHON, &TIME])?;
    let guard = match guard {
        Some(built) => built.canonicalize()?,
        None => {
            shell::run(repo.cargo().args(["build", "--release", "--package", "tool-guard"]))?;
            repo.target.join("release/tool-guard")
        }
    };
    let work = repo.target.join("worst");
    fs::create_dir_all(&work)?;
    println!(
        "| command | {bytes} bytes of | CPU s | times plain | MB | times plain | Python's json: s | MB |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let files = [&files::RECORDS[..], &files::BLOCKS, &files::LINKS, &files::SHAPES].concat();
    let mut over = Vec::new();
    for (command, cases) in [
        ("mcp", &lines::ANSWERS[..]),
        ("mcp", &lines::MESSAGES),
        ("mcp", &lines::SENT),
        ("check", &files),
        ("repair", &files),
    ] {
        if !cases.iter().any(|case| case.name.contains(wanted)) {
            continue;
        }
        let mut plain = None;
        for (at, case) in cases.iter().enumerate() {
            if at > 0 && !case.name.contains(wanted) {
                continue;
            }
            let input = (case.make)(bytes);
            let cost = cheapest(&guard, &work, command, &input)
                .with_context(|| format!("{command} {}", case.name))?;
            let (time, memory) = cost.times(*plain.get_or_insert(cost));
            let parsed = cost::of_parsing(&work, &input)?;
            println!(
                "| `{command}` | {} | {:.3} | {time:.1} | {:.0} | {memory:.1} | {:.3} | {:.0} |",
                case.name, cost.seconds, cost.megabytes, parsed.seconds, parsed.megabytes,
            );
            if time > LIMITS.0 || memory > LIMITS.1 {
                over.push(format!("{command} {}", case.name));
            }
        }
    }
    ensure!(
        over.is_empty(),
        "more than {} times the time or {} times the memory: {}",
        LIMITS.0,
        LIMITS.1,
        over.join(", ")
    );
    Ok(())
}

/// The least of several runs: others on the machine only add.
fn cheapest(guard: &Path, work: &Path, command: &str, input: &Input) -> Result<Cost> {
    let mut best = cost::of(guard, work, command, input)?;
    for _ in 1..RUNS {
        best = best.least(cost::of(guard, work, command, input)?);
    }
    Ok(best)
}
