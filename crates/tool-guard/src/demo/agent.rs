//! A scripted agent: it calls tools over MCP as a model would, and counts what it sees.
use crate::mcp::{Item, LineReader};
use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, ChildStdout, Command},
    time::{Instant, timeout},
};

/// What an MCP client's or the guard's patience is in the demonstration.
const PATIENCE: &str = "400ms";
const CLIENT_PATIENCE: Duration = Duration::from_millis(400);
/// A client that trusts its guard to answer.
const TRUSTING: Duration = Duration::from_secs(30);

/// Whether the agent's calls are guarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guarding {
    Without,
    With,
}

/// The agent and its connection to a server.
#[derive(Debug)]
pub(crate) struct Agent {
    guarding: Guarding,
    process: Child,
    input: ChildStdin,
    output: LineReader<ChildStdout>,
    ledger: PathBuf,
    started: Instant,
    next_id: u64,
    calls: usize,
    failures: usize,
}

/// What the model is told.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) failed: bool,
}

impl Reply {
    /// The guard says that going on is no use.
    pub(crate) fn says_stop(&self) -> bool {
        ["[LOOP DETECTED]", "[TOOL ERROR LIMIT]"].iter().any(|stop| self.text.contains(stop))
    }
}

/// What happened.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    /// Calls that the agent made.
    pub(crate) calls: usize,
    /// Failures that it saw.
    pub(crate) failures: usize,
    /// Executions of a tool, by what they did.
    pub(crate) executions: Vec<String>,
    /// How long it took.
    pub(crate) elapsed: Duration,
    /// Transitions of breakers, as the guard logged them.
    pub(crate) breakers: Vec<String>,
}

impl Figures {
    /// Side effects that happened again.
    pub(crate) fn duplicates(&self) -> usize {
        let charges = self.executions.iter().filter(|line| line.starts_with("charge_card"));
        let mut seen = std::collections::HashSet::new();
        charges.filter(|line| !seen.insert(*line)).count()
    }
}

impl Agent {
    /// Starts a server, and a guard before it if there is to be one.
    pub(crate) async fn start(guarding: Guarding, name: &str) -> anyhow::Result<Self> {
        let program = env::current_exe()?;
        let ledger = ledger(name, &format!("{guarding:?}"));
        let mut command = Command::new(&program);
        if guarding == Guarding::With {
            command.args(["mcp", "--records", "memory", "--timeout", PATIENCE, "--"]).arg(&program);
        }
        command.arg("__serve").arg("--ledger").arg(&ledger);
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the demonstration's server")?;
        let input = process.stdin.take().context("piped")?;
        let output = LineReader::new(process.stdout.take().context("piped")?, 1024 * 1024);
        let mut agent = Self {
            guarding,
            process,
            input,
            output,
            ledger,
            started: Instant::now(),
            next_id: 0,
            calls: 0,
            failures: 0,
        };
        let client = json!({ "name": "demo", "version": env!("CARGO_PKG_VERSION") });
        let hello =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        agent.request("initialize", hello, TRUSTING).await?;
        agent.request("tools/list", json!({}), TRUSTING).await?;
        agent.started = Instant::now();
        Ok(agent)
    }

    /// Calls a tool once, as a model's step does. `key` names what the call is meant to do.
    pub(crate) async fn call(
        &mut self,
        tool: &str,
        arguments: Value,
        key: Option<&str>,
    ) -> anyhow::Result<Reply> {
        let mut params = json!({ "name": tool, "arguments": arguments });
        if let Some(key) = key {
            params["_meta"] = json!({ "idempotencyKey": key });
        }
        self.calls += 1;
        let patience = if self.guarding == Guarding::With { TRUSTING } else { CLIENT_PATIENCE };
        let answer = self.request("tools/call", params, patience).await?;
        let reply = match answer {
            None => Reply { text: "MCP error -32001: Request timed out".into(), failed: true },
            Some(answer) => reply(&answer),
        };
        self.failures += usize::from(reply.failed);
        Ok(reply)
    }

    /// The answer, or `None` if the client lost its patience.
    async fn request(
        &mut self,
        method: &str,
        params: Value,
        patience: Duration,
    ) -> anyhow::Result<Option<Value>> {
        self.next_id += 1;
        let id = self.next_id;
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.input.write_all(format!("{line}\n").as_bytes()).await?;
        let output = &mut self.output;
        let answer = async {
            loop {
                let Some(Item::Line(line)) = output.next().await else {
                    bail!("the server has ended")
                };
                let message: Value = serde_json::from_slice(&line)?;
                if message["id"] == id {
                    return Ok(message);
                }
            }
        };
        timeout(patience, answer).await.ok().transpose()
    }

    /// Says goodbye and counts.
    pub(crate) async fn leave(mut self) -> anyhow::Result<Figures> {
        let elapsed = self.started.elapsed();
        drop(self.input);
        let mut log = String::new();
        if let Some(mut stderr) = self.process.stderr.take() {
            stderr.read_to_string(&mut log).await?;
        }
        self.process.wait().await?;
        let executions = fs::read_to_string(&self.ledger)?.lines().map(str::to_owned).collect();
        let _ = fs::remove_file(&self.ledger);
        Ok(Figures {
            calls: self.calls,
            failures: self.failures,
            executions,
            elapsed,
            breakers: transitions(&log),
        })
    }
}

fn reply(answer: &Value) -> Reply {
    if let Some(error) = answer.get("error") {
        let text = error["message"].as_str().unwrap_or_default().to_owned();
        return Reply { text, failed: true };
    }
    let blocks = answer["result"]["content"].as_array().map(Vec::as_slice).unwrap_or_default();
    let texts: Vec<&str> = blocks.iter().filter_map(|block| block["text"].as_str()).collect();
    Reply { text: texts.join("\n"), failed: answer["result"]["isError"] == true }
}

/// The states that breakers went to, in order.
fn transitions(log: &str) -> Vec<String> {
    log.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|entry| entry["event"] == "tool_call_circuit_state")
        .filter_map(|entry| entry["breakerState"].as_str().map(str::to_owned))
        .collect()
}

/// A file of this process's own for what really happened.
pub(super) fn ledger(name: &str, side: &str) -> PathBuf {
    let file = format!("tool-guard-demo-{}-{name}-{side}", std::process::id());
    let path = Path::new(&env::temp_dir()).join(file);
    let _ = fs::remove_file(&path);
    path
}
