//! Clients through an outage, under our rules and others', in virtual time.
//!
//! `cargo lab simulate` calls it, and `docs/simulation.md` explains it.
mod backend;
mod figures;
mod nested;
mod plan;
mod plot;
mod report;
mod rules;
mod study;
mod tape;
mod world;

use clap::Parser;
use std::{fs, path::PathBuf, process::ExitCode};
use study::Effort;
use tr_core::BoxError;

/// Sends clients through an outage in virtual time, under our rules and others'.
#[derive(Debug, Parser)]
struct Options {
    /// Run less of everything.
    #[arg(long)]
    quick: bool,
    /// The folder of `simulation.md`, whose tables are written, and of `simulation.svg`.
    #[arg(long, value_name = "FOLDER")]
    docs: Option<PathBuf>,
    /// Where the goals are written as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("simulate: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), BoxError> {
    let options = Options::parse();
    let effort = if options.quick { Effort::QUICK } else { Effort::FULL };
    let plan = plan::Plan::full();
    let nested = nested::measure();
    let results = study::run(&plan, effort);
    let goals = report::goals(&results, &nested);
    println!("{}\n{}", report::tables(&results, &nested, effort), report::text(&goals));
    if let Some(docs) = &options.docs {
        let page = docs.join("simulation.md");
        let tables = report::tables(&results, &nested, effort);
        fs::write(&page, report::replace(&fs::read_to_string(&page)?, &tables)?)?;
        fs::write(docs.join("simulation.svg"), plot::svg(&results, &plan))?;
    }
    if let Some(path) = &options.report {
        fs::write(path, report::json(&goals)?)?;
    }
    Ok(())
}
