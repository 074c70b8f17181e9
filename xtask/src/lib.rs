//! The project's own commands: `cargo xtask test`, `cargo xtask ci` and the steps it is made of.
//!
//! What is public serves the commands of `lab/`, too.
//!
//! Each command is a module; what decides in them is pure and has unit tests, what acts is a thin rest.

#![allow(clippy::must_use_candidate, reason = "what is public is so for one other program")]

mod api;
mod binaries;
pub mod builds;
pub mod cases;
mod ci;
mod deny;
pub mod dist;
mod features;
mod fuzz;
pub mod gate;
mod guide;
mod lab;
mod loom;
pub mod need;
mod package;
pub mod peers;
pub mod pins;
pub mod repo;
mod schemas;
mod services;
pub mod shell;
mod site;
pub mod tally;
pub mod test;
mod tidy;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand, builder::PossibleValuesParser};

/// The project's own commands.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Install what the tests need and run all of them.
    Test,
    /// Run every check that a change has to pass, the tests last.
    Ci {
        /// Run these steps only.
        #[arg(value_name = "STEP", value_parser = PossibleValuesParser::new(ci::names()))]
        steps: Vec<String>,
    },
    /// Check licences, sources and bans of the dependencies.
    Deny,
    /// Check the rules of this repository that no other tool knows.
    Tidy {
        /// Count the refused phrases of each crate and folder, and show those in paths that contain PATH.
        #[arg(long, value_name = "PATH", num_args = 0..=1, default_missing_value = "")]
        phrases: Option<String>,
        /// Count the circles of imports and the floors of each crate, and show those in paths that contain PATH.
        #[arg(long, value_name = "PATH", num_args = 0..=1, default_missing_value = "")]
        arrows: Option<String>,
    },
    /// Show the test of each acceptance case.
    Cases {
        /// Run these tests too and show their results.
        #[arg(long)]
        run: bool,
        /// Fail if a case has no test.
        #[arg(long)]
        all: bool,
    },
    /// Write the JSON Schemas of the contract into `schemas/`.
    Schemas {
        /// Write nothing; fail if `schemas/` is not current.
        #[arg(long)]
        check: bool,
    },
    /// Write the public API of each library into `docs/api/`.
    Api {
        /// Write nothing; fail if `docs/api/` is not current.
        #[arg(long)]
        check: bool,
    },
    /// Check that every library builds bare, and with each of its features alone, and which crates the facade's features build.
    Features,
    /// Publish all crates, but for the upload.
    Package {
        /// Compile each crate from its package alone, too, and use them from a registry in a folder.
        #[arg(long)]
        build: bool,
    },
    /// Build the wheels and the npm tarballs into `target/dist`, and try them out.
    Dist {
        /// For all processors, not only this machine's.
        #[arg(long)]
        all: bool,
    },
    /// Build the guides as a site with a search into `target/site`.
    Site,
    /// Run the concurrency models under loom.
    Loom,
    /// Run every fuzz target for a few seconds.
    Fuzz {
        /// Seconds for each target.
        #[arg(long, default_value_t = fuzz::SECONDS)]
        seconds: u32,
    },
    /// Compare the instructions of each measured operation with its limit in `benches/gate.toml`.
    Gate {
        /// Write what is measured, and a little more, as the new limits.
        #[arg(long)]
        bless: bool,
    },
}

/// Runs the command line.
pub fn main() -> ExitCode {
    match act(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn act(command: Command) -> Result<()> {
    let repo = repo::Repo::open()?;
    match command {
        Command::Test => test::run(&repo).map(drop),
        Command::Ci { steps } => ci::run(&repo, &steps),
        Command::Deny => deny::run(&repo),
        Command::Tidy { phrases: Some(path), .. } => tidy::phrases(&repo, &path),
        Command::Tidy { arrows: Some(path), .. } => tidy::arrows(&repo, &path),
        Command::Tidy { .. } => tidy::run(&repo),
        Command::Cases { run, all } => cases::run(&repo, run, all),
        Command::Schemas { check: false } => schemas::write(&repo),
        Command::Schemas { check: true } => schemas::check(&repo),
        Command::Api { check: false } => api::write(&repo),
        Command::Api { check: true } => api::check(&repo).map(drop),
        Command::Features => features::run(&repo),
        Command::Package { build } => package::run(&repo, build),
        Command::Dist { all } => dist::run(&repo, all),
        Command::Site => site::run(&repo),
        Command::Loom => loom::run(&repo).map(drop),
        Command::Fuzz { seconds } => fuzz::run(&repo, seconds),
        Command::Gate { bless } => gate::run(&repo, bless).map(drop),
    }
}
