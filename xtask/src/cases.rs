//! `cargo xtask cases`: where the test of each acceptance case is, and on request its result.
//!
//! A test shows a case by carrying its ID: `fn tr_07_retry_budget_exhausted` shows `tr_07` of `xtask/CASES.txt`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
};

use anyhow::{Context as _, Result, ensure};

use crate::{peers, repo::Repo, shell, tally};

/// A row of `CASES.txt`.
#[derive(Debug, PartialEq)]
struct Case<'a> {
    id: &'a str,
    what: &'a str,
}

/// A test that shows a case.
#[derive(Debug, PartialEq)]
struct Test {
    name: String,
    path: String,
}

/// Name of a test to its result.
type Results = BTreeMap<String, String>;

const PASSED: &str = "ok";
const NOT_RUN: &str = "did not run";

pub(crate) fn run(repo: &Repo, run: bool, all: bool) -> Result<()> {
    let list = fs::read_to_string(repo.root.join("xtask/CASES.txt"))
        .context("xtask/CASES.txt cannot be read")?;
    let sources = sources(repo)?;
    let found: Vec<_> =
        parse(&list)?.into_iter().map(|case| (tests_of(&case, &sources), case)).collect();
    let tests = || found.iter().flat_map(|(tests, _)| tests);
    let results = match run && tests().next().is_some() {
        true => results(repo, tests())?,
        false => Results::new(),
    };
    let result = |test: &Test| results.get(&test.name).map_or(NOT_RUN, String::as_str);

    for (tests, case) in &found {
        println!("{:<8} {}", case.id, case.what);
        for test in tests {
            let result = if run { result(test) } else { "" };
            println!("{:>8} {}  {}  {result}", "", test.name, test.path);
        }
    }
    let missing: Vec<_> =
        found.iter().filter(|(tests, _)| tests.is_empty()).map(|(_, case)| case.id).collect();
    println!("\n{} of {} cases have a test", found.len() - missing.len(), found.len());
    if !missing.is_empty() {
        println!("without a test: {}", missing.join(" "));
    }
    ensure!(missing.is_empty() || !all, "{} cases have no test", missing.len());
    let bad = tests().filter(|test| run && result(test) != PASSED).count();
    ensure!(bad == 0, "{bad} tests of cases did not pass");
    Ok(())
}

fn parse(list: &str) -> Result<Vec<Case<'_>>> {
    list.lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| {
            let (id, what) = line
                .split_once('\t')
                .with_context(|| format!("xtask/CASES.txt: no tab in `{line}`"))?;
            Ok(Case { id, what })
        })
        .collect()
}

/// Path and text of every Rust file.
fn sources(repo: &Repo) -> Result<Vec<(String, String)>> {
    let mut sources = repo.texts()?;
    sources.retain(|(path, _)| path.ends_with(".rs"));
    Ok(sources)
}

fn tests_of(case: &Case<'_>, sources: &[(String, String)]) -> Vec<Test> {
    let mut found = Vec::new();
    for (path, text) in sources {
        for name in functions(text).filter(|name| shows(name, case.id)) {
            found.push(Test { name: name.into(), path: path.clone() });
        }
    }
    found
}

/// Names of the functions that stand at the beginning of a line.
pub fn functions(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let line = line.trim_start();
        let line = line.strip_prefix("pub ").unwrap_or(line);
        let line = line.strip_prefix("async ").unwrap_or(line);
        let name = line.strip_prefix("fn ")?;
        name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
    })
}

fn shows(name: &str, id: &str) -> bool {
    name.strip_prefix(id).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// Runs the tests; name of a test to its result, the bad one where two tests have one name.
fn results<'t>(repo: &Repo, tests: impl Iterator<Item = &'t Test>) -> Result<Results> {
    let mut cargo = repo.cargo();
    cargo.args(["test", "--all-features", "--tests", "--no-fail-fast"]);
    let (mut packages, mut names) = (BTreeSet::new(), BTreeSet::new());
    for test in tests {
        packages.extend(repo.package_of(&test.path).map(|package| package.name.as_str()));
        names.insert(test.name.as_str());
    }
    if repo.names_under("tests").iter().any(|foreign| packages.contains(foreign)) {
        cargo.env(peers::VARIABLE, peers::ensure(repo)?);
    }
    for package in packages {
        cargo.args(["--package", package]);
    }
    cargo.arg("--").args(&names);

    let mut results = Results::new();
    let ended = shell::watch(&mut cargo, |line| {
        let Some((name, result)) = tally::result(line) else { return };
        if names.contains(name) && results.get(name).is_none_or(|earlier| earlier == PASSED) {
            results.insert(name.into(), result.into());
        }
    });
    // A failed test is the table's to tell; without any result the build failed.
    if results.is_empty() { ended.map(|()| results) } else { Ok(results) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_without_its_comment() {
        let list = "# id\tcase\ntr_01\tfirst\neh_1_1\tsecond\n";
        assert_eq!(
            parse(list).unwrap(),
            [Case { id: "tr_01", what: "first" }, Case { id: "eh_1_1", what: "second" }]
        );
        assert!(parse("tr_01 without a tab").is_err());
    }

    #[test]
    fn the_committed_list_is_whole() {
        assert_eq!(parse(include_str!("../CASES.txt")).unwrap().len(), 84);
    }

    #[test]
    fn a_test_shows_a_case_by_its_whole_id() {
        let case = Case { id: "eh_1_1", what: "" };
        let text = "    async fn eh_1_1_timeout() {}\nfn eh_1_10() {}\nfn eh_1_1() {}\n// fn eh_1_1_not() {}\n";
        let names: Vec<_> = tests_of(&case, &[("a.rs".into(), text.into())])
            .into_iter()
            .map(|test| test.name)
            .collect();
        assert_eq!(names, ["eh_1_1_timeout", "eh_1_1"]);
    }
}
