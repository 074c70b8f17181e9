//! Measures ours beside the peers and tells how each row of the goals stands.
//!
//! `compare [--quick] [--only ID]... [--ir CASE=COUNT]... [--report FILE] [--table FILE]`; `cargo xtask bench` calls it.
mod files;
mod measure;
mod proxy;
mod report;
mod rows;
mod scaling;
mod servers;

use measure::Effort;
use std::{collections::HashMap, env, fs, path::PathBuf, process::ExitCode};
use tr_core::BoxError;
use tr_testkit::alloc::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// What the command line says.
#[derive(Debug)]
struct Options {
    effort: Effort,
    /// Rows that are wanted; all, if none is named.
    only: Vec<String>,
    /// Instructions per operation, counted elsewhere.
    instructions: HashMap<String, f64>,
    report: Option<PathBuf>,
    table: Option<PathBuf>,
}

impl Options {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Self, BoxError> {
        let mut options = Self {
            effort: Effort::FULL,
            only: Vec::new(),
            instructions: HashMap::new(),
            report: None,
            table: None,
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} wants a value"));
            match &*arg {
                "--quick" => options.effort = Effort::QUICK,
                "--only" => options.only.push(value()?),
                "--report" => options.report = Some(value()?.into()),
                "--table" => options.table = Some(value()?.into()),
                "--ir" => {
                    let value = value()?;
                    let (case, count) = value.rsplit_once('=').ok_or("--ir wants CASE=COUNT")?;
                    options.instructions.insert(case.into(), count.parse()?);
                }
                _ => return Err(format!("{arg} means nothing here").into()),
            }
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("compare: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), BoxError> {
    let options = Options::read(env::args().skip(1))?;
    let mut results = Vec::new();
    let is_wanted = |id: &str| options.only.is_empty() || options.only.iter().any(|one| one == id);
    for row in rows::ROWS.iter().filter(|row| is_wanted(row.id)) {
        let result = row.measure(&options)?;
        println!("{}", report::line(&result));
        results.push(result);
    }
    if let Some(path) = &options.report {
        fs::write(path, report::json(&results)?)?;
    }
    if let Some(path) = &options.table {
        fs::write(path, report::markdown(&results))?;
    }
    Ok(())
}
