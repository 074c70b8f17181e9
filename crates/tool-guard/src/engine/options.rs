//! The command line of `tool-guard mcp`.
pub(crate) use super::{
    choices::{DeriveKeys, Loops, Mode, OnServerExit, Restart, Trust},
    http_options::{HttpOptions, Preflight, StatusRules, duration, endpoint},
};
use super::{
    operation::Operation,
    recording::{Recording, word},
};
pub(crate) use crate::connect::address;
use crate::export::ExportOptions;
use clap::Args;
use serde_json::Value;
use std::{ffi::OsString, path::PathBuf, time::Duration};
use tool_reliability::loopguard::{self, Signals};
use tr_core::internal::millis;

/// Examples and exit codes, for the help.
const EXAMPLES: &str = "\
Examples:
  tool-guard mcp -- npx -y @modelcontextprotocol/server-memory
  tool-guard mcp --mode shadow --log-file guard.log -- npx -y your-mcp-server
  tool-guard mcp --catalog tools.toml -- npx -y your-mcp-server
  tool-guard mcp --listen 127.0.0.1:9000 --upstream https://example.com/mcp

Exit codes:
  0  the client has left
  1  the guard could not start
  2  the command line cannot be used
  126, 127  the server could not be started, or was not found
  128 + n   signal n ended the guard
  another   the server's, if it ended before the client";

/// Runs the MCP server COMMAND behind the guard.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
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

    /// The catalog of the server's tools, as TOML or JSON; it overrides the server's own list. Read
    /// again on SIGHUP
    #[arg(long, value_name = "FILE")]
    pub(crate) catalog: Option<PathBuf>,

    /// How far to trust the server's claims that a tool is harmless, for calls without a key; a catalog
    /// overrides them [default: all for a command, reads for --upstream]
    #[arg(long, value_enum, value_name = "HOW")]
    pub(crate) trust_annotations: Option<Trust>,

    /// A call without an id joins an equal one that has run for this long in its session: some clients give up
    /// without a word and ask again. `off`: no call joins another
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
