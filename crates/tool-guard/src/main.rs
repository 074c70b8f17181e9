//! Puts the reliability stack in front of any MCP server, and mends agents' sessions.
mod demo;
#[cfg(test)]
mod guides;
mod mcp;
mod records;
mod session;
mod supervise;
mod turn;
mod usage;

use clap::{Parser, Subcommand};
use rustix::process::Signal;
use std::{env, ffi::OsString, process::ExitCode};
use tokio::signal::unix::{SignalKind, signal};
use tool_reliability::Environment;
use tr_core::{printable, printable_lines};

/// Guards the tool calls of AI agents.
#[derive(Debug, Parser)]
#[command(name = "tool-guard", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Stand between an MCP client and the MCP server COMMAND, on standard input and output
    Mcp(mcp::Options),
    /// Run the turn that PLAN describes against the MCP server COMMAND, and show what happened
    Turn(turn::Options),
    /// Show what is recorded of mutating calls, and settle those of unknown outcome
    Records(records::Options),
    /// Find what makes a provider refuse an agent's session, and mend it
    Session(session::Options),
    /// Show what the guard is good for, side by side
    Demo(demo::Options),
    /// Serve the demonstration's tools on standard input and output
    #[command(name = "__serve", hide = true)]
    Serve(demo::ServerOptions),
    /// Run a command that ends when the process PARENT does
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

/// Standard input, output and error come before it.
const FIRST_OTHER: i32 = 3;

fn main() -> ExitCode {
    // What our parent has open and did not close before it started us is not for the server's eyes.
    close_fds::set_fds_cloexec(FIRST_OTHER, &[]);
    let cli = Cli::try_parse().unwrap_or_else(|error| usage::exit(&error));
    if matches!(cli.command, Command::Mcp(_) | Command::Turn(_)) {
        let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        for unknown in Environment::unknown(names) {
            eprintln!("tool-guard: {}", printable(&unknown.to_string()));
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime.map_err(Into::into).and_then(|runtime| {
        runtime.block_on(async {
            // Unheard, it ends the process: heard, a write beyond `ulimit -f` fails as one to a full disk.
            // Being heard, and not ignored, it is not inherited by the server.
            let _heard = signal(SignalKind::from_raw(Signal::XFSZ.as_raw()))?;
            match cli.command {
                Command::Mcp(options) => mcp::run(options).await,
                Command::Turn(options) => turn::run(options).await,
                Command::Records(options) => records::run(options).await,
                Command::Session(options) => {
                    // It waits for the disk, all the time.
                    Ok(tokio::task::spawn_blocking(move || session::run(&options)).await?)
                }
                Command::Demo(options) => demo::run(options).await,
                Command::Serve(options) => {
                    demo::serve(options).await?;
                    Ok(ExitCode::SUCCESS)
                }
                Command::Exec { parent, command } => Ok(supervise::run(parent, &command).await?),
                Command::Watch { group } => Ok(supervise::watch(group).await?),
            }
        })
    });
    outcome.unwrap_or_else(|error| {
        eprintln!("tool-guard: {}", printable_lines(&format!("{error:#}")));
        ExitCode::FAILURE
    })
}
