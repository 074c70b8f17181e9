//! Puts the reliability stack in front of any MCP server, and mends agents' sessions.
mod demo;
#[cfg(test)]
mod guides;
mod mcp;
mod session;
mod supervise;
mod turn;
mod usage;

use clap::{Parser, Subcommand};
use std::{env, ffi::OsString, process::ExitCode};
use tool_reliability::Environment;

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
}

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| usage::exit(&error));
    if matches!(cli.command, Command::Mcp(_) | Command::Turn(_)) {
        let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        for unknown in Environment::unknown(names) {
            eprintln!("tool-guard: {unknown}");
        }
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let outcome = runtime.map_err(Into::into).and_then(|runtime| {
        runtime.block_on(async {
            match cli.command {
                Command::Mcp(options) => mcp::run(options).await,
                Command::Turn(options) => turn::run(options).await,
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
            }
        })
    });
    outcome.unwrap_or_else(|error| {
        eprintln!("tool-guard: {error:#}");
        ExitCode::FAILURE
    })
}
