//! The choices that options name with one word.
use crate::wire::lines::Lines;
use clap::ValueEnum;
use tool_reliability::{Rollout, idempotency::DerivedKeys, loopguard, rollout};

/// What the guard does with calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Forwards every byte and reads none
    Off,
    /// Forwards every byte, and reports each call with events, metrics and spans
    Observe,
    /// Forwards every byte, and reports each call and what it would have done
    Shadow,
    /// Runs calls through the stack
    Enforce,
}

impl Mode {
    /// The rollout in place of the configured one: nothing that the guard does not change can be enforced.
    pub(crate) fn rollout(self) -> Option<Rollout> {
        match self {
            Self::Observe => Some(Rollout::new(rollout::Mode::Observe)),
            Self::Shadow => Some(Rollout::new(rollout::Mode::Shadow)),
            Self::Off | Self::Enforce => None,
        }
    }

    /// Lines over the limit come in parts where every byte passes.
    pub(crate) fn lines(self, limit: usize) -> Lines {
        match self {
            Self::Enforce => Lines::new(limit),
            Self::Off | Self::Observe | Self::Shadow => Lines::in_parts(limit),
        }
    }
}

/// When a server is started again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Restart {
    /// Never: its state would be lost
    #[default]
    Never,
    /// After a signal, or an exit code other than 0
    Crash,
}

/// Which calls without a key are repeats. The library has two more modes, by a call's step and for callers
/// that disconnect; calls of MCP name no step, and on a pipe the guard ends with its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DeriveKeys {
    /// None: two calls are two
    Off,
    /// All calls of the connection with the same tool and arguments: they run once
    Session,
}

impl From<DeriveKeys> for DerivedKeys {
    fn from(keys: DeriveKeys) -> Self {
        match keys {
            DeriveKeys::Off => Self::Off,
            DeriveKeys::Session => Self::Session,
        }
    }
}

/// How far to trust a server's claims that a tool is harmless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Trust {
    /// Fully: a read-only tool is read-only, an idempotent one idempotent
    #[default]
    All,
    /// Only that a tool changes nothing: an idempotent one counts as mutating
    Reads,
    /// In part: a read-only tool counts as idempotent
    Idempotent,
    /// Not at all: tools that the catalog does not declare are mutating
    None,
}

/// What the guard does after the server has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnServerExit {
    /// Ends with the server's exit code, so that a client that reconnects starts both again
    Exit,
    /// Stays, and answers each call that the server has ended
    Stay,
}

/// What happens on loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Loops {
    /// Nothing is counted
    Off,
    /// The guard adds notes for the model, and refuses nothing
    Note,
    /// The guard refuses a call that failed twice alike, and all calls of a turn after five failures; if the
    /// client names no turn (most do not), only a call that failed twice because of its arguments alone
    Block,
    /// The guard refuses any third identical call after two failures, and all calls after five failures within 60 s
    Strict,
}

impl From<Loops> for loopguard::Mode {
    fn from(loops: Loops) -> Self {
        match loops {
            Loops::Off => Self::Off,
            Loops::Note => Self::Note,
            Loops::Block => Self::Block,
            Loops::Strict => Self::Strict,
        }
    }
}
