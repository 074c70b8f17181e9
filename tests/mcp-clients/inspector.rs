//! The inspector in its CLI mode: each request is a process and a session of its own.
use crate::{
    client::Client,
    play::Seen,
    process::{self, npm},
    world::{Reached, Server, Way, World},
};
use serde_json::Value;

/// Plays those steps of a script that it can on every way.
pub(crate) fn play(world: &World, server: Server) -> Seen {
    let mut seen = Seen::default();
    for way in Way::ALL {
        let script = server.script(&Client::Inspector.order(way));
        // Each starts a server on some ways.
        let wanted: &[usize] = match server {
            Server::Everything => &[0, 3],
            Server::Bank => &[5],
        };
        for number in wanted {
            seen.note(
                &format!("{way:?}"),
                &number.to_string(),
                request(world, &world.reach(server, way), &script[number]),
            );
        }
    }
    seen
}

fn request(world: &World, reached: &Reached, step: &Value) -> Value {
    let build = npm("@modelcontextprotocol/inspector-cli/build");
    let mut command = process::client("node");
    // It looks for its own package.json from there.
    command.current_dir(&build).arg(build.join("index.js"));
    match reached {
        Reached::Url(url) => command.args([url, "--transport", "http"]),
        Reached::Command(words) => command.args(words),
    };
    match step["tool"].as_str() {
        Some(tool) => {
            command.args(["--method", "tools/call", "--tool-name", tool]);
            for (name, value) in step["arguments"].as_object().unwrap() {
                let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                command.args(["--tool-arg", &format!("{name}={value}")]);
            }
        }
        None => {
            command.args(["--method", "tools/list"]);
        }
    }
    let output = command.env_clear().envs(world.variables()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{command:?}: {error}, {said}"))
}
