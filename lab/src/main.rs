//! What the makers of this project measure, draw and try out: `cargo lab COMMAND`, from the root of the repository.
//!
//! Nothing here is needed to build, test or use the project; `cargo xtask ci` checks that it builds, and runs its tests.

mod agents;
mod bench;
mod clients;
mod compare;
mod coverage;
mod hooks;
mod openclaw;
mod picture;
mod simulate;
mod soak;
mod weigh;
mod worst;

use std::{path::PathBuf, process::ExitCode};

use anyhow::Result;
use clap::{Parser, Subcommand};
use xtask::repo::Repo;

/// What the makers of this project measure, draw and try out.
#[derive(Debug, Parser)]
#[command(name = "cargo lab", bin_name = "cargo lab")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Clone, Debug, Subcommand)]
enum Command {
    /// Measure ours beside the peers, as `lab/NOTEBOOK.md` has it.
    Bench {
        /// Measure less of everything.
        #[arg(long)]
        quick: bool,
        /// Write the figures into `lab/NOTEBOOK.md`.
        #[arg(long)]
        save: bool,
    },
    /// Run ours and its peers through what users need, and compare with `docs/peers.md`.
    Compare {
        /// Write the results into `docs/peers.md`.
        #[arg(long)]
        save: bool,
    },
    /// Write `docs/coverage.md`: from each requirement to its code, its door and its test.
    Coverage {
        /// Write nothing; fail if the page is not current.
        #[arg(long)]
        check: bool,
    },
    /// Run real agents, with scripted models, against a server behind the guard.
    Peers,
    /// Draw a run of `tool-guard demo` into `docs/demo.svg`.
    Picture,
    /// Send clients through an outage in virtual time, under our rules and others'.
    Simulate {
        /// Run less of everything, and leave `docs/` alone.
        #[arg(long)]
        quick: bool,
    },
    /// Run the tests that repeat themselves, for their full number of rounds.
    Soak,
    /// Count the crates that each dependency on ours, or on a peer, brings, as `docs/weight.md` has it.
    Weigh {
        /// Measure the cold builds, too, of rows with this in them; takes minutes.
        #[arg(long, value_name = "TEXT", num_args = 0..=1, default_missing_value = "")]
        times: Option<String>,
        /// Write the table into `docs/weight.md`.
        #[arg(long, conflicts_with = "check")]
        save: bool,
        /// Fail if `docs/weight.md` is not current.
        #[arg(long)]
        check: bool,
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

/// `cargo COMMAND` of this workspace, with the target folder of the repository.
fn cargo(repo: &Repo, command: &str) -> std::process::Command {
    let mut cargo = repo.cargo();
    cargo.args([command, "--manifest-path", "lab/Cargo.toml", "--target-dir"]).arg(&repo.target);
    cargo
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
    let repo = Repo::open()?;
    match command {
        Command::Bench { quick, save } => bench::run(&repo, quick, save),
        Command::Compare { save } => compare::run(&repo, save),
        Command::Coverage { check } => coverage::run(&repo, check),
        Command::Peers => clients::run(&repo),
        Command::Picture => picture::run(&repo),
        Command::Simulate { quick } => simulate::run(&repo, quick),
        Command::Soak => soak::run(&repo),
        Command::Weigh { check: true, .. } => weigh::check(&repo),
        Command::Weigh { times, save, .. } => weigh::run(&repo, times.as_deref(), save),
        Command::Worst { bytes, only, guard } => worst::run(&repo, bytes, &only, guard),
    }
}
