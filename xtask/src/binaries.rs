//! The test binaries of the workspace: built together, so that each crate is built once, and run several at a time, since
//! many of them wait for other programs.

use std::{
    panic::resume_unwind,
    process::{Command, Stdio},
    sync::{Mutex, PoisonError},
    thread,
    time::Duration,
};

use anyhow::{Context as _, Result, bail, ensure};
use cargo_metadata::{Message, camino::Utf8PathBuf};

use crate::{
    repo::Repo,
    shell,
    tally::{self, Tally},
};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Binary {
    pub(crate) package: String,
    /// `tests/it.rs` is `it`; unit tests have the name of their crate.
    pub(crate) target: String,
    /// Where cargo would start it.
    folder: Utf8PathBuf,
    program: Utf8PathBuf,
}

/// Builds those that `cargo`, a `cargo test`, would run.
pub(crate) fn built(repo: &Repo, cargo: &mut Command) -> Result<Vec<Binary>> {
    let output = shell::read(cargo.args(["--no-run", "--message-format=json-render-diagnostics"]))?;
    let mut binaries = Vec::new();
    for message in Message::parse_stream(output.as_bytes()) {
        let Message::CompilerArtifact(artifact) = message? else { continue };
        let Some(program) = artifact.executable.filter(|_| artifact.profile.test) else { continue };
        let package = repo.packages.iter().find(|package| package.id == artifact.package_id);
        let package = package.with_context(|| format!("{program} is of no package"))?;
        binaries.push(Binary {
            package: package.name.to_string(),
            target: artifact.target.name,
            folder: package.manifest_path.parent().context("a manifest has a folder")?.to_owned(),
            program,
        });
    }
    ensure!(!binaries.is_empty(), "there are no tests");
    Ok(binaries)
}

/// How one ended, and after how long.
type Row = (Binary, Duration, Tally);

/// Runs all of them, in their order; `tell` gives a program its variables. The output of those that fail is shown.
pub(crate) fn run(binaries: Vec<Binary>, tell: impl Fn(&mut Command) + Sync) -> Result<Tally> {
    let waiting = Mutex::new(binaries.into_iter());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    let work = || {
        let mut rows: Vec<Row> = Vec::new();
        while let Some(binary) = next() {
            let mut command = Command::new(&binary.program);
            command.current_dir(&binary.folder).env("CARGO_MANIFEST_DIR", &binary.folder);
            tell(&mut command);
            let start = shell::now();
            let tally = ran(&binary, &mut command)?;
            rows.push((binary, start.elapsed(), tally));
        }
        Ok(rows)
    };
    let parts: Vec<Result<Vec<Row>>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once()).map(|_| scope.spawn(work)).collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });
    let mut rows = parts.into_iter().collect::<Result<Vec<_>>>()?.concat();
    rows.sort_by_key(|(_, took, _)| std::cmp::Reverse(*took));
    println!("\n{}", table(&rows));
    let mut total = Tally::default();
    rows.iter().for_each(|(_, _, tally)| total += *tally);
    let failed: Vec<_> = rows
        .iter()
        .filter(|(_, _, tally)| tally.failed > 0)
        .map(|(binary, ..)| format!("{} {}", binary.package, binary.target))
        .collect();
    if failed.is_empty() {
        return Ok(total);
    }
    bail!("{} tests failed, in {}", total.failed, failed.join(", "))
}

/// One more than there are processors: one of them waits.
fn at_once() -> usize {
    thread::available_parallelism().map_or(2, usize::from) + 1
}

/// Runs one. One that ends badly without a failed test counts as a failure, and so does one that ends before it says how.
fn ran(binary: &Binary, command: &mut Command) -> Result<Tally> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("{} does not start", binary.program))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut tally = Tally::default();
    let mut is_whole = false;
    for part in text.lines().filter_map(tally::closing) {
        is_whole = true;
        tally += part;
    }
    let Binary { package, target, .. } = binary;
    if !output.status.success() || !is_whole {
        tally.failed = tally.failed.max(1);
        let errors = String::from_utf8_lossy(&output.stderr);
        println!("── {package} {target} ({}) ──\n{text}{errors}", output.status);
    } else {
        println!("{package} {target}: {} passed", tally.passed);
    }
    Ok(tally)
}

/// The slowest ones, with their seconds.
fn table(rows: &[Row]) -> String {
    let row = |(binary, took, tally): &Row| {
        let name = format!("{} {}", binary.package, binary.target);
        format!("{name:<44} {:>5} tests {:>7.1} s\n", tally.passed, took.as_secs_f64())
    };
    rows.iter().take(20).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn binary(script: &str) -> (Binary, Command) {
        let binary = Binary {
            package: "pay".into(),
            target: "it".into(),
            folder: "/".into(),
            program: "/bin/sh".into(),
        };
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        (binary, command)
    }

    #[test]
    fn tests_are_counted_and_a_bad_end_is_a_failure() {
        let passed = "test result: ok. 3 passed; 0 failed; 0 ignored";
        for (script, wanted) in [
            (format!("echo '{passed}'"), (3, 0)),
            (format!("echo '{passed}'; exit 101"), (3, 1)),
            ("kill -9 $$".into(), (0, 1)),
            ("echo 'running 3 tests'".into(), (0, 1)),
        ] {
            let (binary, mut command) = binary(&script);
            let tally = ran(&binary, &mut command).unwrap();
            assert_eq!((tally.passed, tally.failed), wanted, "{script}");
        }
    }

    #[test]
    fn the_table_names_what_took_long() {
        let (binary, _) = binary("");
        let rows = [(binary, Duration::from_millis(1500), Tally { passed: 7, failed: 0 })];
        assert_eq!(table(&rows), format!("{:<44}     7 tests     1.5 s\n", "pay it"));
    }
}
