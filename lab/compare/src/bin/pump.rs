//! A bare line pump: what any proxy over standard input and output costs at least. `pump COMMAND [ARG]...`
use std::{
    env, io,
    io::{BufRead, BufReader, Write},
    process::{Command, ExitCode, Stdio},
    thread,
};

fn main() -> io::Result<ExitCode> {
    let mut args = env::args_os().skip(1);
    let Some(program) = args.next() else {
        eprintln!("usage: pump COMMAND [ARG]...");
        return Ok(ExitCode::FAILURE);
    };
    let mut child =
        Command::new(program).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let (Some(to_child), Some(from_child)) = (child.stdin.take(), child.stdout.take()) else {
        return Ok(ExitCode::FAILURE);
    };
    let back = thread::spawn(move || pump(BufReader::new(from_child), io::stdout().lock()));
    pump(BufReader::new(io::stdin().lock()), to_child)?;
    let pumped = back.join().unwrap_or_else(|_| Err(io::Error::other("the way back panicked")));
    pumped.and(child.wait()).map(|_| ExitCode::SUCCESS)
}

/// Passes lines on, each as soon as it is whole.
fn pump(mut from: impl BufRead, mut to: impl Write) -> io::Result<()> {
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        to.flush()?;
        line.clear();
    }
    Ok(())
}
