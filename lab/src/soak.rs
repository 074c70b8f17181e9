//! `cargo lab soak`: the tests that repeat themselves, in release mode and for their full number of rounds.
//!
//! A test that calls `tr_testkit::rounds` is found by its source; the test binary it belongs to is run whole.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use cargo_metadata::{Package, TargetKind};

use xtask::{
    repo::Repo,
    shell,
    tally::Tally,
    test::{Foreign, GUARD, count, release_guard},
};

/// What asks for the full number of rounds, as `tr_testkit::SOAK` says.
const SOAK: (&str, &str) = ("TR_SOAK", "1");

/// The package that the rounds come from.
const TESTKIT: &str = "tr-testkit";

/// One test binary.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Binary {
    package: String,
    /// The arguments with which cargo selects it.
    target: Vec<String>,
}

/// How a test binary ended, and after how long.
type Row = (Binary, Duration, Result<Tally>);

/// Runs them one after the other; fails at the end if one did.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    let binaries = binaries(repo)?;
    ensure!(!binaries.is_empty(), "no test calls `tr_testkit::rounds`");
    let foreign = repo.names_under("tests");
    let soaked: Vec<_> = foreign
        .into_iter()
        .filter(|name| binaries.iter().any(|binary| binary.package == *name))
        .collect();
    let parts = if soaked.is_empty() {
        None
    } else {
        Some((Foreign::ensure(repo, &soaked)?, release_guard(repo)?))
    };
    let mut rows = Vec::new();
    for binary in binaries {
        let mut cargo = repo.cargo();
        cargo.args(["test", "--release", "--all-features", "--package", &binary.package]);
        cargo.args(&binary.target).env(SOAK.0, SOAK.1);
        if let Some((parts, guard)) = parts.as_ref().filter(|_| soaked.contains(&&*binary.package))
        {
            parts.tell(&mut cargo);
            cargo.env(GUARD, guard);
        }
        let start = shell::now();
        let end = count(&mut cargo);
        rows.push((binary, start.elapsed(), end));
    }
    println!("\n{}", table(&rows));
    for (binary, _, end) in rows {
        end.with_context(|| format!("{} does not hold out", binary.package))?;
    }
    Ok(())
}

/// The test binaries of this workspace that call for rounds, each once.
fn binaries(repo: &Repo) -> Result<Vec<Binary>> {
    let mut binaries = Vec::new();
    for (path, text) in repo.texts()? {
        let package = repo.package_of(&path);
        let Some(package) = package.filter(|package| depends_on(package, TESTKIT)) else {
            continue;
        };
        if is_repeating(&path, &text) {
            let full = repo.root.join(&path);
            let target = target_of(package, &full.to_string_lossy());
            let target = target.with_context(|| format!("{path} belongs to no test"))?;
            binaries.push(Binary { package: package.name.to_string(), target });
        }
    }
    binaries.sort();
    binaries.dedup();
    Ok(binaries)
}

fn depends_on(package: &Package, name: &str) -> bool {
    package.dependencies.iter().any(|dependency| dependency.name == name)
}

/// Whether a file has a test that repeats itself.
fn is_repeating(path: &str, text: &str) -> bool {
    let is_code = |line: &str| !line.trim_start().starts_with("//");
    let has =
        |word: &str| text.lines().filter(|line| is_code(line)).any(|line| line.contains(word));
    path.ends_with(".rs") && has("tr_testkit") && has("rounds(")
}

/// The library, or the test, binary or example whose folder is the innermost around the file.
fn target_of(package: &Package, path: &str) -> Option<Vec<String>> {
    let flag = |kind: &TargetKind| match kind {
        TargetKind::Test => Some("--test"),
        TargetKind::Bin => Some("--bin"),
        TargetKind::Lib => Some("--lib"),
        _ => None,
    };
    let targets = package.targets.iter().filter_map(|target| {
        let flag = target.kind.iter().find_map(flag)?;
        let is_it = target.src_path == path;
        let folder = target.src_path.parent()?;
        let is_around = path.starts_with(&format!("{folder}/"));
        (is_it || is_around).then_some((is_it, folder.as_str().len(), flag, target))
    });
    let (_, _, flag, target) = targets.max_by_key(|(is_it, depth, ..)| (*is_it, *depth))?;
    let name = (flag != "--lib").then(|| target.name.clone());
    Some([flag.to_owned()].into_iter().chain(name).collect())
}

fn table(rows: &[Row]) -> String {
    let mut table = String::new();
    for (binary, took, end) in rows {
        let end = match end {
            Ok(tally) => format!("ok, {} tests", tally.passed),
            Err(_) => "FAILED".into(),
        };
        let name = format!("{} {}", binary.package, binary.target.join(" "));
        table += &format!("{name:<40} {:>7.1} s  {end}\n", took.as_secs_f64());
    }
    table
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_test_that_calls_for_rounds_is_found_and_talk_of_them_is_not() {
        let test = "use tr_testkit::rounds;\nfor _ in 0..rounds(5, 100) {}\n";
        assert!(is_repeating("crates/a/tests/it/drops.rs", test));
        assert!(!is_repeating("docs/a.md", test));
        assert!(!is_repeating("crates/a/tests/a.rs", "/// `tr_testkit::rounds(5, 100)`\n"));
        assert!(!is_repeating("crates/a/src/a.rs", "fn f() { self.rounds(3); }\n"));
    }

    #[test]
    fn a_file_belongs_to_the_binary_around_it() {
        let repo = Repo::at(Path::new("../Cargo.toml")).unwrap();
        let package = repo.package("xtask").unwrap();
        let of = |path: &str| target_of(package, &repo.root.join(path).to_string_lossy());
        let bin = Some(vec!["--bin".to_owned(), "xtask".to_owned()]);
        let lib = Some(vec!["--lib".to_owned()]);
        assert_eq!(of("xtask/src/main.rs"), bin);
        assert_eq!(of("xtask/src/lib.rs"), lib);
        assert_eq!(of("xtask/peers/a.rs"), None);

        let breaker = repo.package("tr-breaker").unwrap();
        let of = |path: &str| target_of(breaker, &repo.root.join(path).to_string_lossy());
        let test = |name: &str| Some(vec!["--test".to_owned(), name.to_owned()]);
        assert_eq!(of("crates/tr-breaker/tests/it/peers.rs"), test("it"));
        assert_eq!(of("crates/tr-breaker/tests/clocks.rs"), test("clocks"));
        assert_eq!(of("crates/tr-breaker/src/state.rs"), Some(vec!["--lib".to_owned()]));
    }

    #[test]
    fn the_table_tells_every_end() {
        let binary = |package: &str, target: &[&str]| Binary {
            package: package.into(),
            target: target.iter().map(|word| (*word).into()).collect(),
        };
        let second = Duration::from_secs(1);
        let rows = [
            (binary("tr-retry", &["--lib"]), second, Ok(Tally { passed: 3, failed: 0 })),
            (binary("kill", &["--test", "it"]), second * 60, Err(anyhow::anyhow!("no"))),
        ];
        let table = table(&rows);
        let lines: Vec<_> = table.lines().collect();
        assert_eq!(
            lines,
            [
                "tr-retry --lib                               1.0 s  ok, 3 tests",
                "kill --test it                              60.0 s  FAILED",
            ]
        );
    }
}
