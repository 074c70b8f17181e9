//! Sessions with an echo server: through `tool-guard mcp`, and through a bare line pump.
use crate::turns::{Call, Way};
use benches::measure::{Effort, median};
use std::{
    env,
    ffi::OsString,
    io::{BufRead as _, BufReader, Write as _},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};
use tokio::time::Instant;
use tr_core::BoxError;

/// Calls in a batch.
const BATCH: u64 = 100;

/// The programs, which lie beside this one.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) guard: PathBuf,
    /// The guard of the profile `dist`: smaller, and optimized as a whole.
    pub(crate) dist: PathBuf,
    pub(crate) pump: PathBuf,
    pub(crate) echo: PathBuf,
    pub(crate) web: PathBuf,
    pub(crate) relay: PathBuf,
}

impl Program {
    /// All of them; `None` if the guard is not built.
    pub(crate) fn all() -> Result<Option<Self>, BoxError> {
        let own = env::current_exe()?;
        let folder = own.parent().ok_or("this program lies nowhere")?;
        let [guard, pump, echo, web, relay] =
            ["tool-guard", "pump", "echo", "web", "relay"].map(|name| folder.join(name));
        let dist = folder.with_file_name("dist").join("tool-guard");
        Ok(guard.exists().then_some(Self { guard, dist, pump, echo, web, relay }))
    }

    /// The same, with the guard of the profile `dist` in its place; `None` if that is not built.
    pub(crate) fn dist() -> Result<Option<Self>, BoxError> {
        let all = Self::all()?.filter(|all| all.dist.exists());
        Ok(all.map(|all| Self { guard: all.dist.clone(), ..all }))
    }
}

/// Nanoseconds per round trip through the guard and through the pump; `None` if the guard is not built.
pub(crate) fn round_trips(effort: Effort) -> Result<Option<[f64; 2]>, BoxError> {
    let Some(Program { guard, pump, echo, .. }) = Program::all()? else { return Ok(None) };
    let words = ["mcp", "--records", "memory", "--"].map(OsString::from);
    let guard = [&[guard.into()], &words[..], &[echo.clone().into()]].concat();
    let mut ways = [Session::open(&guard)?, Session::open(&[pump.into(), echo.into()])?];
    let mut taken = [Vec::new(), Vec::new()];
    for batch in 0..effort.batches + 3 {
        for (way, taken) in ways.iter_mut().zip(&mut taken) {
            let since = Instant::now();
            for _ in 0..BATCH {
                way.calls(Call::Read, 1)?;
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
pub(crate) struct Session {
    child: Child,
    /// `None` once it is closed.
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    id: u64,
    line: String,
}

impl Session {
    /// Starts a program, and says hello.
    pub(crate) fn open(words: &[OsString]) -> Result<Self, BoxError> {
        let (program, args) = words.split_first().ok_or("no program")?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().ok_or("no standard output")?);
        let mut session = Self { child, to, from, id: 0, line: String::new() };
        session.say(
            r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#,
        )?;
        session.hear()?;
        Ok(session)
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Tells the guard which tools there are.
    pub(crate) fn list(&mut self) -> Result<(), BoxError> {
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#)?;
        self.say(r#"{"jsonrpc":"2.0","id":0,"method":"tools/list"}"#)?;
        self.hear()
    }

    fn hear(&mut self) -> Result<(), BoxError> {
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

impl Way for Session {
    /// Has 16 bytes echoed.
    fn calls(&mut self, call: Call, at_once: u64) -> Result<(), BoxError> {
        if self.id == 0 {
            self.list()?;
        }
        let first = self.id + 1;
        self.id += at_once;
        let lines: Vec<_> =
            (first..=self.id).map(|id| request(call, self.child.id(), id)).collect();
        self.say(&lines.join("\n"))?;
        for id in first..=self.id {
            self.hear()?;
            // Answers of calls that are made at once come in any order.
            if !call.is_answered_by(&self.line, (at_once == 1).then_some(id)) {
                return Err(self.line.chars().take(500).collect::<String>().into());
            }
        }
        Ok(())
    }
}

fn request(call: Call, session: u32, id: u64) -> String {
    let (tool, meta) = (call.tool(), call.key(session, id));
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"text":"{id:016}"}}{meta}}}}}"#
    )
}

impl Drop for Session {
    fn drop(&mut self) {
        // Its reader sees the end and ends, too.
        self.to = None;
        let _ = self.child.wait();
    }
}
