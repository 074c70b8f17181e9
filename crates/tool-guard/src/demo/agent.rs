//! A scripted agent: it calls tools over MCP as a model would, and counts what it sees.
use crate::{
    servers::process::Server,
    turn::{Client, hello},
};
use anyhow::Context as _;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use serde_json::{Value, json};
use std::{
    collections::HashSet,
    env, fs,
    iter::repeat_with,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};
use tokio::{
    process::Command,
    time::{sleep, timeout},
};

/// The timeout of an MCP client or of the guard in the demo.
const PATIENCE: &str = "400ms";
const CLIENT_PATIENCE: Duration = Duration::from_millis(400);
/// The interval of reading the ledger.
const LOOK: Duration = Duration::from_millis(2);
/// The timeout of a client that relies on its guard to answer.
const TRUSTING: Duration = Duration::from_secs(30);

const ENDED: &str = "the server has ended";

/// The agent and its connection to a server.
#[derive(Debug)]
pub(crate) struct Agent {
    is_guarded: bool,
    /// Whether its calls have the model's ids, as Claude Code's: new each time that the model asks.
    has_ids: bool,
    client: Client,
    /// The server's process.
    process: Option<Pid>,
    /// Holds the ledger and the guard's records, which outlive the processes.
    folder: PathBuf,
    replies: Vec<Reply>,
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
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Figures {
    /// Calls that the agent made.
    pub(crate) calls: usize,
    /// Failures that it saw.
    pub(crate) failures: usize,
    /// Executions of a tool.
    pub(crate) executions: usize,
    /// How many payments were repeated.
    pub(crate) duplicates: usize,
    /// What the model read last.
    pub(crate) told: String,
}

impl Agent {
    /// Starts a server, behind a guard if the agent's calls are guarded.
    pub(crate) async fn start(
        is_guarded: bool,
        scene: &str,
        has_ids: bool,
    ) -> anyhow::Result<Self> {
        let side = if is_guarded { "With" } else { "Without" };
        let folder = format!("tool-guard-demo-{}-{scene}-{side}", std::process::id());
        let folder = env::temp_dir().join(folder);
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let (client, process) = connected(is_guarded, &folder).await?;
        Ok(Self { is_guarded, has_ids, client, process, folder, replies: Vec::new() })
    }

    /// Pays, and kills its peer between the payment and its answer: the guard with its server, or the
    /// server if there is no guard. Then starts both again.
    pub(crate) async fn pay_and_be_cut_off(&mut self, arguments: Value) -> anyhow::Result<()> {
        let made = payments(&self.folder)?;
        let paid = async {
            while payments(&self.folder)? == made {
                sleep(LOOK).await;
            }
            anyhow::Ok(())
        };
        let params = params("charge_card", arguments, self.has_ids);
        let _pending = self.client.request("tools/call", &params.to_string());
        timeout(TRUSTING, paid).await.context("the payment is not made")??;
        kill_process(self.process.context(ENDED)?, Signal::KILL)?;
        self.client.end().await;
        let text = "MCP error -32000: Connection closed".to_owned();
        self.replies.push(Reply { text, failed: true });
        (self.client, self.process) = connected(self.is_guarded, &self.folder).await?;
        Ok(())
    }

    /// Calls a tool once, as a model's step does.
    pub(crate) async fn call(&mut self, tool: &str, arguments: Value) -> anyhow::Result<Reply> {
        let patience = if self.is_guarded { TRUSTING } else { CLIENT_PATIENCE };
        let params = params(tool, arguments, self.has_ids);
        let reply = match timeout(patience, self.client.answer("tools/call", &params)).await {
            Err(_) => Reply { text: "MCP error -32001: Request timed out".into(), failed: true },
            Ok(answer) => reply(&serde_json::from_slice(&answer.context(ENDED)?)?),
        };
        self.replies.push(reply.clone());
        Ok(reply)
    }

    /// Disconnects and counts.
    pub(crate) async fn leave(mut self) -> anyhow::Result<Figures> {
        self.client.end().await;
        let executions = fs::read_to_string(ledger(&self.folder))?;
        let _ = fs::remove_dir_all(&self.folder);
        let mut seen = HashSet::new();
        let charges = executions.lines().filter(|line| line.starts_with("charge_card"));
        Ok(Figures {
            calls: self.replies.len(),
            failures: self.replies.iter().filter(|reply| reply.failed).count(),
            executions: executions.lines().count(),
            duplicates: charges.filter(|line| !seen.insert(*line)).count(),
            told: self.replies.pop().map(|reply| reply.text).unwrap_or_default(),
        })
    }
}

/// Starts a server, behind a guard if calls are guarded, and greets it. It has no supervisor, so that the agent can
/// kill it.
async fn connected(is_guarded: bool, folder: &Path) -> anyhow::Result<(Client, Option<Pid>)> {
    let program = env::current_exe()?;
    let mut command = Command::new(&program);
    if is_guarded {
        // The default records, of a user of this folder's.
        command.args(["mcp", "--timeout", PATIENCE, "--"]).arg(&program);
        // As Claude Code starts its servers.
        command.env("XDG_STATE_HOME", folder).env("CLAUDE_PROJECT_DIR", folder);
    }
    let mut process = command
        .args(["__serve", "--ledger"])
        .arg(ledger(folder))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start the demo server")?;
    let input = process.stdin.take();
    let id = process.id().and_then(|id| Pid::from_raw(id.cast_signed()));
    let client = Client::over(Server { supervisor: process, input })?;
    for (method, params) in [("initialize", hello("demo")), ("tools/list", json!({}))] {
        timeout(TRUSTING, client.answer(method, &params)).await?.context(ENDED)?;
    }
    Ok((client, id))
}

/// The params of a call.
fn params(tool: &str, arguments: Value, has_ids: bool) -> Value {
    let mut params = json!({ "name": tool });
    params["arguments"] = arguments;
    if has_ids {
        let id: String = repeat_with(fastrand::alphanumeric).take(22).collect();
        params["_meta"] = json!({ "claudecode/toolUseId": format!("toolu_01{id}") });
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

fn payments(folder: &Path) -> anyhow::Result<usize> {
    Ok(fs::read_to_string(ledger(folder))?.matches("charge_card").count())
}

/// The file with a line for each execution.
fn ledger(folder: &Path) -> PathBuf {
    folder.join("ledger")
}
