//! Runs what a user needs of a layer against ours and against its peers, and tells who does it.
//!
//! `cargo lab compare` calls it, and tells the versions in `TR_VERSIONS`. Fails if
//! ours fails anywhere, or if what is seen is not what the file says. How fast all are, the binary `compare` tells.
mod breakers;
mod cell;
mod once;
mod report;
mod retries;
mod tasks;

use clap::Parser;
use std::{collections::BTreeMap, env, fs, path::PathBuf, process::ExitCode};
use tr_core::BoxError;

/// Package to version, as it was built.
type Versions = BTreeMap<String, String>;

fn versions() -> Versions {
    let told = env::var("TR_VERSIONS").unwrap_or_default();
    let pairs = told.split_whitespace().filter_map(|pair| pair.split_once('='));
    pairs.map(|(package, version)| (package.into(), version.into())).collect()
}

/// Runs what a user needs of a layer against ours and against its peers.
#[derive(Debug, Parser)]
struct Options {
    /// The file that must say what is seen.
    #[arg(long, value_name = "FILE")]
    docs: Option<PathBuf>,
    /// Write the file instead.
    #[arg(long, requires = "docs")]
    save: bool,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("suite: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), BoxError> {
    let (options, versions) = (Options::parse(), versions());
    let sections = [breakers::section()?, retries::section()?, once::section()?];
    println!("{}", report::text(&sections, &versions));

    let failures = report::own_failures(&sections);
    if !failures.is_empty() {
        return Err(format!("ours fails: {}", failures.join("; ")).into());
    }
    let Some(path) = &options.docs else { return Ok(()) };
    let seen = report::markdown(&sections, &versions);
    if options.save {
        fs::write(path, seen)?;
        return Ok(());
    }
    let recorded =
        fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    match report::differences(&recorded, &seen) {
        lines if lines.is_empty() => Ok(()),
        lines => Err(format!(
            "{} says something else; `--save` renews it:\n{}",
            path.display(),
            lines.join("\n")
        )
        .into()),
    }
}
