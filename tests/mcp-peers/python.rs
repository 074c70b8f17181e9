//! PyPI's `mcp` client as a program of its own, whose transcripts are compared.
use crate::{
    compare::{adds_notes, join},
    peer::{Mark, Server, Way, variable},
};
use serde_json::{Value, json};
use std::{path::PathBuf, process::Command, thread};

/// What the client saw, as JSON lines; it leaves no process behind.
fn transcript(session: &str, server: &Server, way: Way) -> String {
    let mark = Mark::new();
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(variable("TR_PEERS").join("venv/bin/python"))
        .arg(here.join("client.py"))
        .arg(session)
        .args(server.argv(way, &mark))
        .env("TZ", "UTC")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{way:?}: {said}");
    mark.assert_gone();
    String::from_utf8(output.stdout).unwrap()
}

/// A line of a transcript as the server's answer, which it comes from.
fn answer(line: &str) -> Value {
    let [what, mut seen]: [Value; 2] = serde_json::from_str(line).unwrap();
    match seen.get_mut("MCPError") {
        Some(error) => json!({ "id": what, "error": error.take() }),
        None => json!({ "id": what, "result": seen }),
    }
}

/// Runs a session of the client directly and in some modes, and compares the transcripts, which
/// have so many lines.
fn compared<const N: usize>(session: &str, server: &Server, ways: [Way; N], lines: usize) {
    thread::scope(|scope| {
        let run = |way| scope.spawn(move || transcript(session, server, way));
        let guarded = ways.map(|way| (way, run(way)));
        let direct = join(run(Way::Direct));
        assert_eq!(direct.lines().count(), lines, "{direct}");
        for (way, guarded) in guarded {
            let guarded = join(guarded);
            assert_eq!(guarded.lines().count(), lines, "{way:?}: {guarded}");
            for (direct, guarded) in direct.lines().zip(guarded.lines()) {
                let noted = way == Way::Enforce && adds_notes(&answer(direct), &answer(guarded));
                assert!(
                    direct == guarded || noted,
                    "{way:?}\ndirectly: {direct}\nthrough the guard: {guarded}"
                );
            }
        }
    });
}

#[test]
fn a_real_client_sees_no_difference_with_server_everything() {
    compared("everything", &Server::everything(), [Way::Shadow, Way::Enforce], 29);
}

#[test]
fn a_real_client_sees_no_difference_with_server_filesystem() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("python");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("file.txt"), "späß\n").unwrap();
    compared("filesystem", &Server::filesystem([folder]), [Way::Enforce], 10);
}
