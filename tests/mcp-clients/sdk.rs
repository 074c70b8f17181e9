//! The SDKs that others write clients with.
use crate::{
    play::Seen,
    process::{client, here, python},
    rust,
};
use serde_json::{Value, json};
use std::ffi::{OsStr, OsString};

/// An SDK's client, which plays the scripts of targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sdk {
    /// PyPI's `mcp`.
    Mcp,
    /// PyPI's `fastmcp`.
    FastMcp,
    /// npm's `@modelcontextprotocol/sdk`.
    TypeScript1,
    /// npm's `@modelcontextprotocol/client`.
    TypeScript2,
    /// npm's `@ai-sdk/mcp`, version 1.
    AiSdk1,
    /// The same, version 2.
    AiSdk2,
    /// Rust's `rmcp`.
    Rmcp,
}

/// Whether a client plays one target after the other. `rmcp` plays all at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// One after the other.
    InTurn,
    /// All at once.
    Together,
}

impl Sdk {
    /// Plays each target's script; the variables are all that a process of its own has.
    #[must_use]
    pub fn play(
        self,
        targets: &[Value],
        variables: &[(&'static str, OsString)],
        order: Order,
    ) -> Seen {
        let run = |program: &OsStr, script: &str, kind: &str| {
            let mut command = client(program);
            command.arg(here(script)).args([kind, &json!(targets).to_string()]);
            if order == Order::Together {
                command.arg("together");
            }
            let output = command.env_clear().envs(variables.iter().cloned()).output().unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{self:?}: {printed}\n{said}");
            Seen::read(&printed)
        };
        match self {
            Self::Mcp => run(python().as_os_str(), "sdks/python.py", "mcp"),
            Self::FastMcp => run(python().as_os_str(), "sdks/python.py", "fastmcp"),
            Self::TypeScript1 => run("node".as_ref(), "sdks/typescript.cjs", "1"),
            Self::TypeScript2 => run("node".as_ref(), "sdks/typescript.cjs", "2"),
            Self::AiSdk1 => run("node".as_ref(), "sdks/typescript.cjs", "ai1"),
            Self::AiSdk2 => run("node".as_ref(), "sdks/typescript.cjs", "ai2"),
            Self::Rmcp => rust::play(targets),
        }
    }
}
