//! Round trips of an MCP tool call: through `tool-guard mcp`, and through a bare line pump.
use crate::measure::{Effort, median};
use std::{
    env,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};
use tokio::time::Instant;
use tr_core::BoxError;

/// Calls in a batch.
const BATCH: u64 = 100;

/// Nanoseconds per round trip through the guard and through the pump; `None` if the guard is not built.
pub(crate) fn round_trips(effort: Effort) -> Result<Option<[f64; 2]>, BoxError> {
    let own = env::current_exe()?;
    let folder = own.parent().ok_or("this program lies nowhere")?;
    let guard = folder.join("tool-guard");
    if !guard.exists() {
        return Ok(None);
    }
    let echo = folder.join("echo");
    let mut ways = [
        Session::open(
            &guard,
            &["mcp".as_ref(), "--records".as_ref(), "memory".as_ref(), "--".as_ref(), &echo],
        )?,
        Session::open(&folder.join("pump"), &[&echo])?,
    ];
    let mut taken = [Vec::new(), Vec::new()];
    for batch in 0..effort.batches + 3 {
        for (way, taken) in ways.iter_mut().zip(&mut taken) {
            let since = Instant::now();
            for _ in 0..BATCH {
                way.call()?;
            }
            // The first batches warm caches.
            if batch >= 3 {
                taken.push(since.elapsed().as_nanos() as f64 / BATCH as f64);
            }
        }
    }
    Ok(Some(taken.map(|mut taken| median(&mut taken))))
}

/// A client's session with the echo server.
struct Session {
    child: Child,
    /// `None` once it is closed.
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    id: u64,
    line: String,
}

impl Session {
    fn open(program: &PathBuf, args: &[&Path]) -> Result<Self, BoxError> {
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        let mut session = Self { child, to, from, id: 0, line: String::new() };
        session.ask(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
        )?;
        session.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        session.ask(r#"{"jsonrpc":"2.0","id":0,"method":"tools/list"}"#)?;
        Ok(session)
    }

    /// Has 16 bytes echoed.
    fn call(&mut self) -> Result<(), BoxError> {
        self.id += 1;
        let id = self.id;
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{id:016}"}}}}}}"#
        );
        self.ask(&call)?;
        let wanted = format!(r#""{id:016}""#);
        if self.line.contains(&wanted) { Ok(()) } else { Err(self.line.clone().into()) }
    }

    fn ask(&mut self, line: &str) -> Result<(), BoxError> {
        self.say(line)?;
        self.line.clear();
        match self.from.read_line(&mut self.line)? {
            0 => Err("the session ended".into()),
            _ => Ok(()),
        }
    }

    fn say(&mut self, line: &str) -> Result<(), BoxError> {
        let to = self.to.as_mut().ok_or("the session is closed")?;
        to.write_all(format!("{line}\n").as_bytes())?;
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Whoever reads from it sees the end and ends, too.
        self.to = None;
        let _ = self.child.wait();
    }
}
