//! PyPI's `mcp` client as a program of its own, whose transcripts are compared.
use crate::{
    compare::{adds_notes, join},
    peer::{Mark, Server, Way, variable},
};
use serde_json::{Value, json};
use std::{
    ffi::OsString,
    io::{BufRead as _, BufReader},
    path::PathBuf,
    process::{Command, Stdio},
    thread,
};

/// What the client saw, as JSON lines; it leaves no process behind.
fn transcript(session: &str, server: &Server, way: Way) -> String {
    let mark = Mark::new();
    let seen = client(session, server.argv(way, &mark));
    mark.assert_gone();
    seen
}

/// What the client saw of a server behind these words: a command, or a URL.
fn client(session: &str, words: Vec<OsString>) -> String {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(variable("TR_PEERS").join("venv/bin/python"))
        .arg(here.join("client.py"))
        .arg(session)
        .args(&words)
        .env("TZ", "UTC")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// What clients at once saw over HTTP of a server that runs as a command.
fn transcripts_over_http<const N: usize>(session: &str, server: &Server) -> [String; N] {
    let mark = Mark::new();
    let mut guard = server.command(Way::Listening, &mark);
    let mut guard = guard.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(guard.stderr.take().unwrap()).lines().map(Result::unwrap);
    let url = lines.find_map(|line| {
        let event: Value = serde_json::from_str(&line).ok()?;
        (event["event"] == "mcp_listening").then_some(())?;
        Some(format!("http://{}/mcp", event["address"].as_str()?))
    });
    let url = url.expect("the guard listens");
    // A full pipe would stop the servers.
    let drained = thread::spawn(move || lines.for_each(drop));
    let seen = thread::scope(|scope| {
        let clients = [(); N].map(|()| scope.spawn(|| client(session, vec![(&*url).into()])));
        clients.map(join)
    });
    let ended = Command::new("kill").arg(guard.id().to_string()).status().unwrap();
    assert!(ended.success() && guard.wait().unwrap().code() == Some(128 + 15));
    drained.join().unwrap();
    mark.assert_gone();
    seen
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

/// Two clients at once, each with a session and a server of its own.
#[test]
fn real_clients_over_http_see_no_difference_with_server_everything() {
    let direct = transcript("everything", &Server::everything(), Way::Direct);
    for seen in transcripts_over_http::<2>("everything", &Server::everything()) {
        assert_eq!(seen.lines().count(), direct.lines().count(), "{seen}");
        for (direct, seen) in direct.lines().zip(seen.lines()) {
            let is_noted = adds_notes(&answer(direct), &answer(seen));
            assert!(direct == seen || is_noted, "directly: {direct}\nover HTTP: {seen}");
        }
    }
}

#[test]
fn a_real_client_sees_no_difference_with_server_filesystem() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("python");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("file.txt"), "späß\n").unwrap();
    compared("filesystem", &Server::filesystem([folder]), [Way::Enforce], 10);
}
