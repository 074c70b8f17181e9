//! `cargo xtask tidy`: the rules of this repository, as pure functions over its crates and texts.
//!
//! Each rule is in the module of its kind, beside a test that shows it finding a violation.

mod absence;
mod allow;
mod arrows;
mod benched;
mod links;
mod marks;
mod mass;
mod modules;
mod phrases;
mod rooms;
mod shape;
mod threats;
mod tokens;
mod tree;

use std::fmt;

use anyhow::{Result, bail};

use self::{allow::Allowed, tree::Tree};
use crate::repo::Repo;

/// A place that breaks a rule.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fault {
    path: String,
    /// 0 means the whole file.
    line: usize,
    rule: &'static str,
    what: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        write!(f, ": {} [{}]", self.what, self.rule)
    }
}

type Rule = fn(&Tree) -> Vec<Fault>;

const RULES: &[Rule] = &[
    rooms::edges,
    rooms::engines,
    rooms::names,
    rooms::drawn,
    absence::code,
    absence::dependencies,
    absence::said,
    arrows::arrows,
    benched::benched,
    mass::mass,
    shape::header,
    shape::length,
    shape::boxed,
    shape::sleeping,
    marks::unfinished,
    marks::hosts,
    links::links,
    phrases::phrases,
    threats::tests,
];

/// Fails if a rule is broken.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    let tree = Tree::read(repo)?;
    let faults = faults(&tree, RULES, allow::ALLOWED);
    for fault in &faults {
        println!("{fault}");
    }
    match faults.len() {
        0 => Ok(()),
        1 => bail!("1 place breaks a rule of the repository"),
        many => bail!("{many} places break rules of the repository"),
    }
}

/// Shows how many refused phrases each crate or folder has, and where those are whose path contains `only`.
pub(crate) fn phrases(repo: &Repo, only: &str) -> Result<()> {
    let faults = phrases::phrases(&Tree::read(repo)?);
    for fault in faults.iter().filter(|fault| !only.is_empty() && fault.path.contains(only)) {
        println!("{fault}");
    }
    for (scope, count) in phrases::counts(&faults) {
        println!("{count:5} {scope}");
    }
    Ok(())
}

/// Shows how many files, circles of imports and floors each crate has, and the circles of those in `only`.
pub(crate) fn arrows(repo: &Repo, only: &str) -> Result<()> {
    let tree = Tree::read(repo)?;
    if !only.is_empty() {
        arrows::inner(&tree, only).iter().for_each(|line| println!("{line}"));
    }
    println!("files circles largest floors");
    for (root, [files, circles, largest, floors]) in arrows::figures(&tree) {
        println!("{files:5} {circles:7} {largest:7} {floors:6} {root}");
    }
    let mass = mass::figures(&tree);
    println!("{:5} lines of code", mass.iter().map(|(_, lines)| lines).sum::<usize>());
    for (name, lines) in mass {
        println!("{lines:5} {name}");
    }
    Ok(())
}

fn faults(tree: &Tree, rules: &[Rule], allowed: &[Allowed]) -> Vec<Fault> {
    let found: Vec<_> = rules.iter().flat_map(|rule| rule(tree)).collect();
    let mut faults = allow::stale(&found, allowed);
    faults.extend(tree.unreadable());
    faults.extend(found.into_iter().filter(|fault| !allowed.iter().any(|a| a.covers(fault))));
    faults.sort();
    faults.dedup();
    faults
}
