//! The options of `tool-guard mcp` for MCP over HTTP, on the client's or the server's side, and their parsers.
use crate::connect::{Reach, address};
use clap::{Args, ValueEnum};
use hyper::Uri;
use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf, time::Duration};
use tool_reliability::config::StatusMeaning;

/// The options of MCP over HTTP.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "MCP over HTTP")]
pub(crate) struct HttpOptions {
    /// The MCP server's endpoint, in place of COMMAND: a URL of Streamable HTTP
    #[arg(long, value_name = "URL", conflicts_with = "command", value_parser = endpoint)]
    pub(crate) upstream: Option<Uri>,

    /// Serve clients over Streamable HTTP at this address, in place of standard input and output. The path
    /// is that of the upstream's URL, /mcp for a COMMAND
    #[arg(long, value_parser = address, value_name = "ADDRESS")]
    pub(crate) listen: Option<SocketAddr>,

    /// The file with the token that clients must send as x-tool-guard-token
    #[arg(long, value_name = "FILE", requires = "listen")]
    pub(crate) token_file: Option<PathBuf>,

    /// A proxy in front of the listener speaks TLS: allows an address that other machines can reach
    #[arg(long, requires_all = ["listen", "token_file"])]
    pub(crate) behind_tls: bool,

    /// Another name of this machine that requests may have in `host`
    #[arg(long, value_name = "NAME", requires = "listen")]
    pub(crate) allow_host: Vec<String>,

    /// An origin, with its scheme, whose web pages may send requests
    #[arg(long, value_name = "ORIGIN", requires = "listen")]
    pub(crate) allow_origin: Vec<String>,

    /// The sessions that clients of a COMMAND may have at once: each is a process
    #[arg(long, value_name = "NUMBER", requires = "listen", conflicts_with = "upstream", default_value_t = 256, value_parser = sessions)]
    pub(crate) max_sessions: usize,

    /// How long a session may go without a request
    #[arg(long, value_name = "DURATION", requires = "listen", conflicts_with = "upstream", default_value = "30m", value_parser = session_idle)]
    pub(crate) session_idle: Duration,

    /// Headers for the upstream, as `Name: value` lines in a file that only you can read
    #[arg(long, value_name = "FILE", requires = "upstream", conflicts_with = "listen")]
    pub(crate) header_file: Option<PathBuf>,

    /// Whether a ping of the upstream must succeed before a mutating call, if no request did within the last 5 s
    #[arg(long, value_enum, default_value_t = Preflight::On, value_name = "WHETHER", requires = "upstream")]
    pub(crate) preflight: Preflight,

    /// Whether a call may have run after this HTTP status of the upstream, such as 503=not_run: by default, a
    /// mutating call may have run after most errors
    #[arg(long, value_name = "CODE=WHAT", requires = "upstream", value_parser = status)]
    pub(crate) status: Vec<(u16, StatusMeaning)>,

    #[command(flatten)]
    pub(crate) reach: Reach,
}

/// What an operator knows about the server's statuses, where the guard's own rules are not to be used.
pub(crate) type StatusRules = BTreeMap<u16, StatusMeaning>;

/// Whether a ping goes before mutating calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preflight {
    /// If no request succeeded within the last 5 s
    #[default]
    On,
    /// Never
    Off,
}

/// Reads the address of an endpoint.
pub(crate) fn endpoint(text: &str) -> Result<Uri, String> {
    const FORM: &str = "give a URL such as https://mcp.example.com/mcp";
    let url: Uri = text.parse().map_err(|_| FORM)?;
    let is_http = matches!(url.scheme_str(), Some("http" | "https"));
    let user = url.authority().is_some_and(|it| it.as_str().contains('@'));
    if user {
        return Err(
            "write no user or password into the URL: give headers with --header-file".into()
        );
    }
    if is_http && url.host().is_some_and(|host| !host.is_empty()) {
        Ok(url)
    } else {
        Err(FORM.into())
    }
}

fn sessions(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=10_000).contains(number));
    number.ok_or_else(|| "give a number from 1 to 10000".into())
}

fn session_idle(text: &str) -> Result<Duration, String> {
    let idle = duration(text)?;
    // No client's session ends sooner for another's.
    if idle < Duration::from_secs(60) { Err("give at least 1m".into()) } else { Ok(idle) }
}

/// Reads `503=not_run`.
fn status(text: &str) -> Result<(u16, StatusMeaning), String> {
    const FORM: &str = "give a status from 400 to 599 and not_run or unknown, such as 503=not_run";
    let (code, rule) = text.split_once('=').ok_or(FORM)?;
    let rule = match rule {
        "not_run" => StatusMeaning::NotRun,
        "unknown" => StatusMeaning::Unknown,
        _ => return Err(FORM.into()),
    };
    let code = code.parse().ok().filter(|code| (400..600).contains(code)).ok_or(FORM)?;
    Ok((code, rule))
}

/// Reads `50s`, `500ms`, `10m`, `1.5h`.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
