//! Runs the tests of what stands between an agent and `tool-guard decide`, in its own language. What the real agents do
//! with it, `cargo lab peers` shows.
use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

/// Runs a file of Node's tests.
fn node(file: &str) {
    let guard: PathBuf = env::var_os("TR_TOOL_GUARD")
        .expect("TR_TOOL_GUARD is not set: run cargo xtask test")
        .into();
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(file);
    let mut tested = Command::new("node");
    tested.args(["--test", "--test-reporter=tap"]).arg(file).env("TR_TOOL_GUARD", guard);
    let tested = tested.output().unwrap();
    let said = String::from_utf8_lossy(&tested.stdout);
    assert!(tested.status.success(), "{said}");
    assert!(said.contains("# pass ") && !said.contains("# pass 0"), "no test ran: {said}");
}

#[test]
fn the_plugin_for_openclaw() {
    node("packaging/openclaw/test.mjs");
}

#[test]
fn the_hook_of_claude_code() {
    node("examples/hooks/tests/claude_code.mjs");
}
