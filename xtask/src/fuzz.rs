//! `cargo xtask fuzz`: every fuzz target for a few seconds, without sanitizers, so that stable Rust does.

use std::{
    fs,
    panic::resume_unwind,
    path::Path,
    sync::{Mutex, PoisonError},
    thread,
};

use anyhow::{Context as _, Result};

use crate::{
    need::{self, CPP},
    pins,
    repo::Repo,
    shell,
};

/// Seconds for each target when the user names none.
pub(crate) const SECONDS: u32 = 2;

/// The package of all targets, from the root.
const FOLDER: &str = "fuzz";

/// Builds the targets, and runs as many at once as there are processors.
pub(crate) fn run(repo: &Repo, seconds: u32) -> Result<()> {
    // libFuzzer is C++.
    need::ensure(repo, &[&CPP])?;
    let cargo_fuzz = pins::venv(repo, "tools/fuzz", "xtask/tools/fuzz.txt")?.join("cargo-fuzz");
    let work = repo.target.join("fuzz");
    let mut build = repo.command(&cargo_fuzz);
    build.args(["build", "--sanitizer", "none", "--fuzz-dir", FOLDER, "--target-dir"]).arg(&work);
    // A few seconds of fuzzing do not repay what better code takes to build.
    build.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0").env("CARGO_PROFILE_RELEASE_DEBUG", "0");
    shell::run(&mut build)?;
    let targets = shell::read(repo.command(&cargo_fuzz).args(["list", "--fuzz-dir", FOLDER]))?;
    let programs = work.join(format!("{}/release", host(repo)?));
    let waiting = Mutex::new(targets.lines());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        while let Some(target) = next() {
            smoke(repo, &programs, target, seconds)?;
        }
        Ok(())
    };
    let ends: Vec<Result<()>> = thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    ends.into_iter().collect()
}

/// The platform that cargo-fuzz builds for.
fn host(repo: &Repo) -> Result<String> {
    let version = shell::read(repo.command("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).context("rustc names no host")
}

fn smoke(repo: &Repo, programs: &Path, target: &str, seconds: u32) -> Result<()> {
    let work = repo.target.join("fuzz");
    let corpus = work.join("corpus").join(target);
    let crashes = work.join("crashes").join(target);
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&crashes)?;
    let mut command = repo.command(programs.join(target));
    // New inputs go to the first folder; the committed ones are only read.
    command.arg(corpus);
    let committed = repo.root.join(FOLDER).join("corpus").join(target);
    if committed.exists() {
        command.arg(committed);
    }
    shell::run(
        command
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-artifact_prefix={}/", crashes.display())),
    )
}
