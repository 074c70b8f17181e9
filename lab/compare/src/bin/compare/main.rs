//! Measures ours beside the peers and tells how each row of the goals stands.
//!
//! `cargo lab bench` calls it.
mod files;
mod guard;
mod guard_rows;
mod million;
mod proxy;
mod report;
mod row;
mod rows;
mod scaling;
mod servers;
mod sessions;
mod store_rows;
mod transcripts;
mod turns;
mod web;
mod web_rows;

use benches::measure::Effort;
use clap::Parser;
use std::{fs, path::PathBuf, process::ExitCode};
use tr_core::BoxError;
use tr_testkit::alloc::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Measures ours beside the peers.
#[derive(Debug, Parser)]
struct Options {
    /// Measure less of everything.
    #[arg(long)]
    quick: bool,
    /// A row that is wanted; all, if none is named.
    #[arg(long, value_name = "ID")]
    only: Vec<String>,
    /// Instructions per operation of a case, counted elsewhere.
    #[arg(long = "ir", value_name = "CASE=COUNT", value_parser = count)]
    instructions: Vec<(String, f64)>,
    /// Where the rows are written as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Where the table is written.
    #[arg(long, value_name = "FILE")]
    table: Option<PathBuf>,
}

impl Options {
    const fn effort(&self) -> Effort {
        if self.quick { Effort::QUICK } else { Effort::FULL }
    }

    fn instructions_of(&self, case: &str) -> Option<f64> {
        self.instructions.iter().find(|(one, _)| one == case).map(|(_, count)| *count)
    }
}

fn count(arg: &str) -> Result<(String, f64), BoxError> {
    let (case, count) = arg.rsplit_once('=').ok_or("CASE=COUNT is wanted")?;
    Ok((case.into(), count.parse()?))
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
    let options = Options::parse();
    let mut results = Vec::new();
    let is_wanted = |id: &str| options.only.is_empty() || options.only.iter().any(|one| one == id);
    let rows =
        rows::ROWS.iter().chain(store_rows::ROWS).chain(guard_rows::ROWS).chain(web_rows::ROWS);
    for row in rows.filter(|row| is_wanted(row.id)) {
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
