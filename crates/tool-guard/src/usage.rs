//! Errors of the command line, with a tip where a missing `--` explains them.
use clap::{
    Command, Error,
    error::{ContextKind, ContextValue, ErrorKind},
};
use std::{env, ffi::OsStr, process};

/// The subcommands that start a server.
const STARTING: [&str; 2] = ["mcp", "turn"];

/// What people type to take the guard out, which is not the opposite that clap suggests.
const UNINSTALL: &str = "uninstall";

/// Prints the error and ends the process. If a missing `--` explains the error, a tip says so.
pub(crate) fn exit(mut error: Error, command: &Command) -> ! {
    let code = error.exit_code();
    let args: Vec<_> = env::args_os().skip(1).collect();
    let args: Vec<&OsStr> = args.iter().map(AsRef::as_ref).collect();
    if args.first().is_some_and(|first| STARTING.iter().any(|name| first == name)) {
        // Behind `--` the argument would be the server's command.
        error.remove(ContextKind::Suggested);
    }
    // Clap itself suggests nothing for a slip in a short name.
    let parent = args.first().and_then(|name| command.find_subcommand(name)).unwrap_or(command);
    let known = parent.get_subcommands().filter(|it| !it.is_hide_set()).map(Command::get_name);
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
        && error.get(ContextKind::SuggestedSubcommand).is_none()
        && let Some(like) = tr_wire::closest(name, known)
    {
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(vec![like.into()]));
    }
    if args.first().is_some_and(|first| *first == UNINSTALL) {
        error.remove(ContextKind::SuggestedSubcommand);
    }
    // If standard error is closed, only the text is lost.
    let _ = error.print();
    if let Some(tip) = tip(&error, &args) {
        eprintln!("\n  tip: {}", tr_core::printable(&tip));
    }
    process::exit(code)
}

/// Where to write `--`, if it would have separated our arguments from the server's.
fn tip(error: &Error, args: &[&OsStr]) -> Option<String> {
    if args.contains(&OsStr::new("--")) {
        return None;
    }
    let subcommand = args.first()?.to_str()?;
    if subcommand == UNINSTALL {
        return Some("to take the guard out again: tool-guard install CLIENT --undo".into());
    }
    let starts = STARTING.contains(&subcommand);
    match error.kind() {
        // `tool-guard npx …`.
        ErrorKind::InvalidSubcommand if error.get(ContextKind::SuggestedSubcommand).is_none() => {
            let rest: Vec<_> = args.iter().map(|arg| arg.to_string_lossy()).collect();
            Some(format!(
                "to guard an MCP server, write `mcp --` before its command: tool-guard mcp -- {}",
                rest.join(" ")
            ))
        }
        ErrorKind::UnknownArgument if starts => Some(match error.get(ContextKind::InvalidArg) {
            Some(ContextValue::String(arg)) => format!(
                "`--` is missing before the server's command, if {arg} belongs to that: {}",
                form(subcommand)
            ),
            _ => before(subcommand),
        }),
        _ if starts && error.use_stderr() => Some(before(subcommand)),
        _ => None,
    }
}

fn before(subcommand: &str) -> String {
    format!("write `--` before the server's command: {}", form(subcommand))
}

fn form(subcommand: &str) -> String {
    let plan = if subcommand == "turn" { " PLAN" } else { "" };
    format!("tool-guard {subcommand} [OPTIONS]{plan} -- COMMAND…")
}
