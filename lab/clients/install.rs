//! `tool-guard install`: the clients themselves see the guard, and their files are as before when it is undone.
use crate::agent::{claude, here, variable};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// How many seconds a client may take to list its servers.
const LIMIT: &str = "120";

/// A client with its own file in a new home.
struct Client {
    home: TempDir,
    /// Its word for the guard.
    word: &'static str,
    program: PathBuf,
    file: PathBuf,
}

impl Client {
    /// `text` is its file, with `NODE` and `BANK` for the server's command and script.
    fn new(word: &'static str, program: PathBuf, file: &str, text: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        let bank = here("bank.cjs");
        let text = text.replace("BANK", bank.to_str().unwrap()).replace("NODE", "node");
        fs::write(&file, text).unwrap();
        Self { home, word, program, file }
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap()
    }

    /// Runs a program in this home; returns what it prints.
    fn run(&self, program: &Path, words: &[&str]) -> String {
        let output = Command::new("timeout")
            .args(["--signal", "KILL", LIMIT])
            .arg(program)
            .args(words)
            .env_clear()
            .envs(std::env::var_os("PATH").map(|path| ("PATH", path)))
            .env("HOME", self.home.path())
            .env("LEDGER", self.home.path().join("ledger"))
            .current_dir(self.home.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(output.status.success(), "{} {words:?}: {said}", self.word);
        said
    }

    fn guard(&self, words: &[&str]) -> String {
        self.run(&variable("TR_TOOL_GUARD"), words)
    }

    /// What the client lists before, with the guard, and after; the file before.
    fn listed(&self, list: &[&str]) -> ([String; 3], String) {
        let alone = self.run(&self.program, list);
        // Some clients write to their files when they start.
        let before = self.text();
        self.guard(&["install", self.word]);
        let guarded = self.run(&self.program, list);
        let said = self.guard(&["doctor", "--no-start", self.word]);
        assert!(said.contains("bank (line ") && said.contains(": guarded"), "{said}");
        self.guard(&["install", self.word, "--undo"]);
        ([alone, guarded, self.run(&self.program, list)], before)
    }
}

/// Whether the list names the guard as the server's command.
#[track_caller]
fn assert_seen([alone, guarded, after]: &[String; 3], connected: Option<&str>) {
    let guard = variable("TR_TOOL_GUARD");
    let guard = guard.to_str().unwrap();
    for list in [alone, guarded, after] {
        assert!(list.contains("bank"), "{list}");
        assert!(connected.is_none_or(|word| list.contains(word)), "{list}");
    }
    assert!(guarded.contains(guard) && guarded.contains("mcp -- node"), "{guarded}");
    assert!(!alone.contains(guard) && !after.contains(guard), "{alone}{after}");
}

#[test]
fn claude_code_lists_the_guard() {
    let file = json!({ "mcpServers": { "bank": { "type": "stdio", "command": "node", "args": ["BANK"], "env": {} } } });
    let client = Client::new("claude-code", claude(), ".claude.json", &file.to_string());
    let (lists, before) = client.listed(&["mcp", "list"]);
    assert_seen(&lists, Some("Connected"));
    // It rewrites its file at each start.
    let servers = |text: &str| serde_json::from_str::<Value>(text).unwrap()["mcpServers"].clone();
    assert_eq!(servers(&client.text()), servers(&before));
}

#[test]
fn codex_lists_the_guard_and_its_file_is_as_before() {
    let text = "# mine\nmodel = 'm' # a model\n\n[mcp_servers.bank] # money\ncommand = 'NODE' # JavaScript\nargs = [\n  'BANK', # the script\n]\n";
    let program = variable("TR_CLIENTS").join("node_modules/.bin/codex");
    let client = Client::new("codex", program, ".codex/config.toml", text);
    let (lists, before) = client.listed(&["mcp", "list"]);
    assert_seen(&lists, None);
    assert_eq!(client.text(), before);
}

#[test]
fn gemini_lists_the_guard_and_its_file_is_as_before() {
    let text = "{\n  // mine\n  \"security\": { \"folderTrust\": { \"enabled\": false } },\n  \"mcpServers\": { /* money */ \"bank\": { \"command\": \"NODE\", \"args\": [\"BANK\"] } }\n}\n";
    let program = variable("TR_CLIENTS").join("node_modules/.bin/gemini");
    let client = Client::new("gemini", program, ".gemini/settings.json", text);
    let (lists, before) = client.listed(&["mcp", "list"]);
    assert_seen(&lists, Some("Connected"));
    assert_eq!(client.text(), before);
}

#[test]
fn opencode_lists_the_guard_and_its_file_is_as_before() {
    let text = "{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  // mine\n  \"mcp\": {\n    \"bank\": { \"type\": \"local\", \"command\": [\"NODE\", \"BANK\"], }, // money\n  },\n}\n";
    let client = Client::new("opencode", opencode(), ".config/opencode/opencode.jsonc", text);
    let (lists, before) = client.listed(&["mcp", "list"]);
    assert_seen(&lists, Some("connected"));
    assert_eq!(client.text(), before);
}

/// Its package for this platform, which runs without npm's install scripts.
fn opencode() -> PathBuf {
    let packages = variable("TR_CLIENTS").join("node_modules");
    let found = fs::read_dir(&packages).unwrap().map(|entry| entry.unwrap());
    let mut found = found.filter(|it| it.file_name().to_string_lossy().starts_with("opencode-"));
    let program =
        found.find_map(|it| Some(it.path().join("bin/opencode")).filter(|it| it.is_file()));
    program.unwrap_or_else(|| {
        panic!("opencode has no package for this platform in {}", packages.display())
    })
}
