//! The command line of `tool-guard mcp`.
pub(crate) use super::http_options::{HttpOptions, Preflight, StatusRules, duration, endpoint};
use super::{
    operation::Operation,
    recording::{Recording, word},
};
pub(crate) use crate::connect::address;
use crate::{export::ExportOptions, wire::lines::Lines};
use clap::{Args, ValueEnum};
use serde_json::Value;
use std::{ffi::OsString, path::PathBuf, time::Duration};
use tool_reliability::{
    Rollout,
    idempotency::DerivedKeys,
    loopguard::{self, Signals},
    rollout,
};
use tr_core::internal::millis;

/// Runs the MCP server COMMAND behind the guard.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// What the guard does with calls
    #[arg(long, value_enum, default_value_t = Mode::Enforce)]
    pub(crate) mode: Mode,

    /// The stack's configuration, as TOML or JSON; options on the command line and variables override it.
    /// Read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) operation: Operation,

    #[command(flatten)]
    pub(crate) overrides: Overrides,

    /// The limit of a call in all, even while it reports progress [default: 10m, or the timeout if that
    /// is longer]
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub(crate) max_timeout: Option<Duration>,

    /// The longest line that is forwarded, in bytes
    #[arg(long, default_value_t = 64 * 1024 * 1024, value_name = "BYTES", value_parser = line_limit)]
    pub(crate) max_line: usize,

    /// The catalogue of the server's tools, as TOML or JSON; it overrides the server's own list. Read
    /// again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub(crate) catalog: Option<PathBuf>,

    /// How far to trust the server's claims that a tool is harmless, for calls without a key; a catalogue
    /// overrides them [default: all for a command, reads for --upstream]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) trust_annotations: Option<Trust>,

    /// A call without an id joins an equal one that has run for this long in its session: some clients give up
    /// without a word and ask again. `off` makes each call
    #[arg(long, default_value = "4s", value_parser = join_after, value_name = "DURATION")]
    pub(crate) join_after: JoinAfter,

    /// What the guard does when the server has ended and all calls in flight are answered
    #[arg(long, value_enum, default_value_t = OnServerExit::Exit, value_name = "WHAT")]
    pub(crate) on_server_exit: OnServerExit,

    /// When a server that ends is started again: clients and servers on standard input and output only
    #[arg(long, value_enum, default_value_t = Restart::Never, value_name = "WHEN", conflicts_with_all = ["listen", "upstream"])]
    pub(crate) restart: Restart,

    /// The MCP server's command; everything after its name belongs to it
    #[arg(trailing_var_arg = true, required_unless_present = "upstream", value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,

    #[command(flatten)]
    pub(crate) http: HttpOptions,

    /// Whether the client runs the tools itself, as the hosts of `tool-guard decide` do.
    #[arg(skip)]
    pub(crate) host_runs: bool,
}

impl Options {
    /// How far the server's claims about its tools are trusted.
    pub(crate) fn trust(&self) -> Trust {
        let is_remote = self.http.upstream.is_some();
        self.trust_annotations.unwrap_or(if is_remote { Trust::Reads } else { Trust::All })
    }

    /// The words that identify the server in the records, unless it has a name.
    pub(crate) fn server_words(&self) -> Vec<OsString> {
        let Some(url) = &self.http.upstream else { return self.command.clone() };
        // A query may hold a key.
        let url = url.to_string();
        vec![url.split('?').next().unwrap_or_default().into()]
    }
}

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
    /// Not at all: tools that the catalogue does not declare are mutating
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
    /// Calls are refused by the limits of the turn that the client names; without one, only calls
    /// that failed twice because of their arguments alone
    Block,
    /// Any third identical call after two failures, and all calls after five failures within 60 s
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

/// The options that override keys of the configuration.
#[derive(Debug, Default, Args)]
pub(crate) struct Overrides {
    /// The limit of a call without an answer or progress, such as 50s or 500ms [default: the client's own, if it is
    /// known, less 2 s, and at most 10m; else 58s]
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub(crate) timeout: Option<Duration>,

    /// Which calls without a key count as repeats of one another [default: off]
    #[arg(long, value_enum, value_name = "FROM")]
    pub(crate) derive_keys: Option<DeriveKeys>,

    /// What happens on loops [default: block, or the configuration's]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) loops: Option<Loops>,

    #[command(flatten)]
    pub(crate) attribution: Attribution,

    #[command(flatten)]
    pub(crate) recording: Recording,

    #[command(flatten)]
    pub(crate) export: ExportOptions,
}

/// Where the models of malformed calls are logged.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Attribution {
    /// Append a line of JSON to PATH for each malformed call that fails, with the model that made it
    /// [without PATH: ~/.openclaw/tool-guard.log]
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true, default_missing_value = loopguard::LOG_PATH)]
    pub(crate) attribution_log: Option<PathBuf>,
}

impl Overrides {
    /// The keys that these options set, their values, and the options.
    pub(crate) fn settings(&self) -> Vec<(&'static str, Value, &'static str)> {
        let timeout = self.timeout.map(|timeout| millis(timeout).max(1).into());
        let log =
            self.attribution.attribution_log.as_ref().map(|path| path.to_string_lossy().into());
        let own = [
            ("attempt_timeout_ms", timeout, "--timeout"),
            ("idempotency.derived_keys", self.derive_keys.as_ref().map(word), "--derive-keys"),
            ("loops.mode", self.loops.as_ref().map(word), "--loops"),
            ("loops.log_path", log, "--attribution-log"),
        ];
        let all = own.into_iter().chain(self.recording.settings()).chain(self.export.settings());
        all.filter_map(|(key, value, option)| Some((key, value?, option))).collect()
    }
}

/// The signals besides failures: they add notes, and refuse nothing. On in the modes `note` and `block`,
/// unless the configuration turns them off.
pub(crate) fn signals(
    mode: loopguard::Mode,
    configured: Option<Option<Signals>>,
) -> Option<Signals> {
    let by_mode = matches!(mode, loopguard::Mode::Note | loopguard::Mode::Block);
    let signals = configured.unwrap_or_else(|| by_mode.then(Signals::default));
    signals.map(|signals| signals.refuse(false))
}

/// How long an equal call has run that one without an id joins; `None` if it never does.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JoinAfter(pub(crate) Option<Duration>);

fn join_after(text: &str) -> Result<JoinAfter, String> {
    if text == "off" { Ok(JoinAfter(None)) } else { duration(text).map(Some).map(JoinAfter) }
}

pub(crate) fn line_limit(text: &str) -> Result<usize, String> {
    let bytes: usize = text.parse().map_err(|_| "give a number of bytes")?;
    if bytes < 1024 { Err("must be at least 1024".into()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::SocketAddr;

    #[test]
    fn addresses() {
        assert_eq!(address("localhost:9470"), Ok(SocketAddr::from(([127, 0, 0, 1], 9470))));
        assert_eq!(address("[::1]:0").map(|address| address.port()), Ok(0));
        for bad in ["", "9470", "127.0.0.1", "localhost", "example.com:80", "127.0.0.1:70000"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}
