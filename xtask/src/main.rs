//! The project's own commands: `cargo xtask test`, `cargo xtask ci` and the steps it is made of.
//!
//! Each command is a module; what decides in them is pure and has unit tests, what acts is a thin rest.

mod api;
mod bench;
mod builds;
mod cases;
mod ci;
mod clients;
mod compare;
mod coverage;
mod deny;
mod dist;
mod features;
mod fuzz;
mod gate;
mod guide;
mod hooks;
mod ladder;
mod loom;
mod need;
mod openclaw;
mod package;
mod peers;
mod picture;
mod pins;
mod repo;
mod schemas;
mod services;
mod shell;
mod simulate;
mod site;
mod soak;
mod tally;
mod test;
mod tidy;
mod weigh;
mod worst;

use std::{path::PathBuf, process::ExitCode};

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
    /// Write `docs/coverage.md`: from each requirement to its code, its door and its test.
    Coverage {
        /// Write nothing; fail if the page is not current.
        #[arg(long)]
        check: bool,
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
    /// Draw a run of `tool-guard demo` into `docs/demo.svg`.
    Picture,
    /// Run the concurrency models under loom.
    Loom,
    /// Run every fuzz target for a few seconds.
    Fuzz {
        /// Seconds for each target.
        #[arg(long, default_value_t = fuzz::SECONDS)]
        seconds: u32,
    },
    /// Compare ours with the peers, as `benches/GOALS.md` has it.
    Bench {
        /// Measure less of everything.
        #[arg(long)]
        quick: bool,
        /// Write the figures into `benches/GOALS.md`.
        #[arg(long)]
        save: bool,
    },
    /// Measure the stack, one layer more at a time, as `docs/performance.md` has it.
    Ladder {
        /// Write the table and the picture into `docs/`.
        #[arg(long)]
        save: bool,
    },
    /// Run ours and its peers through what users need, and compare with `docs/peers.md`.
    Compare {
        /// Write the results into `docs/peers.md`.
        #[arg(long)]
        save: bool,
    },
    /// Run real agents, with scripted models, against a server behind the guard.
    Peers,
    /// Run the tests that repeat themselves, for their full number of rounds.
    Soak,
    /// Send clients through an outage in virtual time, under our rules and others'.
    Simulate {
        /// Run less of everything, and leave `docs/` alone.
        #[arg(long)]
        quick: bool,
    },
    /// Compare the instructions of each measured operation with its limit in `benches/gate.toml`.
    Gate {
        /// Write what is measured, and a little more, as the new limits.
        #[arg(long)]
        bless: bool,
    },
    /// Count the crates that each dependency on ours, or on a peer, brings, as `docs/weight.md` has it.
    Weigh {
        /// Measure the cold builds, too, of rows with this in them; takes minutes.
        #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "")]
        times: Option<String>,
        /// Write the table into `docs/weight.md`.
        #[arg(long)]
        save: bool,
    },
    /// Compare what hostile input costs the guard with what ordinary input of the same size does.
    Worst {
        /// Bytes of each input.
        #[arg(long, default_value_t = worst::BYTES)]
        bytes: usize,
        /// Measure cases with this in their names only.
        #[arg(long, default_value = "")]
        only: String,
        /// Measure this `tool-guard`, and build none.
        #[arg(long)]
        guard: Option<PathBuf>,
    },
}

fn main() -> ExitCode {
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
        Command::Coverage { check } => coverage::run(&repo, check),
        Command::Schemas { check: false } => schemas::write(&repo),
        Command::Schemas { check: true } => schemas::check(&repo),
        Command::Api { check: false } => api::write(&repo),
        Command::Api { check: true } => api::check(&repo).map(drop),
        Command::Features => features::run(&repo),
        Command::Package { build } => package::run(&repo, build),
        Command::Dist { all } => dist::run(&repo, all),
        Command::Site => site::run(&repo),
        Command::Picture => picture::run(&repo),
        Command::Loom => loom::run(&repo).map(drop),
        Command::Fuzz { seconds } => fuzz::run(&repo, seconds).map(drop),
        Command::Bench { quick, save } => bench::run(&repo, quick, save),
        Command::Ladder { save } => ladder::run(&repo, save),
        Command::Compare { save } => compare::run(&repo, save),
        Command::Peers => clients::run(&repo),
        Command::Soak => soak::run(&repo),
        Command::Simulate { quick } => simulate::run(&repo, quick),
        Command::Gate { bless } => gate::run(&repo, bless).map(drop),
        Command::Weigh { times, save } => weigh::run(&repo, times.as_deref(), save),
        Command::Worst { bytes, only, guard } => worst::run(&repo, bytes, &only, guard),
    }
}
