//! How long clients wait for a tool by default: the guard's own limits come from this.
use crate::agent::{here, variable};
use serde_json::{Value, json};
use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    thread,
    time::Instant,
};
use tempfile::TempDir;

/// The tool answers after so many seconds.
const TAKES: u64 = 660;

/// A client, and after how many seconds it ends the call; `None` if it takes the answer.
#[derive(Clone, Copy, Debug)]
struct Waits {
    client: &'static str,
    limit: Option<u64>,
}

const ALL: [Waits; 4] = [
    Waits { client: "claude", limit: None },
    Waits { client: "codex", limit: Some(300) },
    Waits { client: "gemini", limit: Some(600) },
    Waits { client: "sdk", limit: Some(60) },
];

/// A client of the TypeScript SDK with its defaults.
const SDK: &str = r#"
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");
const [command, ...args] = JSON.parse(process.argv[1]);
const client = new Client({ name: "sdk", version: "1" });
const transport = new StdioClientTransport({ command, args, env: process.env });
const call = { name: "pay", arguments: JSON.parse(process.argv[2]) };
client.connect(transport).then(() => client.callTool(call)).catch(() => {}).finally(() => process.exit(0));
"#;

struct Room {
    folder: TempDir,
    server: [String; 2],
    arguments: Value,
}

impl Room {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("home/.gemini")).unwrap();
        let server = ["node".to_owned(), here("slow_bank.cjs").to_str().unwrap().to_owned()];
        let arguments = json!({ "order": "42", "takes": TAKES });
        Self { folder, server, arguments }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        let said = fs::File::create(self.path("said")).unwrap();
        command
            .env_clear()
            .env("PATH", env::var_os("PATH").unwrap())
            .env("HOME", self.path("home"))
            .env("LEDGER", self.path("ledger"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .stdout(said.try_clone().unwrap())
            .stderr(said);
        command
    }

    /// A model that asks for the payment.
    fn model(&self) -> (Child, u16) {
        let steps = json!([{ "tool": "pay", "arguments": self.arguments }]);
        let mut model = self
            .command("node")
            .arg(here("model.cjs"))
            .env("SCRIPT", steps.to_string())
            .env("ASKED", self.path("asked"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(model.stdout.take().unwrap()).read_line(&mut port).unwrap();
        (model, port.trim().parse().unwrap())
    }

    fn client(&self, client: &str, port: u16) -> Command {
        let packages = variable("TR_CLIENTS").join("node_modules/.bin");
        let [command, script] = &self.server;
        let env = json!({ "LEDGER": self.path("ledger") });
        let bank = json!({ "command": command, "args": [script], "env": env, "trust": true });
        let servers = json!({ "mcpServers": { "bank": bank } });
        match client {
            "claude" => {
                let mut claude = self.command(crate::agent::claude());
                claude
                    .args(["-p", "go on", "--strict-mcp-config", "--allowedTools", "mcp__bank"])
                    .arg(format!("--mcp-config={servers}"))
                    .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}"))
                    .env("ANTHROPIC_API_KEY", "none")
                    .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
                claude
            }
            "codex" => {
                let settings = format!(
                    "model = 'scripted'\nmodel_provider = 'script'\napproval_policy = 'never'\n\
                     [model_providers.script]\nname = 'script'\nwire_api = 'responses'\n\
                     base_url = 'http://127.0.0.1:{port}/v1'\n\
                     [mcp_servers.bank]\ncommand = {}\nargs = [{}]\n\
                     [mcp_servers.bank.env]\nLEDGER = {}\n",
                    json!(command),
                    json!(script),
                    env["LEDGER"]
                );
                fs::write(self.path("home/config.toml"), settings).unwrap();
                let mut codex = self.command(packages.join("codex"));
                codex
                    .args(["exec", "--skip-git-repo-check"])
                    .args(["--dangerously-bypass-approvals-and-sandbox", "go on"])
                    .env("CODEX_HOME", self.path("home"));
                codex
            }
            "gemini" => {
                let mut settings = servers;
                settings["security"] = json!({ "auth": { "selectedType": "gemini-api-key" } });
                let file = self.path("home/.gemini/settings.json");
                fs::write(file, settings.to_string()).unwrap();
                let mut gemini = self.command(packages.join("gemini"));
                gemini
                    .args(["-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", "go on"])
                    .env("GEMINI_API_KEY", "none")
                    .env("GOOGLE_GEMINI_BASE_URL", format!("http://127.0.0.1:{port}"))
                    .env("GEMINI_CLI_TRUST_WORKSPACE", "true");
                gemini
            }
            _ => {
                let mut sdk = self.command("node");
                sdk.args(["-e", SDK, &json!(self.server).to_string()])
                    .arg(self.arguments.to_string())
                    .env("NODE_PATH", variable("TR_PEERS").join("node_modules"));
                sdk
            }
        }
    }
}

/// After how many seconds a client's call ended.
#[expect(clippy::disallowed_methods, reason = "what is measured is another program's clock")]
fn waited(client: &str) -> f64 {
    let room = Room::new();
    let (mut model, port) = room.model();
    let mut running = room.client(client, port).spawn().unwrap();
    let ledger = || fs::read_to_string(room.path("ledger")).unwrap_or_default();
    let begun = loop {
        let end = running.try_wait().unwrap();
        let said = || fs::read_to_string(room.path("said")).unwrap_or_default();
        assert!(end.is_none(), "{client} made no call: {}", said());
        if !ledger().is_empty() {
            break Instant::now();
        }
        thread::sleep(std::time::Duration::from_millis(50));
    };
    // It ends once its model has said that all is done.
    running.wait().unwrap();
    model.kill().unwrap();
    model.wait().unwrap();
    begun.elapsed().as_secs_f64()
}

#[test]
fn clients_wait_for_a_tool_as_the_guard_believes() {
    thread::scope(|scope| {
        let runs = ALL.map(|waits| (waits, scope.spawn(move || waited(waits.client))));
        for (Waits { client, limit }, run) in runs {
            let (seconds, limit) = (run.join().unwrap(), limit.unwrap_or(TAKES) as f64);
            // Starting and ending take some seconds.
            assert!((limit - 1.0..limit + 15.0).contains(&seconds), "{client}: {seconds} s");
        }
    });
}
