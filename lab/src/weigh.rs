//! `cargo lab weigh`: how many crates each dependency brings, and how long they take to build, as `docs/weight.md` has it.
//!
//! Each row is measured from outside: a program with this one dependency, under the lock file of `lab/`. What a
//! row's crates are is checked with every change, by `cargo xtask ci lab`; times are measured on demand.

mod table;

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, bail};
use toml::{Table, Value};

use self::table::{Row, Weighed};
use xtask::{builds, repo::Repo, shell};

/// Where the table is kept.
const DOCS: &str = "docs/weight.md";

/// Under which it is built.
const LOCK: &str = "lab/Cargo.lock";

/// What people add to their program: the dependency, its features (with `default` among them where they are on).
const ROWS: &[(&str, &str)] = &[
    ("tool-reliability", "retry"),
    ("tower-resilience", "retry"),
    ("tool-reliability", "breaker"),
    ("tower-resilience", "circuitbreaker"),
    ("tool-reliability", "retry, breaker"),
    ("tower-resilience", "retry, circuitbreaker"),
    ("tool-reliability", "idempotency"),
    ("tower-resilience", "cache, coalesce"),
    ("tool-reliability", "timeout"),
    ("tool-reliability", "loop-guard"),
    ("tool-reliability", "integrity"),
    ("tool-reliability", "telemetry"),
    ("tool-reliability", "idempotency, sqlite"),
    ("tool-reliability", "idempotency, redis"),
    ("tool-reliability", "default"),
    ("tr-policy", ""),
    ("tr-core", ""),
    ("tr-retry", ""),
    ("tr-breaker", ""),
    ("tr-timeout", ""),
    ("tr-idempotency", ""),
    ("tr-loopguard", ""),
    ("tr-integrity", ""),
    ("tr-transcript", ""),
    ("tr-telemetry", ""),
    ("tr-turn", ""),
];

/// Prints the table. With `times` it measures the builds of rows that contain it; `save` writes the table; a time that is not measured stays.
pub(crate) fn run(repo: &Repo, times: Option<&str>, save: bool) -> Result<()> {
    let page = page(repo)?;
    let known = table::rows(&page)?;
    let mut rows = Vec::new();
    for &(package, features) in ROWS {
        let program = Program::new(repo, package, features)?;
        let crates = program.crates(repo)?;
        let row = format!("{package} {features}");
        let seconds = if times.is_some_and(|text| row.contains(text)) {
            Some(program.build(repo)?)
        } else {
            known
                .iter()
                .find(|row| row.is_of(package, features))
                .and_then(|row| row.weighed.seconds)
        };
        let row = Row::new(package, features, Weighed { crates, seconds });
        println!("{row}");
        rows.push(row);
    }
    if save {
        let path = repo.root.join(DOCS);
        fs::write(&path, table::with(&page, &rows)?)
            .with_context(|| format!("cannot write {DOCS}"))?;
    }
    Ok(())
}

/// Fails if the page's counts of crates are not today's.
pub(crate) fn check(repo: &Repo) -> Result<()> {
    let known = table::rows(&page(repo)?)?;
    let mut faults = Vec::new();
    for &(package, features) in ROWS {
        println!("how many crates {package} brings with the features `{features}`");
        let crates = Program::new(repo, package, features)?.crates(repo)?;
        let kept =
            known.iter().find(|row| row.is_of(package, features)).map(|row| row.weighed.crates);
        if kept != Some(crates) {
            let kept = kept.map_or("no such row".into(), |kept: usize| kept.to_string());
            faults.push(format!("{package} [{features}]: {crates} crates, the page has {kept}"));
        }
    }
    if faults.is_empty() && known.len() == ROWS.len() {
        return Ok(());
    }
    bail!("{DOCS} is not current: run `cargo lab weigh --save` ({})", faults.join("; "));
}

fn page(repo: &Repo) -> Result<String> {
    fs::read_to_string(repo.root.join(DOCS)).with_context(|| format!("{DOCS} is not there"))
}

/// The version of a package that is not ours, by the lock file of `lab/`, which has the peers.
fn locked(repo: &Repo, package: &str) -> Result<String> {
    let lock: Table = fs::read_to_string(repo.root.join(LOCK))?.parse()?;
    let packages = lock.get("package").and_then(Value::as_array).context("it is empty")?;
    let found =
        packages.iter().find(|one| one.get("name").and_then(Value::as_str) == Some(package));
    let version = found.and_then(|one| one.get("version")?.as_str());
    Ok(version.with_context(|| format!("{LOCK} has no package `{package}`"))?.to_owned())
}

/// A program whose only dependency is weighed.
#[derive(Debug)]
struct Program {
    folder: PathBuf,
}

impl Program {
    fn new(repo: &Repo, package: &str, features: &str) -> Result<Self> {
        let features: Vec<_> = features.split(", ").filter(|one| !one.is_empty()).collect();
        let folder = repo.target.join("weigh").join(format!("{package}-{}", features.join("-")));
        let source = match repo.package(package) {
            Some(ours) => {
                format!(
                    "path = {:?}",
                    ours.manifest_path.parent().context("a manifest has a folder")?
                )
            }
            None => format!("version = \"={}\"", locked(repo, package)?),
        };
        let manifest = format!(
            "[package]\nname = \"weighed\"\nedition = \"2024\"\n\n[workspace]\n\n[dependencies]\n\
             {package} = {{ {source}, default-features = false, features = {features:?} }}\n"
        );
        fs::create_dir_all(folder.join("src"))?;
        fs::write(folder.join("Cargo.toml"), manifest)?;
        fs::write(folder.join("src/main.rs"), "fn main() {}\n")?;
        fs::copy(repo.root.join(LOCK), folder.join("Cargo.lock"))?;
        Ok(Self { folder })
    }

    /// The crates that are built with the program, besides itself.
    fn crates(&self, repo: &Repo) -> Result<usize> {
        let mut tree = repo.cargo();
        tree.args(["tree", "--quiet", "--edges=normal", "--prefix=none"]);
        // What other machines build differs.
        tree.args(["--target=x86_64-unknown-linux-gnu", "--manifest-path"]);
        tree.arg(self.folder.join("Cargo.toml"));
        Ok(builds::packages(&shell::read(&mut tree)?).len() - 1)
    }

    /// Builds the program from nothing, and returns the seconds that the processors worked for it.
    fn build(&self, repo: &Repo) -> Result<f64> {
        let target = self.folder.join("target");
        if target.exists() {
            fs::remove_dir_all(&target)?;
        }
        let mut fetch = repo.cargo();
        shell::run(
            fetch.args(["fetch", "--quiet", "--manifest-path"]).arg(self.folder.join("Cargo.toml")),
        )?;
        let mut timed = repo.command("bash");
        timed.args(["-c", "TIMEFORMAT='%U %S'; { time \"$@\" 2>/dev/null; } 2>&1", "weigh"]);
        timed.arg(repo.cargo().get_program());
        timed.args(["build", "--quiet", "--manifest-path"]).arg(self.folder.join("Cargo.toml"));
        timed.arg("--target-dir").arg(&target);
        for set in ["CARGO_INCREMENTAL", "CARGO_PROFILE_DEV_DEBUG", "RUSTFLAGS", "RUSTC_WRAPPER"] {
            timed.env_remove(set);
        }
        let spent = shell::read(&mut timed)?;
        fs::remove_dir_all(&target)?;
        let spent: Result<Vec<f64>, _> = spent.split_whitespace().map(str::parse).collect();
        Ok(spent.with_context(|| format!("bash names no times: {:?}", self.folder))?.iter().sum())
    }
}
