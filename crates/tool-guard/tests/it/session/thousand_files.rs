//! Files that are no sessions: this repository's own, and what packages bring along. No command
//! changes a byte of them, or calls one clean.
use super::folder::Folder;
use serde_json::Value;
use std::{
    env, fs,
    path::{Path, PathBuf},
    thread,
};
use tr_testkit::rounds;

/// All files below a folder, in order; but for what is built, and git's own.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    entries.sort();
    for path in entries {
        let name = path.file_name().unwrap();
        if path.is_symlink() || name == ".git" || name == "target" {
            continue;
        }
        if path.is_dir() {
            files(&path, found);
        } else {
            found.push(path);
        }
    }
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The repository's own, but for the sessions that its tests have, and for empty lists: that is what
/// a reset leaves of a session.
fn own() -> Vec<PathBuf> {
    let mut found = Vec::new();
    files(&repository(), &mut found);
    let sessions = [
        "crates/tr-integrity/tests",
        "crates/tr-transcript/tests",
        "fuzz",
        "lab/agents/sessions",
        "crates/tool-guard/tests/data",
    ];
    let of_sessions = sessions.map(|folder| repository().join(folder));
    let is_code = |path: &PathBuf| path.extension().is_some_and(|end| end == "rs");
    let is_empty = |path: &PathBuf| fs::read(path).unwrap().trim_ascii().len() <= 2;
    let is_session = |path: &PathBuf| of_sessions.iter().any(|folder| path.starts_with(folder));
    found.retain(|path| is_code(path) || !is_session(path) && !is_empty(path));
    found
}

/// What the packages of cargo, npm and PyPI have that is no code, where they are installed.
fn installed() -> Vec<PathBuf> {
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo = env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let peers = env::var_os("TR_PEERS").map(PathBuf::from);
    let peers = peers.unwrap_or_else(|| repository().join("target/peers"));
    let mut found = Vec::new();
    for folder in [cargo.join("registry/src"), peers] {
        files(&folder, &mut found);
    }
    let ends = ["json", "jsonl", "yml", "yaml", "md", "lock", "log", "toml", "txt", "map", "ipynb"];
    let is_text = |path: &PathBuf| {
        let end = path.extension().and_then(|end| end.to_str()).unwrap_or("");
        ends.contains(&end) && path.metadata().is_ok_and(|meta| meta.len() < 1 << 19)
    };
    found.retain(is_text);
    found
}

/// Copies of them in a folder of its own, each with a name that says where it is from.
fn copied(paths: &[PathBuf]) -> (Folder, Vec<(String, Vec<u8>)>) {
    let folder = Folder::new();
    let copy = |(at, path): (usize, &PathBuf)| {
        let name = format!("{at:05}-{}", path.file_name().unwrap().to_string_lossy());
        let bytes = fs::read(path).unwrap();
        folder.write(&name, &bytes);
        (name, bytes)
    };
    let copies = paths.iter().enumerate().map(copy).collect();
    (folder, copies)
}

fn assert_untouched(folder: &Folder, copies: &[(String, Vec<u8>)], command: &[&str]) {
    for (name, bytes) in copies {
        assert!(fs::read(folder.path(name)).unwrap() == *bytes, "{command:?} changed {name}");
    }
    let (found, all) = (folder.names().len(), copies.len());
    assert_eq!(found, all, "{command:?} left something: {:?}", folder.names());
}

/// Whether the command said that there is nothing in it for it.
fn is_turned_away(line: &Value) -> bool {
    ["skipped", "unreadable", "notJudged"].contains(&line["status"].as_str().unwrap())
}

fn assert_turned_away(lines: &[Value], command: &[&str]) {
    let taken = lines.iter().filter(|line| !is_turned_away(line));
    let taken: Vec<_> =
        taken.map(|line| format!("{} {} {}", line["file"], line["status"], line["form"])).collect();
    assert!(taken.is_empty(), "{command:?} takes {} for sessions: {taken:#?}", taken.len());
}

const REMOVE: [&str; 5] = ["repair", "--write", "--mode", "remove", "--close-tail"];

#[test]
fn no_command_changes_or_certifies_a_thousand_files_that_are_no_sessions() {
    let mut paths = own();
    paths.extend(installed());
    paths.truncate(rounds(1_000, 20_000) as usize);
    assert!(paths.len() >= 1_000, "{} files", paths.len());
    let commands: [&[&str]; 4] = [&["check"], &["repair", "--write"], &REMOVE, &["diff"]];
    thread::scope(|scope| {
        for command in commands {
            scope.spawn(|| assert_nothing_for(command, &paths));
        }
    });
}

/// Runs the command for all of them at once, in a folder of its own.
fn assert_nothing_for(command: &[&str], paths: &[PathBuf]) {
    let (folder, copies) = copied(paths);
    let (lines, code) = folder.json(&[command, &["."]].concat());
    assert_turned_away(&lines, command);
    assert!(code == 2 || code == 3, "{command:?} ends with {code}");
    assert_untouched(&folder, &copies, command);
    if command == ["check"] {
        let done = folder.session(&["check", "."]);
        assert!(!done.out.contains('✓') && !done.err.contains('✓'), "{}{}", done.out, done.err);
    }
}

/// The commands that take one file alone, for the same files.
#[test]
fn no_command_for_one_file_changes_a_thousand_files_that_are_no_sessions() {
    let mut paths = own();
    paths.extend(installed());
    paths.truncate(rounds(1_000, 2_000) as usize);
    assert!(paths.len() >= 1_000, "{} files", paths.len());
    let commands: [&[&str]; 3] = [
        &["reset", "--write"],
        &["rollback", "--before-fault", "--write"],
        &["checkpoints", "--create"],
    ];
    thread::scope(|scope| {
        for paths in paths.chunks(paths.len().div_ceil(4)) {
            scope.spawn(move || {
                let (folder, copies) = copied(paths);
                for command in commands {
                    for (name, _) in &copies {
                        assert_nothing_for_one(&folder, command, name);
                    }
                    assert_untouched(&folder, &copies, command);
                }
            });
        }
    });
}

/// A file that was named is not judged; one that is broken and may have been a session is
/// unreadable.
fn assert_nothing_for_one(folder: &Folder, command: &[&str], name: &str) {
    let (lines, code) = folder.json(&[command, &[name]].concat());
    let expected = match lines[0]["status"].as_str() {
        Some("notJudged") => 3,
        Some("unreadable") => 2,
        other => panic!("{command:?} {name}: {other:?}"),
    };
    assert_eq!((lines.len(), code), (1, expected), "{command:?} {name}");
}
