//! Clients through an outage, under our rules and others', in virtual time.
//!
//! `simulate [--quick] [--docs FOLDER] [--report FILE]`; `cargo xtask simulate` calls it, `docs/simulation.md` explains it.
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

use std::{env, fs, path::PathBuf, process::ExitCode};
use study::Effort;
use tr_core::BoxError;

/// What the command line says.
#[derive(Debug)]
struct Options {
    effort: Effort,
    /// Where `simulation.md` is, whose tables are written, and `simulation.svg`.
    docs: Option<PathBuf>,
    report: Option<PathBuf>,
}

impl Options {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Self, BoxError> {
        let mut options = Self { effort: Effort::FULL, docs: None, report: None };
        while let Some(arg) = args.next() {
            let mut value = || args.next().ok_or_else(|| format!("{arg} wants a value"));
            match &*arg {
                "--quick" => options.effort = Effort::QUICK,
                "--docs" => options.docs = Some(value()?.into()),
                "--report" => options.report = Some(value()?.into()),
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
            eprintln!("simulate: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), BoxError> {
    let options = Options::read(env::args().skip(1))?;
    let plan = plan::Plan::full();
    let nested = nested::measure();
    let results = study::run(&plan, options.effort);
    let goals = report::goals(&results, &nested);
    println!("{}\n{}", report::tables(&results, &nested, options.effort), report::text(&goals));
    if let Some(docs) = &options.docs {
        let page = docs.join("simulation.md");
        let tables = report::tables(&results, &nested, options.effort);
        fs::write(&page, report::replace(&fs::read_to_string(&page)?, &tables)?)?;
        fs::write(docs.join("simulation.svg"), plot::svg(&results, &plan))?;
    }
    if let Some(path) = &options.report {
        fs::write(path, report::json(&goals)?)?;
    }
    Ok(())
}
