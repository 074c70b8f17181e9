//! The clients, as programs of their own.
use crate::{
    inspector,
    play::Seen,
    process::{client, here, python},
    rust,
    world::{Reached, Server, Way, World},
};
use serde_json::{Value, json};

/// What others write clients with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// PyPI's `mcp`.
    Mcp,
    /// PyPI's `fastmcp`.
    FastMcp,
    /// npm's `@modelcontextprotocol/sdk`.
    TypeScript1,
    /// npm's `@modelcontextprotocol/client`.
    TypeScript2,
    /// Rust's `rmcp`.
    Rmcp,
    /// npm's `@modelcontextprotocol/inspector-cli`, which makes one request at a time.
    Inspector,
}

impl Client {
    pub(crate) const ALL: [Self; 6] = [
        Self::Mcp,
        Self::FastMcp,
        Self::TypeScript1,
        Self::TypeScript2,
        Self::Rmcp,
        Self::Inspector,
    ];

    /// Whether it shows progress and cancels calls.
    pub(crate) const fn cancels(self) -> bool {
        !matches!(self, Self::Inspector)
    }

    /// What the client's calls on this way are named after.
    pub(crate) fn order(self, way: Way) -> String {
        format!("{self:?} {way:?}")
    }

    /// Plays the server's script on every way, one after the other.
    pub(crate) fn play(self, world: &World, server: Server) -> Seen {
        match self {
            Self::Mcp => self.program(world, server, python(), "sdks/python.py", "mcp"),
            Self::FastMcp => self.program(world, server, python(), "sdks/python.py", "fastmcp"),
            Self::TypeScript1 => self.program(world, server, "node", "sdks/typescript.cjs", "1"),
            Self::TypeScript2 => self.program(world, server, "node", "sdks/typescript.cjs", "2"),
            Self::Rmcp => rust::play(&self.targets(world, server)),
            Self::Inspector => inspector::play(world, server),
        }
    }

    fn program(
        self,
        world: &World,
        server: Server,
        program: impl AsRef<std::ffi::OsStr>,
        script: &str,
        kind: &str,
    ) -> Seen {
        let mut command = client(program);
        command.arg(here(script)).arg(kind).arg(json!(self.targets(world, server)).to_string());
        let output = command.envs(world.variables()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{self:?}, {server:?}: {printed}\n{said}");
        Seen::read(&printed)
    }

    /// Each way, as the clients read it.
    fn targets(self, world: &World, server: Server) -> [Value; 6] {
        let variables = world.variables();
        let variables = variables.iter().map(|(name, value)| (*name, value.to_str().unwrap()));
        let variables: serde_json::Map<_, _> =
            variables.map(|(name, value)| (name.to_owned(), Value::from(value))).collect();
        Way::ALL.map(|way| {
            let mut target = json!({
                "name": format!("{way:?}"), "env": variables, "script": server.script(&self.order(way)),
            });
            match world.reach(server, way) {
                Reached::Url(url) => target["url"] = url.into(),
                Reached::Command(words) => target["command"] = words.into(),
            }
            target
        })
    }
}
