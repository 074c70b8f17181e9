//! The agents, and what one of them does with a script.
use serde_json::{Value, json};
use std::{
    env, fs,
    io::{BufRead as _, BufReader},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// How many seconds an agent may take for its turn; it takes a few.
const LIMIT: &str = "120";

/// An agent's own command line, from npm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Agent {
    ClaudeCode,
    Codex,
    /// With the hooks of `examples/hooks`, and no guard in front of the server.
    HookedClaudeCode,
}

/// What an agent did in one turn.
#[derive(Debug)]
pub(crate) struct Turn {
    /// The `params` of each call that reached the server.
    pub(crate) calls: Vec<Value>,
    /// What the model read last: the whole transcript of the turn.
    pub(crate) read: String,
}

/// A call that the model asks for.
pub(crate) fn step(tool: &str, of: &str) -> Value {
    json!({ "tool": tool, "arguments": { "of": of } })
}

impl Agent {
    pub(crate) const ALL: [Self; 2] = [Self::ClaudeCode, Self::Codex];

    /// Lets the agent do a turn in which its model asks for `steps`, one after the other.
    /// The server's payments fail with `mail`.
    pub(crate) fn play(self, steps: &[Value], mail: &str) -> Turn {
        self.turn(&Room::new(mail), steps, Begin::New)
    }

    /// One turn in this room.
    pub(crate) fn turn(self, room: &Room, steps: &[Value], begin: Begin) -> Turn {
        let _ = fs::remove_file(room.path("asked"));
        let (mut model, port) = room.model(steps);
        let mut agent = match self {
            Self::ClaudeCode => room.claude_code(port, begin, room.bank()),
            Self::HookedClaudeCode => room.hooked_claude_code(port, begin),
            Self::Codex => room.codex(port, begin),
        };
        let end = agent.status().unwrap_or_else(|error| panic!("{self:?}: {error}"));
        model.kill().unwrap();
        model.wait().unwrap();
        assert!(end.success(), "{self:?}, {end}: {} {}", room.read("said"), room.read("asked"));
        let turn = Turn {
            calls: lines(&room.read("ledger")),
            read: room.read("asked").lines().last().unwrap_or_default().to_owned(),
        };
        assert!(!turn.read.is_empty(), "{self:?} asked no model: {}", room.read("said"));
        turn
    }
}

/// Whether a turn is a session's first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    New,
    /// By a process of its own, which resumes the last session.
    Resumed,
}

/// A server's command, its arguments and its environment.
type Bank = (PathBuf, Vec<PathBuf>, [(&'static str, PathBuf); 3]);

/// How an agent reaches a server over HTTP.
#[derive(Clone, Debug)]
pub(crate) enum Reached {
    /// At this URL, which may be a guard's.
    Http(String),
    /// Through a guard on standard input and output.
    Stdio(String),
    /// The same, and its number is written into this file.
    Noted(String, PathBuf),
}

/// A folder with the agent's home, its work, and what everybody wrote down.
pub(crate) struct Room {
    folder: TempDir,
    mail: String,
    /// What the catalog says of the payments' keys.
    keys: &'static str,
    /// How it reaches a server that is no bank of its own.
    reached: Option<Reached>,
}

impl Room {
    pub(crate) fn new(mail: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("home")).unwrap();
        fs::create_dir(folder.path().join("work")).unwrap();
        Self { folder, mail: mail.into(), keys: "", reached: None }
    }

    /// With a catalog that says this of the payments' keys.
    pub(crate) fn declaring(keys: &'static str) -> Self {
        Self { keys, ..Self::new("") }
    }

    /// With a server over HTTP.
    pub(crate) fn over(reached: Reached) -> Self {
        Self { reached: Some(reached), ..Self::new("") }
    }

    /// Has the bank kill its guard in the next payment.
    pub(crate) fn kill_the_guard(&self) {
        fs::write(self.path("kill"), "").unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// In an environment that is the same every time.
    fn command(&self, program: impl AsRef<Path>) -> Command {
        let mut command = Command::new(program.as_ref());
        let said = fs::File::create(self.path("said")).unwrap();
        command
            .env_clear()
            .envs(env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", self.path("home"))
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .stdout(said.try_clone().unwrap())
            .stderr(said);
        command
    }

    /// One that ends, if need be by force.
    fn agent(&self, program: PathBuf) -> Command {
        let mut agent = self.command("timeout");
        agent.args(["--signal", "KILL", LIMIT]).arg(program);
        agent
    }

    fn model(&self, steps: &[Value]) -> (Child, u16) {
        let mut model = self
            .command("node")
            .arg(here("model.cjs"))
            .env("SCRIPT", Value::from(steps).to_string())
            .env("ASKED", self.path("asked"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(model.stdout.take().unwrap()).read_line(&mut port).unwrap();
        (model, port.trim().parse().unwrap())
    }

    /// The server behind the guard, as an agent's configuration names it.
    fn bank(&self) -> Bank {
        if let Some(Reached::Stdio(url)) = &self.reached {
            let arguments = ["mcp", "--upstream", url].map(PathBuf::from);
            return (variable("TR_TOOL_GUARD"), arguments.into(), self.places());
        }
        if let Some(Reached::Noted(url, number)) = &self.reached {
            let [run, script, mcp, upstream, url] =
                ["-c", "echo $$ > \"$0\"; exec \"$@\"", "mcp", "--upstream", url]
                    .map(PathBuf::from);
            let guard = variable("TR_TOOL_GUARD");
            let arguments = [run, script, number.clone(), guard, mcp, upstream, url];
            return ("sh".into(), arguments.into(), self.places());
        }
        let catalog = self.path("catalog.toml");
        let tools = format!("[tools.pay]\neffect = \"mutating\"\n{}", self.keys);
        fs::write(&catalog, tools).unwrap();
        let [mcp, option, end, node] = ["mcp", "--catalog", "--", "node"].map(PathBuf::from);
        let arguments = [mcp, option, catalog, end, node, here("bank.cjs")];
        (variable("TR_TOOL_GUARD"), arguments.into(), self.places())
    }

    fn places(&self) -> [(&'static str, PathBuf); 3] {
        let mail = self.mail.clone().into();
        [("LEDGER", self.path("ledger")), ("MAIL", mail), ("KILL", self.path("kill"))]
    }

    /// The server alone.
    fn open_bank(&self) -> Bank {
        ("node".into(), vec![here("bank.cjs")], self.places())
    }

    fn hooked_claude_code(&self, port: u16, begin: Begin) -> Command {
        let (guard, pid) = (self.path("guard"), self.path("guard.pid"));
        let program = variable("TR_TOOL_GUARD");
        let script = format!(
            "#!/bin/sh\necho $$ > {}\nexec {} \"$@\" --idle 1m\n",
            pid.display(),
            program.display()
        );
        fs::write(&guard, script).unwrap();
        fs::set_permissions(&guard, fs::Permissions::from_mode(0o755)).unwrap();
        let hook = here("../../examples/hooks/claude-code.mjs");
        let run = json!([{ "hooks": [{ "type": "command", "command": format!("node {}", hook.display()) }] }]);
        let events = [
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PermissionDenied",
        ];
        let hooks: serde_json::Map<_, _> =
            events.iter().map(|event| ((*event).to_owned(), run.clone())).collect();
        let mut claude = self.claude_code(port, begin, self.open_bank());
        claude
            .arg(format!("--settings={}", json!({ "hooks": hooks })))
            .env("TOOL_GUARD", guard)
            .env("XDG_STATE_HOME", self.path("state"));
        claude
    }

    /// Ends the guard that hooks have started.
    pub(crate) fn end_guard(&self) {
        let pid = self.read("guard.pid");
        let ended = Command::new("kill").arg(pid.trim()).status().unwrap();
        assert!(ended.success(), "no guard was started: {}", self.read("said"));
    }

    fn claude_code(&self, port: u16, begin: Begin, bank: Bank) -> Command {
        let (command, args, env) = bank;
        let env: serde_json::Map<_, _> =
            env.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
        let bank = match &self.reached {
            Some(Reached::Http(url)) => json!({ "type": "http", "url": url }),
            _ => json!({ "command": command, "args": args, "env": env }),
        };
        let servers = json!({ "mcpServers": { "bank": bank } });
        let mut claude = self.agent(claude());
        claude.args((begin == Begin::Resumed).then_some("--continue"));
        claude
            .args(["-p", "go on", "--strict-mcp-config", "--allowedTools", "mcp__bank"])
            .arg(format!("--mcp-config={servers}"))
            .env("ANTHROPIC_BASE_URL", format!("http://127.0.0.1:{port}"))
            .env("ANTHROPIC_API_KEY", "none")
            .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        claude
    }

    fn codex(&self, port: u16, begin: Begin) -> Command {
        let (command, args, env) = self.bank();
        let env = env.map(|(name, value)| format!("{name} = {}\n", json!(value))).concat();
        // JSON's strings and arrays are TOML's, too.
        let bank = match &self.reached {
            Some(Reached::Http(url)) => format!("url = {}\n", json!(url)),
            _ => format!(
                "command = {}\nargs = {}\n[mcp_servers.bank.env]\n{env}",
                json!(command),
                json!(args)
            ),
        };
        let settings = format!(
            "model = 'scripted'\nmodel_provider = 'script'\napproval_policy = 'never'\n\
             [model_providers.script]\nname = 'script'\nwire_api = 'responses'\n\
             base_url = 'http://127.0.0.1:{port}/v1'\n\
             [mcp_servers.bank]\n{bank}"
        );
        fs::write(self.path("home/config.toml"), settings).unwrap();
        let mut codex = self.agent(variable("TR_CLIENTS").join("node_modules/.bin/codex"));
        codex.arg("exec");
        if begin == Begin::Resumed {
            codex.args(["resume", "--last"]);
        }
        codex
            .args(["--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"])
            .arg("go on")
            .env("CODEX_HOME", self.path("home"));
        codex
    }
}

/// Its package for this platform, which runs without npm's install scripts.
pub(crate) fn claude() -> PathBuf {
    let packages = variable("TR_CLIENTS").join("node_modules/@anthropic-ai");
    let found = fs::read_dir(&packages).unwrap().map(|entry| entry.unwrap().path().join("claude"));
    found.into_iter().find(|path| path.is_file()).unwrap_or_else(|| {
        panic!("Claude Code has no package for this platform in {}", packages.display())
    })
}

pub(crate) fn here(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(file)
}

/// What `cargo lab peers` tells us.
pub(crate) fn variable(name: &str) -> PathBuf {
    env::var_os(name).unwrap_or_else(|| panic!("{name} is not set: run cargo lab peers")).into()
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}
