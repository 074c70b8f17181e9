//! Puts the reliability stack in front of any MCP server, and repairs agents' sessions.
#![deny(clippy::print_stdout, reason = "`println!` panics if the reader has closed the pipe")]
#[macro_use]
mod terminal;

mod build;
mod config;
mod connect;
mod decide;
mod demo;
mod doctor;
mod doors;
mod engine;
mod export;
mod files;
mod front;
#[cfg(test)]
mod guides;
mod install;
mod mcp;
mod records;
mod secrets;
mod serve;
mod servers;
mod session;
mod shells;
mod signals;
mod status;
mod supervise;
mod turn;
mod usage;
mod wire;

use clap::{CommandFactory as _, Parser, Subcommand};
use rustix::process::Signal;
use std::{env, ffi::OsString, path::PathBuf, process::ExitCode};
use tokio::signal::unix::{SignalKind, signal};
use tool_reliability::Environment;
use tr_core::{printable, printable_lines};

/// Guards the tool calls of AI agents.
#[derive(Debug, Parser)]
#[command(name = "tool-guard", version, long_version = build::facts(), max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Proxy an MCP client's calls to the MCP server COMMAND, on standard input and output
    Mcp(Box<mcp::Options>),
    /// Serve tools that are HTTP endpoints or commands: envelopes over HTTP, or on standard input and output
    #[command(name = "serve")]
    Front(Box<serve::Options>),
    /// Decide about the calls of a host that runs its tools itself, such as an agent with hooks: JSON lines on
    /// standard input and output
    Decide(Box<decide::Options>),
    /// Run the tool calls of PLAN against the MCP server COMMAND, and print the trace
    Turn(turn::Options),
    /// List the records of mutating calls, and settle those of unknown outcome
    Records(records::Options),
    /// Check the configuration, show every setting with its origin, print the schema
    #[command(subcommand, after_help = config::EXIT_CODES)]
    Config(config::Command),
    /// Find the faults for which a provider refuses an agent's session, and repair them
    #[command(subcommand, after_help = session::EXIT_CODES)]
    Session(session::Command),
    /// Put the guard in front of the MCP servers in a client's configuration, or take it out again
    Install(install::Options),
    /// Show which clients are here, which of their servers are guarded, and whether they answer
    Doctor(doctor::Options),
    /// Show what the guards of this user do, and what their records know
    Status(status::Options),
    /// Print the completions of SHELL
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write all of them
    Man {
        /// Write a page for each subcommand into FOLDER, such as ~/.local/share/man/man1, in place of printing
        /// the first one
        #[arg(value_name = "FOLDER")]
        folder: Option<PathBuf>,
    },
    /// Show the same agent without and with the guard, side by side
    Demo {
        /// Print the figures as JSON
        #[arg(long)]
        json: bool,
    },
    /// Serve the demo's tools on standard input and output
    #[command(name = "__serve", hide = true)]
    Serve {
        /// The file of executions, one per line
        #[arg(long, value_name = "FILE")]
        ledger: PathBuf,
    },
    /// Run a command, and end it when the process PARENT ends
    #[command(name = "__exec", hide = true)]
    Exec {
        parent: i32,
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// End the process group GROUP when standard input ends
    #[command(name = "__watch", hide = true)]
    Watch { group: i32 },
}

/// The first file descriptor after standard input, output and error.
const FIRST_OTHER: i32 = 3;

fn main() -> ExitCode {
    // The server must not inherit other open files of our parent.
    close_fds::set_fds_cloexec(FIRST_OTHER, &[]);
    let cli = Cli::try_parse().unwrap_or_else(|error| usage::exit(error, &Cli::command()));
    let is_set_up = matches!(
        cli.command,
        Command::Mcp(_)
            | Command::Decide(_)
            | Command::Turn(_)
            | Command::Config(_)
            | Command::Front(_)
    );
    if is_set_up {
        let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        for unknown in Environment::unknown(names) {
            eprintln!("tool-guard: {}", printable(&unknown.to_string()));
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime.map_err(Into::into).and_then(|runtime| {
        runtime.block_on(async {
            // By default SIGXFSZ ends the process; with a handler, a write beyond `ulimit -f` fails like one to a
            // full disk. The server does not inherit a handler, as it would inherit `ignore`.
            let _handled = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?;
            match cli.command {
                Command::Mcp(options) => mcp::run(*options).await,
                Command::Decide(options) => decide::run(*options).await,
                Command::Front(options) => serve::run(*options).await,
                Command::Turn(options) => turn::run(options).await,
                Command::Records(options) => records::run(options).await,
                Command::Session(command) => {
                    // It blocks on the disk.
                    Ok(tokio::task::spawn_blocking(move || session::run(&command)).await?)
                }
                Command::Install(options) => {
                    // It blocks on the disk.
                    Ok(tokio::task::spawn_blocking(move || install::run(&options)).await??)
                }
                Command::Status(options) => status::run(options).await,
                Command::Doctor(options) => doctor::run(&options).await,
                Command::Completions { shell } => shells::completions(shell, &Cli::command()),
                Command::Man { folder } => shells::man(folder.as_deref(), Cli::command()),
                Command::Config(command) => config::run(command),
                Command::Demo { json } => demo::run(json).await,
                Command::Serve { ledger } => Ok(demo::serve(&ledger)?),
                Command::Exec { parent, command } => Ok(supervise::run(parent, &command).await?),
                Command::Watch { group } => Ok(supervise::watch(group).await?),
            }
        })
    });
    outcome.unwrap_or_else(|error| {
        let said = engine::failure::in_full(&*error);
        eprintln!("tool-guard: {}", printable_lines(&secrets::without(&said)));
        ExitCode::FAILURE
    })
}
