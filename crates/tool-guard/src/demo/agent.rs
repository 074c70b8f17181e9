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
    time::{Instant, sleep, timeout},
};

/// The timeout of an MCP client or of the guard in the demo.
const PATIENCE: &str = "400ms";
const CLIENT_PATIENCE: Duration = Duration::from_millis(400);
/// The interval of reading the ledger.
const LOOK: Duration = Duration::from_millis(2);
/// The timeout of a client that relies on its guard to answer.
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
    connection: Connection,
    /// Holds the ledger and the guard's records, which outlive the processes.
    folder: PathBuf,
    started: Instant,
    next_id: u64,
    replies: Vec<(Reply, Duration)>,
}

/// A server, behind a guard if there is one, and its pipes.
#[derive(Debug)]
struct Connection {
    process: Child,
    input: ChildStdin,
    output: LineReader<ChildStdout>,
}

/// What the model reads.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) text: String,
    pub(crate) failed: bool,
}

impl Reply {
    /// Whether the guard asks the model to stop.
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
    /// The median time of an answer.
    pub(crate) median: Duration,
    /// What the model read last.
    pub(crate) told: String,
    /// Transitions of breakers, as the guard logged them.
    pub(crate) breakers: Vec<String>,
}

impl Figures {
    /// How many payments were repeated.
    pub(crate) fn duplicates(&self) -> usize {
        let charges = self.executions.iter().filter(|line| line.starts_with("charge_card"));
        let mut seen = std::collections::HashSet::new();
        charges.filter(|line| !seen.insert(*line)).count()
    }
}

impl Agent {
    /// Starts a server, behind a guard if `guarding` says so.
    pub(crate) async fn start(guarding: Guarding, name: &str) -> anyhow::Result<Self> {
        let folder = folder(name, &format!("{guarding:?}"))?;
        let connection = Connection::open(guarding, &folder)?;
        let started = Instant::now();
        let mut agent =
            Self { guarding, connection, folder, started, next_id: 0, replies: Vec::new() };
        agent.greet().await?;
        agent.started = Instant::now();
        Ok(agent)
    }

    async fn greet(&mut self) -> anyhow::Result<()> {
        let client = json!({ "name": "demo", "version": env!("CARGO_PKG_VERSION") });
        let hello =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        self.request("initialize", hello, TRUSTING).await?;
        self.request("tools/list", json!({}), TRUSTING).await?;
        Ok(())
    }

    /// Pays, and kills its peer between the payment and its answer: the guard with its server, or the
    /// server if there is no guard. Then starts both again.
    pub(crate) async fn pay_and_be_cut_off(
        &mut self,
        arguments: Value,
        key: &str,
    ) -> anyhow::Result<()> {
        let begin = Instant::now();
        let made = self.payments()?;
        self.send("tools/call", &params("charge_card", arguments, Some(key))).await?;
        let paid = async {
            while self.payments()? == made {
                sleep(LOOK).await;
            }
            anyhow::Ok(())
        };
        timeout(TRUSTING, paid).await.context("the payment is not made")??;
        self.connection.process.kill().await?;
        let text = "MCP error -32000: Connection closed".to_owned();
        self.replies.push((Reply { text, failed: true }, begin.elapsed()));
        self.connection = Connection::open(self.guarding, &self.folder)?;
        self.greet().await
    }

    fn payments(&self) -> anyhow::Result<usize> {
        Ok(fs::read_to_string(ledger(&self.folder))?.matches("charge_card").count())
    }

    /// Calls a tool once, as a model's step does. `key` is the call's idempotency key.
    pub(crate) async fn call(
        &mut self,
        tool: &str,
        arguments: Value,
        key: Option<&str>,
    ) -> anyhow::Result<Reply> {
        let begin = Instant::now();
        let patience = if self.guarding == Guarding::With { TRUSTING } else { CLIENT_PATIENCE };
        let answer = self.request("tools/call", params(tool, arguments, key), patience).await?;
        let reply = match answer {
            None => Reply { text: "MCP error -32001: Request timed out".into(), failed: true },
            Some(answer) => reply(&answer),
        };
        self.replies.push((reply.clone(), begin.elapsed()));
        Ok(reply)
    }

    async fn send(&mut self, method: &str, params: &Value) -> anyhow::Result<u64> {
        self.next_id += 1;
        let id = self.next_id;
        let line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.connection.input.write_all(format!("{line}\n").as_bytes()).await?;
        Ok(id)
    }

    /// The answer, or `None` at the client's timeout.
    async fn request(
        &mut self,
        method: &str,
        params: Value,
        patience: Duration,
    ) -> anyhow::Result<Option<Value>> {
        let id = self.send(method, &params).await?;
        let output = &mut self.connection.output;
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

    /// Disconnects and counts.
    pub(crate) async fn leave(mut self) -> anyhow::Result<Figures> {
        let elapsed = self.started.elapsed();
        let Connection { mut process, input, output } = self.connection;
        drop(input);
        let mut log = String::new();
        if let Some(mut stderr) = process.stderr.take() {
            stderr.read_to_string(&mut log).await?;
        }
        process.wait().await?;
        drop(output);
        let executions = fs::read_to_string(ledger(&self.folder))?;
        let _ = fs::remove_dir_all(&self.folder);
        let mut waits: Vec<_> = self.replies.iter().map(|(_, wait)| *wait).collect();
        waits.sort_unstable();
        Ok(Figures {
            calls: self.replies.len(),
            failures: self.replies.iter().filter(|(reply, _)| reply.failed).count(),
            executions: executions.lines().map(str::to_owned).collect(),
            elapsed,
            median: waits.get(waits.len() / 2).copied().unwrap_or_default(),
            told: self.replies.pop().map(|(reply, _)| reply.text).unwrap_or_default(),
            breakers: transitions(&log),
        })
    }
}

impl Connection {
    fn open(guarding: Guarding, folder: &Path) -> anyhow::Result<Self> {
        let program = env::current_exe()?;
        let mut command = Command::new(&program);
        if guarding == Guarding::With {
            // The default records, of a user of this folder's.
            command.args(["mcp", "--timeout", PATIENCE, "--"]).arg(&program);
            command.env("XDG_STATE_HOME", folder);
        }
        let mut process = command
            .args(["__serve", "--ledger"])
            .arg(ledger(folder))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the demo server")?;
        let input = process.stdin.take().context("piped")?;
        let output = LineReader::new(process.stdout.take().context("piped")?, 1024 * 1024);
        Ok(Self { process, input, output })
    }
}

/// The params of a call with its idempotency key.
fn params(tool: &str, arguments: Value, key: Option<&str>) -> Value {
    let mut params = json!({ "name": tool });
    params["arguments"] = arguments;
    if let Some(key) = key {
        params["_meta"] = json!({ "idempotencyKey": key });
    }
    params
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

/// The states that breakers changed to, in order.
fn transitions(log: &str) -> Vec<String> {
    log.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|entry| entry["event"] == "tool_call_circuit_state")
        .filter_map(|entry| entry["breakerState"].as_str().map(str::to_owned))
        .collect()
}

/// A new folder for this process.
pub(super) fn folder(name: &str, side: &str) -> anyhow::Result<PathBuf> {
    let folder = format!("tool-guard-demo-{}-{name}-{side}", std::process::id());
    let path = env::temp_dir().join(folder);
    let _ = fs::remove_dir_all(&path);
    fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(path)
}

/// The file with a line for each execution.
pub(super) fn ledger(folder: &Path) -> PathBuf {
    folder.join("ledger")
}
