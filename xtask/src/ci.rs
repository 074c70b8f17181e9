//! `cargo xtask ci`: every check that a change has to pass, the cheap ones first, the tests last.

use std::{
    collections::BTreeMap,
    env,
    fs::{self, File},
    path::PathBuf,
    process::Child,
    time::{Duration, Instant},
};

use anyhow::Result;

use crate::{
    api, deny, features, fuzz, gate, lab, loom, package,
    repo::{BENCHES, Repo},
    schemas, shell, site,
    tally::Tally,
    test, tidy,
};

/// How a step ended that did not fail.
#[derive(Debug)]
enum End {
    Passed,
    Skipped(&'static str),
    Tested(Tally),
}

/// One check.
struct Step {
    name: &'static str,
    /// What it does.
    what: &'static str,
    /// What helps when it fails.
    help: &'static str,
    run: fn(&Repo) -> Result<End>,
}

const STEPS: &[Step] = &[
    Step {
        name: "fmt",
        what: "rustfmt would change no file",
        help: "run `cargo fmt --all`",
        run: fmt,
    },
    Step {
        name: "tidy",
        what: "the rules of this repository that no other tool knows",
        help: "mend each line above; an exception goes with its reason into xtask/src/tidy/allow.rs",
        run: |repo| tidy::run(repo).map(|()| End::Passed),
    },
    Step {
        name: "site",
        what: "the guides become a site, and each of its links leads somewhere",
        help: "mend the links above, or list the page in docs/SUMMARY.md",
        run: |repo| site::run(repo).map(|()| End::Passed),
    },
    Step {
        name: "deny",
        what: "licences, sources and bans of all dependencies",
        help: "choose another dependency, or add the licence or exception with its reason to deny.toml",
        run: |repo| deny::run(repo).map(|()| End::Passed),
    },
    Step {
        name: "clippy",
        what: "lints, with all features",
        help: "mend the code; nearly all lints say how",
        run: clippy,
    },
    Step {
        name: "features",
        what: "each library builds bare, and with each of its features alone",
        help: "give the feature what it needs, in its crate's Cargo.toml or by a `cfg`",
        run: |repo| features::run(repo).map(|()| End::Passed),
    },
    Step {
        name: "docs",
        what: "the API's documentation builds, without broken links",
        help: "mend the links and examples in the docs",
        run: docs,
    },
    Step {
        name: "api",
        what: "docs/api is the public API",
        help: "if the change is meant, run `cargo xtask api`, commit it, and tell it in CHANGELOG.md",
        run: |repo| api::check(repo).map(|ran| ran_or(ran, "another version than Rust 1.95")),
    },
    Step {
        name: "schemas",
        what: "schemas/ has the types of the contract",
        help: "run `cargo xtask schemas` and commit what changed",
        run: |repo| schemas::check(repo).map(|()| End::Passed),
    },
    Step {
        name: "package",
        what: "a registry would take each crate",
        help: "give the crate what a registry wants: a README, licences, versions of what it depends on",
        run: |repo| package::run(repo, false).map(|()| End::Passed),
    },
    Step {
        name: "loom",
        what: "the models of concurrent code, in each order of their threads",
        help: "loom prints the schedule that fails; `cargo xtask loom` runs the models alone",
        run: |repo| loom::run(repo).map(|ran| ran_or(ran, "no tests/loom.rs")),
    },
    Step {
        name: "fuzz",
        what: "each fuzz target for a few seconds",
        help: "the input is under target/fuzz/crashes; add it as a unit test and mend the code",
        run: |repo| fuzz::run(repo, fuzz::SECONDS).map(|()| End::Passed),
    },
    Step {
        name: "lab",
        what: "what only makers use: its code, its tests and its pages",
        help: "mend the code, or what a `--check` says; rows in docs/coverage follow what changed names",
        run: |repo| lab::check(repo).map(|()| End::Passed),
    },
    Step {
        name: "gate",
        what: "instructions per operation are within their limits",
        help: "make it cheaper, or say in the commit why not and run `cargo xtask gate --bless`",
        run: |repo| gate::run(repo, false).map(|ran| ran_or(ran, "no package `benches`")),
    },
    Step {
        name: "benches",
        what: "each bench runs once",
        help: "`cargo bench -p benches -- --test` runs each bench once",
        run: benches,
    },
    Step {
        name: "test",
        what: "all tests, also those with foreign programs",
        help: "`cargo xtask test` runs all of them, `cargo test -p CRATE NAME` one",
        run: |repo| test::run(repo).map(End::Tested),
    },
];

/// The names of all steps, in their order.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    STEPS.iter().map(|step| step.name)
}

/// Runs the steps that are named, or all if none is; also after one that failed: one run names all that is to be mended.
pub(crate) fn run(repo: &Repo, only: &[String]) -> Result<()> {
    let begin = shell::now();
    let mut beside = if only.is_empty() { Some(Beside::start(repo)?) } else { None };
    let mut rows = Vec::new();
    for step in STEPS.iter().filter(|step| only.is_empty() || only.iter().any(|n| n == step.name)) {
        if beside.is_some() && BESIDE.contains(&step.name) {
            continue;
        }
        // Tests get the machine for themselves.
        if step.name == TEST
            && let Some(beside) = beside.take()
        {
            rows.push(beside.end());
        }
        let times = Times::read(repo.target.join("xtask/ci.json"));
        println!("\n── {}: {} ({}) ──", step.name, step.what, times.last(step.name));
        let start = shell::now();
        let end = (step.run)(repo);
        let took = start.elapsed();
        println!("── {}: {:.1} s ──", step.name, took.as_secs_f64());
        if end.is_ok() {
            Times::read(times.path).keep(step.name, took)?;
        }
        rows.push(Row { name: step.name, help: step.help, took, end });
    }
    println!("\n{}", table(&rows, begin.elapsed()));
    if let Some(Row { end: Ok(End::Tested(total)), .. }) = rows.last() {
        println!("tests: {} passed, {} failed", total.passed, total.failed);
    }
    let failures: Vec<_> = rows
        .iter()
        .filter_map(|row| Some((row, row.end.as_ref().err()?)))
        .map(|(row, error)| format!("{} failed: {}: {error:#}", row.name, row.help))
        .collect();
    anyhow::ensure!(failures.is_empty(), "{}", failures.join("\n"));
    Ok(())
}

/// How a step ended, and after how long.
struct Row {
    name: &'static str,
    help: &'static str,
    took: Duration,
    end: Result<End>,
}

/// The steps that build into folders of their own. They run beside the others, most of which keep one processor busy.
const BESIDE: [&str; 3] = ["site", "loom", "fuzz"];

/// The last step.
const TEST: &str = "test";

/// Those steps, in a process of their own; what it prints is shown when it has ended.
struct Beside {
    process: Child,
    log: PathBuf,
    start: Instant,
}

impl Beside {
    fn start(repo: &Repo) -> Result<Self> {
        let log = repo.target.join("xtask/beside.log");
        fs::create_dir_all(repo.target.join("xtask"))?;
        let file = File::create(&log)?;
        let mut ci = repo.command(env::current_exe()?);
        ci.arg("ci").args(BESIDE).stdout(file.try_clone()?).stderr(file);
        println!("beside all but the tests: {}", BESIDE.join(", "));
        Ok(Self { process: ci.spawn()?, log, start: shell::now() })
    }

    fn end(mut self) -> Row {
        let ended = self.process.wait();
        println!("\n── beside ──\n{}", fs::read_to_string(&self.log).unwrap_or_default());
        let end = match ended {
            Ok(status) if status.success() => Ok(End::Passed),
            Ok(status) => Err(anyhow::anyhow!("`cargo xtask ci {}`: {status}", BESIDE.join(" "))),
            Err(error) => Err(error.into()),
        };
        Row { name: "beside", help: "see above", took: self.start.elapsed(), end }
    }
}

/// How many seconds each step took when it last passed, kept under the target folder.
#[derive(Debug)]
struct Times {
    path: PathBuf,
    seconds: BTreeMap<String, f64>,
}

impl Times {
    /// A file that is missing or damaged is as good as an empty one.
    fn read(path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).unwrap_or_default();
        Self { path, seconds: serde_json::from_str(&text).unwrap_or_default() }
    }

    fn last(&self, name: &str) -> String {
        let seconds = self.seconds.get(name);
        seconds.map_or_else(|| "first time".into(), |seconds| format!("last time {seconds:.1} s"))
    }

    /// Written after each step, so that a run that is interrupted leaves what it measured.
    fn keep(&mut self, name: &str, took: Duration) -> Result<()> {
        self.seconds.insert(name.into(), took.as_secs_f64());
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        Ok(fs::write(&self.path, serde_json::to_string_pretty(&self.seconds)?)?)
    }
}

fn table(rows: &[Row], total: Duration) -> String {
    let mut table = String::new();
    for Row { name, took, end, .. } in rows {
        let end = match end {
            Ok(End::Passed) => "ok".into(),
            Ok(End::Skipped(why)) => format!("skipped: {why}"),
            Ok(End::Tested(tally)) => format!("ok, {} tests", tally.passed),
            Err(_) => "FAILED".into(),
        };
        table += &format!("{name:<8} {:>7.1} s  {end}\n", took.as_secs_f64());
    }
    table + &format!("{:<8} {:>7.1} s\n", "all", total.as_secs_f64())
}

fn ran_or(ran: bool, why: &'static str) -> End {
    if ran { End::Passed } else { End::Skipped(why) }
}

fn fmt(repo: &Repo) -> Result<End> {
    shell::run(repo.cargo().args(["fmt", "--all", "--check"])).map(|()| End::Passed)
}

fn clippy(repo: &Repo) -> Result<End> {
    let mut cargo = repo.cargo();
    cargo.args(["clippy", "--workspace", "--all-features", "--all-targets"]);
    shell::run(cargo.args(["--", "-D", "warnings"])).map(|()| End::Passed)
}

fn docs(repo: &Repo) -> Result<End> {
    let mut cargo = repo.cargo();
    cargo.args(["doc", "--no-deps", "--workspace", "--all-features"]);
    shell::run(cargo.env("RUSTDOCFLAGS", "-D warnings")).map(|()| End::Passed)
}

/// Runs each bench once.
fn benches(repo: &Repo) -> Result<End> {
    let mut cargo = repo.cargo();
    cargo.args(["bench", "--package", BENCHES]);
    shell::run(cargo.args(["--", "--test"])).map(|()| End::Passed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_tells_every_end() {
        let second = Duration::from_secs(1);
        let row = |name, end| Row { name, help: "", took: second, end };
        let rows = [
            row("fmt", Ok(End::Passed)),
            row("loom", Ok(End::Skipped("no tests/loom.rs"))),
            row("test", Ok(End::Tested(Tally { passed: 7, failed: 0 }))),
            row("gate", Err(anyhow::anyhow!("too many"))),
        ];
        let table = table(&rows, second * 4);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(
            lines,
            [
                "fmt          1.0 s  ok",
                "loom         1.0 s  skipped: no tests/loom.rs",
                "test         1.0 s  ok, 7 tests",
                "gate         1.0 s  FAILED",
                "all          4.0 s",
            ]
        );
    }

    #[test]
    fn the_tests_come_last() {
        assert_eq!(names().last(), Some(TEST));
        assert!(BESIDE.iter().all(|beside| names().any(|name| name == *beside)));
    }

    #[test]
    fn the_jobs_on_github_run_each_step_once() {
        let workflow = include_str!("../../.github/workflows/ci.yml");
        let mut run: Vec<_> = workflow
            .lines()
            .filter_map(|line| line.trim().strip_prefix("steps: "))
            .flat_map(str::split_whitespace)
            .collect();
        run.sort_unstable();
        let mut all: Vec<_> = names().collect();
        all.sort_unstable();
        assert_eq!(run, all);
    }

    #[test]
    fn a_step_tells_how_long_it_took_last_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("xtask/ci.json");
        let mut times = Times::read(path.clone());
        assert_eq!(times.last("fmt"), "first time");
        times.keep("fmt", Duration::from_millis(12_340)).unwrap();
        times.keep("tidy", Duration::from_secs(2)).unwrap();
        let times = Times::read(path.clone());
        assert_eq!(
            (&*times.last("fmt"), &*times.last("tidy")),
            ("last time 12.3 s", "last time 2.0 s")
        );
        fs::write(&path, "{").unwrap();
        assert_eq!(Times::read(path).last("fmt"), "first time");
    }
}
