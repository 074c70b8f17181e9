//! The command line of `tool-guard mcp`.
use super::recording::RecordOptions;
use clap::{Args, ValueEnum};
use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};
use tool_reliability::{
    idempotency::DerivedKeys,
    loopguard::{self, Signals},
};

/// Guards the tool calls of an MCP client to the MCP server COMMAND.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// What the guard does: nothing, only say what it would do, or act
    #[arg(long, value_enum, default_value_t = Mode::Enforce)]
    pub(crate) mode: Mode,

    /// How the stack is set up, as TOML or JSON; options given here and variables beat it. Read
    /// again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Where GET and POST /debug/tool-reliability are answered, such as 127.0.0.1:9470
    #[arg(long, value_parser = address, value_name = "ADDRESS")]
    pub(crate) admin: Option<SocketAddr>,

    /// Holds the token that admin requests must carry; without it only this machine may ask
    #[arg(long, value_name = "FILE", requires = "admin")]
    pub(crate) admin_token_file: Option<PathBuf>,

    /// How long a call may take without an answer or progress, such as 50s or 500ms [default: 50s]
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub(crate) timeout: Option<Duration>,

    /// How long a call may take in all, however much progress it reports [default: 10m, or the
    /// timeout where that is longer]
    #[arg(long, value_parser = duration, value_name = "DURATION")]
    pub(crate) max_timeout: Option<Duration>,

    /// The longest line that is passed on, in bytes
    #[arg(long, default_value_t = 64 * 1024 * 1024, value_name = "BYTES", value_parser = line_limit)]
    pub(crate) max_line: usize,

    /// What is known of the server's tools, as TOML or JSON; it beats what the server says itself.
    /// Read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub(crate) catalog: Option<PathBuf>,

    /// How far the server is believed that a tool is harmless; a catalogue needs no such belief
    #[arg(long, value_enum, default_value_t = Trust::All, value_name = "HOW")]
    pub(crate) trust_annotations: Trust,

    /// Which calls without a key are taken for repeats of one another [default: off]
    #[arg(long, value_enum, value_name = "FROM")]
    pub(crate) derive_keys: Option<DeriveKeys>,

    /// What becomes of loops [default: block, or the configuration's]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) loops: Option<Loops>,

    /// Adds a line of JSON to PATH for each malformed call that fails, with the model that made it
    /// [without PATH: ~/.openclaw/tool-guard.log]
    #[arg(long, value_name = "PATH", num_args = 0..=1, require_equals = true, default_missing_value = loopguard::LOG_PATH)]
    pub(crate) attribution_log: Option<PathBuf>,

    /// What the guard does when the server has ended and all calls in flight are answered
    #[arg(long, value_enum, default_value_t = OnServerExit::Exit, value_name = "WHAT")]
    pub(crate) on_server_exit: OnServerExit,

    #[command(flatten)]
    pub(crate) recording: RecordOptions,

    /// Which events are logged on standard error, as JSON lines or for people; all but off end with a
    /// summary
    #[arg(long, value_enum, default_value_t = Log::Warn)]
    pub(crate) log: Log,

    /// Where they are written in place of standard error, to which the server can write, too
    #[arg(long, value_name = "FILE")]
    pub(crate) log_file: Option<PathBuf>,

    /// The MCP server and its arguments; what follows its name belongs to it
    #[arg(trailing_var_arg = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// What the guard does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Passes every byte on and looks at none
    Off,
    /// Passes every byte on and logs what it would have done
    Shadow,
    /// Guards
    Enforce,
}

/// Which calls without a key are repeats. The library knows two more ways, by a call's step and for
/// callers that vanish; calls of MCP name no step, and on a pipe the guard ends with its caller.
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

/// How far a server is believed that a tool is harmless.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Trust {
    /// What it says to only read does, and what it says can be repeated can
    #[default]
    All,
    /// What it says to only read counts as what can be repeated
    Idempotent,
    /// Not at all: what the catalogue does not declare counts as mutating
    None,
}

/// What a record keeps of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bodies {
    /// All of it: a repeat gets the answer again
    Full,
    /// Nothing: a repeat is told that the call ran, and when
    Digest,
}

/// What the guard does after the server has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnServerExit {
    /// Ends with the server's exit code, so that a client that reconnects starts both again
    Exit,
    /// Stays, and answers each call that the server has ended
    Stay,
}

/// What becomes of loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Loops {
    /// Nothing is counted
    Off,
    /// The model is told, and nothing is refused
    Note,
    /// Calls are refused by the limits of the turn that the client names; without one, only calls
    /// that are identical to failed ones
    Block,
    /// Any third identical call after two failures, and all calls after five failures within 60 s
    Strict,
    /// An earlier name of block
    #[value(hide = true)]
    Signals,
    /// An earlier name of strict
    #[value(hide = true)]
    Failures,
}

impl Loops {
    /// What to do, and what to write in place of a name that will go.
    pub(crate) const fn mode(self) -> (loopguard::Mode, Option<&'static str>) {
        match self {
            Self::Off => (loopguard::Mode::Off, None),
            Self::Note => (loopguard::Mode::Note, None),
            Self::Block => (loopguard::Mode::Block, None),
            Self::Strict => (loopguard::Mode::Strict, None),
            Self::Signals => (
                loopguard::Mode::Block,
                Some("--loops signals is deprecated: write --loops block, or leave it out"),
            ),
            Self::Failures => (
                loopguard::Mode::Strict,
                Some("--loops failures is deprecated: write --loops strict"),
            ),
        }
    }
}

/// What is watched for beside failures: it is remarked, and refuses nothing. In the modes `note` and
/// `block`, unless the configuration says otherwise.
pub(crate) fn signals(mode: loopguard::Mode, configured: Option<bool>) -> Option<Signals> {
    let by_mode = matches!(mode, loopguard::Mode::Note | loopguard::Mode::Block);
    configured.unwrap_or(by_mode).then(|| Signals::default().refuse(false))
}

/// Which events are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Log {
    /// None
    Off,
    /// Failures, refusals, retries, breakers that change
    Warn,
    /// Each call too
    Info,
    /// What the guard did, as one line each for people
    Human,
}

/// Reads `50s`, `500ms`, `10m`, `1.5h`.
fn duration(text: &str) -> Result<Duration, String> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_at);
    let scale = match unit {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        _ => return Err("give a number and ms, s, m or h, such as 50s".into()),
    };
    let number: f64 = number.parse().map_err(|_| "give a number before the unit, such as 50s")?;
    let duration = Duration::try_from_secs_f64(number * scale).ok();
    let day = Duration::from_secs(24 * 3600);
    duration
        .filter(|duration| !duration.is_zero() && *duration <= day)
        .ok_or_else(|| "must be more than 0 and at most 24h".into())
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let here = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let address = here.as_deref().unwrap_or(text).parse().ok();
    address.ok_or_else(|| "give an IP address and a port, such as 127.0.0.1:9470".into())
}

fn line_limit(text: &str) -> Result<usize, String> {
    let bytes: usize = text.parse().map_err(|_| "give a number of bytes")?;
    if bytes < 1024 { Err("must be at least 1024".into()) } else { Ok(bytes) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        assert_eq!(address("localhost:9470"), Ok(SocketAddr::from(([127, 0, 0, 1], 9470))));
        assert_eq!(address("[::1]:0").map(|address| address.port()), Ok(0));
        for bad in ["", "9470", "127.0.0.1", "localhost", "example.com:80", "127.0.0.1:70000"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations() {
        assert_eq!(duration("50s"), Ok(Duration::from_secs(50)));
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        for bad in ["", "50", "s", "-1s", "0s", "infs", "1e300h", "NaNs", "5 weeks"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }
}
