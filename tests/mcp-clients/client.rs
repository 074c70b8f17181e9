//! The clients, as programs of their own.
use crate::{
    inspector,
    play::Seen,
    sdk::{Order, Sdk},
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
        let sdk = match self {
            Self::Mcp => Sdk::Mcp,
            Self::FastMcp => Sdk::FastMcp,
            Self::TypeScript1 => Sdk::TypeScript1,
            Self::TypeScript2 => Sdk::TypeScript2,
            Self::Rmcp => Sdk::Rmcp,
            Self::Inspector => return inspector::play(world, server),
        };
        sdk.play(&self.targets(world, server), &world.variables(), Order::InTurn)
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
