//! The smallest MCP server over standard input and output.
use compare::echo;
use std::{
    io,
    io::{BufRead as _, Write as _},
};

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().lines() {
        if let Some(answer) = echo::answer(&serde_json::from_str(&line?)?) {
            writeln!(out, "{answer}")?;
        }
    }
    Ok(())
}
