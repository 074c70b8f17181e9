//! The real binary puts the guard into files as people write them, and takes it out byte for byte.
use std::{
    fs,
    io::Write as _,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;

/// The clients, and where their files are below the home folder.
const CLIENTS: [(&str, &str); 7] = [
    ("claude-code", ".claude.json"),
    ("codex", ".codex/config.toml"),
    ("gemini", ".gemini/settings.json"),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".vscode/mcp.json"),
    ("opencode", ".config/opencode/opencode.jsonc"),
    ("openclaw", ".openclaw/openclaw.json"),
];

/// A home folder with a client's file.
struct Home {
    folder: TempDir,
    client: &'static str,
    file: PathBuf,
}

impl Home {
    fn new(client: &'static str, text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (_, path) = CLIENTS.iter().find(|(name, _)| *name == client).unwrap();
        let file = folder.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        Self { folder, client, file }
    }

    fn run(&self, words: &[&str]) -> (Output, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tool-guard"));
        let output = command
            .args(["install", self.client])
            .args(words)
            .current_dir(self.folder.path())
            .env_clear()
            .env("HOME", self.folder.path())
            .output()
            .unwrap();
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        (output, String::from_utf8(said).unwrap())
    }

    /// Runs and expects the exit code.
    #[track_caller]
    fn says(&self, words: &[&str], code: i32) -> String {
        let (output, said) = self.run(words);
        assert_eq!(output.status.code(), Some(code), "{} {words:?}: {said}", self.client);
        said
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap()
    }

    /// All files beside the client's.
    fn beside(&self) -> Vec<PathBuf> {
        let all = fs::read_dir(self.file.parent().unwrap()).unwrap();
        all.map(|it| it.unwrap().path()).filter(|it| *it != self.file && it.is_file()).collect()
    }
}

/// `tests/data/install/CLIENT/…`: the client, the name and the text of each.
fn files() -> Vec<(&'static str, String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/install");
    let mut all = Vec::new();
    for (client, _) in CLIENTS {
        for file in fs::read_dir(root.join(client)).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            all.push((client, name, fs::read_to_string(path).unwrap()));
        }
    }
    all
}

#[test]
fn thirty_files_are_guarded_and_restored_byte_for_byte() {
    let files = files();
    assert!(files.len() >= 30, "{}", files.len());
    let mut guarded = 0;
    for (at, (client, name, text)) in files.iter().enumerate() {
        let home = Home::new(client, text);
        let real = home.folder.path().join("dotfiles/real");
        fs::create_dir(real.parent().unwrap()).unwrap();
        if at % 3 == 0 {
            fs::rename(&home.file, &real).unwrap();
            symlink(&real, &home.file).unwrap();
        }
        let mode = [0o600, 0o644, 0o640][at % 3];
        fs::set_permissions(&home.file, fs::Permissions::from_mode(mode)).unwrap();
        let (dry, said) = home.run(&["--http", "--dry-run"]);
        assert_eq!(home.text(), *text, "{client} {name}: a dry run changes nothing");
        let (install, _) = home.run(&["--http"]);
        assert_eq!(dry.status.code(), install.status.code(), "{client} {name}");
        if name.starts_with("refused") {
            let line = 1 + text.lines().position(|line| line.contains("HERE")).unwrap();
            assert!(said.contains(&format!(":{line} ")), "{name}: {said}");
            assert!(said.contains("no file was changed"), "{name}: {said}");
            assert_eq!((home.text(), install.status.code()), (text.clone(), Some(1)), "{name}");
            assert!(home.beside().is_empty(), "{name}");
            continue;
        }
        let is_guarded = home.text() != *text;
        guarded += usize::from(is_guarded);
        assert_eq!(is_guarded, said.contains("would be guarded"), "{client} {name}: {said}");
        if is_guarded {
            let there = home.text();
            home.says(&["--http"], 0);
            assert_eq!(home.text(), there, "{client} {name}: twice is once");
        }
        home.says(&["--undo"], 0);
        assert_eq!(home.text(), *text, "{client} {name}");
        assert_eq!(home.file.metadata().unwrap().mode() & 0o7777, mode, "{client} {name}");
        assert_eq!(home.file.is_symlink(), at % 3 == 0, "{client} {name}");
        let left = fs::read_dir(real.parent().unwrap()).unwrap().count();
        assert_eq!((home.beside().len(), left), (0, usize::from(at % 3 == 0)), "{client} {name}");
    }
    assert!(guarded >= 20, "{guarded}");
}

const TWO: &str =
    r#"{"mcpServers": {"a": {"command": "npx", "args": ["x"]}, "b": {"command": "b"}}}"#;

#[test]
fn one_server_is_guarded_and_what_it_was_is_kept() {
    let home = Home::new("cursor", TWO);
    home.says(&["--server", "b"], 0);
    let text = home.text();
    assert!(text.contains(r#""a": {"command": "npx", "args": ["x"]}"#), "{text}");
    assert!(text.contains(r#""args": ["mcp", "b"]"#), "{text}");
    let kept = home.beside();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(fs::read_to_string(&kept[0]).unwrap(), TWO);
    let said = home.says(&["--server", "c"], 1);
    assert!(said.contains("no MCP server \"c\"") && said.contains("mcp.json"), "{said}");
    home.says(&[], 0);
    home.says(&["--undo", "--server", "a"], 0);
    assert_eq!(home.text(), text, "only that one");
    home.says(&["--undo"], 0);
    assert_eq!((home.text(), home.beside().len()), (TWO.to_owned(), 0));
    assert!(home.says(&["--undo"], 0).contains("nothing was changed"));
}

#[test]
fn a_server_that_cannot_be_guarded_is_an_error_if_it_is_named() {
    let text = r#"{"mcpServers": {"a": {"url": "https://h.example.com/mcp"}, "k": {"url": "https://h.example.com/mcp?key=k", "type": "http"}}}"#;
    let home = Home::new("cursor", text);
    assert!(home.says(&[], 0).contains("--http puts the guard in front"));
    assert!(home.says(&["--server", "a"], 1).contains("--http puts the guard in front"));
    assert!(home.says(&["--server", "k", "--http"], 1).contains("query"));
    assert_eq!(home.text(), text);
}

/// Puts a program with this script there.
fn write_program(path: &Path, script: &str) {
    fs::write(path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A guard that works no more: of a folder that was emptied, or older.
#[test]
fn an_entry_whose_guard_is_gone_or_older_gets_this_one() {
    let home = Home::new("cursor", TWO);
    home.says(&[], 0);
    let installed = home.text();
    let other = home.folder.path().join("tool-guard");
    let gone = installed.replace(env!("CARGO_BIN_EXE_tool-guard"), other.to_str().unwrap());
    for script in [None, Some("echo tool-guard 0.0.9"), Some("echo what")] {
        if let Some(script) = script {
            write_program(&other, script);
        }
        fs::write(&home.file, &gone).unwrap();
        let said = home.says(&[], 0);
        let words = format!("guarded by this program, in place of {}", other.display());
        assert!(said.contains(&words) && said.contains("restart Cursor"), "{said}");
        assert_eq!(home.text(), installed);
    }
    assert!(home.says(&[], 0).contains("is guarded already"));
    fs::write(&home.file, &gone).unwrap();
    write_program(&other, "echo tool-guard 99.10.0");
    assert!(home.says(&[], 0).contains("is guarded already"), "a newer one stays");
    assert_eq!(home.text(), gone);
    home.says(&["--undo"], 0);
    assert_eq!(home.text(), TWO);
}

/// A project's file comes from others.
#[test]
fn a_program_that_a_project_s_file_names_is_not_started() {
    let home = Home::new("vscode", r#"{"servers": {"a": {"command": "a"}}}"#);
    home.says(&[], 0);
    let (other, trace) = (home.folder.path().join("tool-guard"), home.folder.path().join("trace"));
    write_program(&other, &format!("echo started >{}", trace.display()));
    let named = home.text().replace(env!("CARGO_BIN_EXE_tool-guard"), other.to_str().unwrap());
    fs::write(&home.file, &named).unwrap();
    for words in [&["--dry-run"][..], &[]] {
        assert!(home.says(words, 0).contains("is guarded already"));
    }
    assert_eq!((home.text(), trace.exists()), (named, false));
    fs::remove_file(&other).unwrap();
    assert!(home.says(&[], 0).contains("in place of"), "one that is gone is seen");
}

/// The guard is in it, and can be taken out only by hand.
#[test]
fn a_guarded_entry_that_is_not_understood_is_refused() {
    let guard = env!("CARGO_BIN_EXE_tool-guard");
    for broken in ["\"args\": [\"mcp\", 5]", "\"args\": \"mcp a\"", "\"command\": \"a\""] {
        let text = format!(
            r#"{{"mcpServers": {{"a": {{"command": "{guard}", {broken}}}, "b": {{"command": "b"}}}}}}"#
        );
        let home = Home::new("cursor", &text);
        let said = home.says(&["--undo"], 1);
        assert!(said.contains("no file was changed"), "{said}");
        assert_eq!(home.text(), text);
    }
}

#[test]
fn a_server_that_cannot_be_guarded_keeps_no_other_one_guarded() {
    let text =
        r#"{"mcpServers": {"shell": {"command": "npx -y x --flag"}, "b": {"command": "b"}}}"#;
    let home = Home::new("cursor", text);
    home.says(&["--server", "b"], 0);
    let said = home.says(&["--undo"], 0);
    assert!(
        said.contains("shell (line 1): is left as it is") && said.contains("restored"),
        "{said}"
    );
    assert_eq!(home.text(), text);
}

#[test]
fn a_dry_run_shows_no_secrets() {
    let secrets = "{\"mcpServers\": {\"a\": {\"command\": \"npx\", \"args\": [\"--key\", \"SECRET-1\"], \"env\": {\"K\": \"SECRET-2\"}},\n\
        // SECRET-3\n\"b\": {\"command\": \"b\", /* SECRET-4 */ \"args\": []}, \"c\": {\"url\": \"https://h.example.com/SECRET-5\"}, \"n\": {\"x\": 1234}}}";
    let home = Home::new("cursor", secrets);
    let codex = Home::new(
        "codex",
        "k = 'SECRET-6' # SECRET-7\n[mcp_servers.a]\ncommand = 'npx' # SECRET-8\nargs = ['''SECRET-9\n''']\n",
    );
    for (home, undo) in [(&home, false), (&codex, false), (&home, true), (&codex, true)] {
        let said = if undo {
            home.says(&["--http"], 0);
            home.says(&["--undo", "--dry-run"], 0)
        } else {
            home.says(&["--http", "--dry-run"], 0)
        };
        assert!(said.contains("+++") && said.contains("npx"), "{said}");
        assert!(!said.contains("SECRET") && !said.contains("1234"), "{said}");
    }
}

#[test]
fn a_read_only_file_is_shown_and_not_changed() {
    let home = Home::new("cursor", TWO);
    fs::set_permissions(&home.file, fs::Permissions::from_mode(0o444)).unwrap();
    assert!(home.says(&["--dry-run"], 0).contains("would be guarded"));
    let said = home.says(&[], 1);
    assert!(said.contains("is read-only: chmod u+w"), "{said}");
    assert_eq!((home.text(), home.beside().len()), (TWO.to_owned(), 0));
}

#[test]
fn no_file_is_changed_if_one_is_refused() {
    let home = Home::new("claude-code", TWO);
    let project = home.folder.path().join(".mcp.json");
    fs::write(&project, "{\"mcpServers\": {\"a\": {\"command\": 1}}}").unwrap();
    let said = home.says(&[], 1);
    assert!(said.contains(".mcp.json:1 ") && said.contains("no file was changed"), "{said}");
    assert_eq!(home.text(), TWO);
    home.says(&["--scope", "user"], 0);
    assert_ne!(home.text(), TWO);
    fs::write(&project, TWO).unwrap();
    assert!(home.says(&["--scope", "project"], 0).contains("belongs to the project"));
    fs::remove_file(&project).unwrap();
    symlink("nowhere", &project).unwrap();
    assert!(home.says(&[], 1).contains("cannot be read"));
}

#[test]
fn what_was_changed_in_the_guards_words_is_not_undone() {
    let home = Home::new("cursor", TWO);
    home.says(&[], 0);
    let changed = home.text().replace("\"--\", ", "\"--\", /* why */ ");
    fs::write(&home.file, &changed).unwrap();
    let said = home.says(&["--undo"], 1);
    assert!(said.contains("by hand"), "{said}");
    assert_eq!(home.text(), changed);
}

/// Runs the binary and returns what it prints.
fn printed(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tool-guard")).args(words).output().unwrap();
    assert!(output.status.success(), "{words:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn completions_pages_and_the_build() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let text = printed(&["completions", shell]);
        assert!(text.contains("dry-run") && text.contains("install"), "{shell}");
        assert!(!text.contains("__exec"), "{shell}: hidden commands stay hidden");
    }
    // As bash asks when a person types the key, also behind a subcommand.
    for (words, expected) in [
        ("tool-guard inst", "install"),
        ("tool-guard install co", "codex"),
        ("tool-guard install --dry", "--dry-run"),
        ("tool-guard session che", "check"),
        ("tool-guard session check --s", "--strict"),
    ] {
        let ask = r#"eval "$(cat)"; COMP_WORDS=($1); COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
            set -- $(complete -p tool-guard | sed 's/.*-F \([^ ]*\).*/\1/')
            $1 tool-guard "${COMP_WORDS[-1]}" "${COMP_WORDS[-2]}"; echo "${COMPREPLY[@]}""#;
        let mut bash = Command::new("bash")
            .args(["-c", ask, "bash", words])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let script = printed(&["completions", "bash"]);
        bash.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        let told = String::from_utf8(bash.wait_with_output().unwrap().stdout).unwrap();
        assert!(told.split_whitespace().any(|word| word == expected), "{words}: {told}");
    }
    assert!(printed(&["man"]).contains(".TH tool-guard 1"));
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("share/man/man1");
    printed(&["man", folder.to_str().unwrap()]);
    let page = fs::read_to_string(folder.join("tool-guard-install.1")).unwrap();
    assert!(page.contains("undo") && page.contains("Exit codes"), "{page}");
    assert!(!folder.join("tool-guard-__exec.1").exists());
    let build = printed(&["--version"]);
    assert!(build.contains(std::env::consts::ARCH) && build.contains(" ("), "{build}");
    assert_eq!(printed(&["-V"]), format!("tool-guard {}\n", env!("CARGO_PKG_VERSION")));
}

/// Homebrew, Nix, asdf and mise link to a folder with the version in its name, which the next upgrade removes.
#[test]
fn the_path_that_a_file_gets_is_the_one_that_was_called() {
    let guard = env!("CARGO_BIN_EXE_tool-guard");
    for by_path in [false, true] {
        let home =
            Home::new("claude-code", r#"{"mcpServers":{"a":{"command":"npx","args":["x"]}}}"#);
        let bin = home.folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let link = bin.join("tool-guard");
        symlink(guard, &link).unwrap();
        let called = if by_path { Path::new("tool-guard") } else { Path::new("bin/tool-guard") };
        let mut command = Command::new("/usr/bin/env");
        let status = command
            .arg(called)
            .args(["install", "claude-code"])
            .current_dir(home.folder.path())
            .env_clear()
            .envs([("HOME", home.folder.path()), ("PATH", &bin)])
            .output()
            .unwrap()
            .status;
        assert!(status.success());
        assert!(home.text().contains(&format!("{:?}", link)), "{}", home.text());
    }
}

#[test]
fn a_guard_under_another_name_is_one() {
    let copies = tempfile::tempdir().unwrap();
    let (copy, link) = (copies.path().join("tg-0.1.0"), copies.path().join("tg"));
    fs::copy(env!("CARGO_BIN_EXE_tool-guard"), &copy).unwrap();
    symlink(env!("CARGO_BIN_EXE_tool-guard"), &link).unwrap();
    for program in [&copy, &link] {
        let servers = format!(
            r#"{{"mcpServers": {{"a": {{"command": "{}", "args": ["mcp", "--", "npx", "x"]}}}}}}"#,
            program.display()
        );
        let home = Home::new("claude-code", &servers);
        let said = home.says(&[], 0);
        assert!(said.contains("guarded already"), "{said}");
        assert_eq!(home.text(), servers);
    }
}
