//! `tool-guard config`, as its users run it.
use std::{fs, process::Command};

/// Runs the command in `folder`: its exit code, what it printed, what it reported.
fn config(
    folder: &tempfile::TempDir,
    args: &[&str],
    vars: &[(&str, &str)],
) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tool-guard"));
    command.current_dir(folder.path()).arg("config").args(args);
    command.envs(vars.iter().copied()).env("HOME", folder.path());
    let ended = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (ended.status.code().unwrap(), text(ended.stdout), text(ended.stderr))
}

fn folder(file: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("stack.toml"), file).unwrap();
    folder
}

#[test]
fn check_names_every_mistake_of_the_file_and_of_the_variables() {
    let bad = folder("[breaker]\nwindw = 5\nmin_calls = 30\n[tools.pay]\neffect = \"maybe\"\n");
    let vars =
        [("TOOL_RELIABILITY__RETRY__ATTEMPTS", "many"), ("TOOL_RELIABILITY_ENABLED", "nope")];
    let (code, out, err) = config(&bad, &["check", "stack.toml"], &vars);
    assert_eq!((code, &*out), (2, ""), "{err}");
    for part in [
        "line 2, column 9: /breaker/windw: expected a known key, found the unknown key \"windw\" (did you mean \"window\"?)",
        "line 3, column 13: /breaker/min_calls: expected at most 20, as `window` is, found 30",
        "line 5, column 10: /tools/pay/effect",
        "TOOL_RELIABILITY__RETRY__ATTEMPTS: expected a whole number from 1 to 1000, found \"many\"",
        "TOOL_RELIABILITY_ENABLED: expected \"on\" or \"off\"",
    ] {
        assert!(err.contains(part), "{part}\n{err}");
    }
    let (code, out, err) = config(&bad, &["show", "--config", "stack.toml"], &[]);
    assert_eq!((code, &*out), (2, ""), "{err}");

    let (code, _, err) = config(&bad, &["check", "none.toml"], &[]);
    assert!(code == 1 && err.contains("cannot read none.toml"), "{code} {err}");

    let good = folder("[tools.pay]\neffect = \"mutating\"\n[sessions]\n");
    let (code, out, err) = config(&good, &["check", "stack.toml"], &[]);
    assert_eq!((code, &*out), (0, "stack.toml: no mistakes, 1 tool\n"), "{err}");
    assert!(err.contains("[sessions] has no effect in tool-guard mcp and turn"), "{err}");
    let (code, out, _) = config(&good, &["check"], &[]);
    assert_eq!((code, &*out), (0, "the environment: no mistakes, 0 tools\n"));
}

#[test]
fn show_says_where_each_value_comes_from() {
    let folder =
        folder("preset = \"error_handling\"\n[breaker]\nwindow = 30\n\n[retry]\nattempts = 7\n");
    let vars =
        [("TOOL_RELIABILITY__BREAKER__COOLDOWN_MS", "9000"), ("TOOL_RELIABILITY_OPEN_MODE", "off")];
    let args = [
        "show",
        "--config",
        "stack.toml",
        "--loops",
        "block",
        "--records",
        "redis://u:hunter2@h:1",
    ];
    let (code, out, err) = config(&folder, &args, &vars);
    assert_eq!(code, 0, "{err}");
    for line in [
        "# TOOL_RELIABILITY_OPEN_MODE is off: no breaker refuses a call.",
        "preset = \"error_handling\" # stack.toml:1",
        "window = 30 # stack.toml:3",
        "attempts = 7 # stack.toml:6",
        "cooldown_ms = 9000 # variable TOOL_RELIABILITY__BREAKER__COOLDOWN_MS",
        "base_ms = 100 # default of error_handling",
        "min_calls = 10 # default",
        "attempt_timeout_ms = 58000 # default of tool-guard mcp",
        "mode = \"block\" # option --loops",
        "# where = \"redis://<hidden>@h:1\" # option --records; hidden: set it as TOOL_RELIABILITY__RECORDS__WHERE",
        "#   deadline_ms",
    ] {
        assert!(out.lines().any(|shown| shown == line), "{line}\n{out}");
    }
    assert!(!out.contains("hunter2"), "{out}");
    // It is a configuration itself, of the same effect.
    fs::write(folder.path().join("again.toml"), &out).unwrap();
    let (code, again, err) = config(&folder, &["show", "--config", "again.toml"], &[]);
    assert_eq!(code, 0, "{err}");
    let values = |text: &str| {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.split(" # ").next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(values(&again), values(&out));
}

#[test]
fn show_alone_prints_every_setting_of_the_environment() {
    let vars = [("TOOL_RELIABILITY__BREAKER__WINDOW", "30")];
    let (code, out, err) = config(&folder(""), &["show"], &vars);
    assert_eq!(code, 0, "{err}");
    let window = "window = 30 # variable TOOL_RELIABILITY__BREAKER__WINDOW";
    for line in [window, "min_calls = 10 # default"] {
        assert!(out.lines().any(|shown| shown == line), "{line}\n{out}");
    }
}

#[test]
fn schema_prints_the_schema_of_the_file() {
    let (code, out, _) = config(&folder(""), &["schema"], &[]);
    assert_eq!(code, 0);
    let published = include_str!("../../../../schemas/stack-config.schema.json");
    assert_eq!(out, published);
}
