//! How many bytes may wait, and how long a call may take, by its client: a client that gives up first leaves its user
//! without the guard's answer.
use std::time::Duration;

/// How many bytes may wait for one side before the other is no longer read.
pub(crate) const MAX_WAITING_BYTES: usize = 4 * 1024 * 1024;
/// How many bytes are read from one side, or collected for it, before the others have their turn.
pub(crate) const BYTES_AT_ONCE: usize = 64 * 1024;

/// How long a server may take to end after its input has.
pub(crate) const INPUT_GRACE: Duration = Duration::from_secs(5);

/// The limit of a call without an answer or progress, for a client of which none is known: some give up after 60 s.
const IDLE: Duration = Duration::from_secs(58);
/// The limit of a call in all.
const HARD: Duration = Duration::from_secs(600);
/// How long before the client's own limit the guard answers.
const BEFORE: Duration = Duration::from_secs(2);
/// The same limits of a call that its host runs: a person may have to permit it, or it builds something.
const HOST_IDLE: Duration = Duration::from_secs(3600);
const HOST_HARD: Duration = Duration::from_secs(24 * 3600);
/// The limit of a call that is observed: the guard waits for its answer, and ends nothing.
pub(crate) const OBSERVED: Duration = Duration::from_secs(24 * 3600);

/// How long a client waits for a tool by default, where that is longer than a minute, since a version, the newest
/// first; each was run (docs/clients.md).
const CLIENTS: [Client; 4] = [
    // It waited for longer than any run took.
    Client { name: "claude-code", since: (0, 0), limit: Duration::from_secs(24 * 3600) },
    Client { name: "codex-mcp-client", since: (0, 150), limit: Duration::from_secs(300) },
    Client { name: "codex-mcp-client", since: (0, 113), limit: Duration::from_secs(120) },
    Client { name: "gemini-cli-mcp-client", since: (0, 0), limit: Duration::from_secs(600) },
];

struct Client {
    name: &'static str,
    /// The major and minor number.
    since: (u64, u64),
    limit: Duration,
}

impl Client {
    /// Whether the client that calls itself `name/version` is it.
    fn is(&self, client: &str) -> bool {
        let (name, version) = client.split_once('/').unwrap_or((client, "0"));
        let mut numbers = version.split('.').map(|number| number.parse().unwrap_or_default());
        let mut number = || numbers.next().unwrap_or_default();
        name == self.name && (number(), number()) >= self.since
    }
}

/// The limits of an attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Without an answer or progress.
    pub(crate) idle: Duration,
    /// In all.
    pub(crate) hard: Duration,
    /// Whether the client's own limit takes the place of `idle`, which is not set.
    is_by_client: bool,
}

impl Limits {
    /// The limits that are set, or the defaults.
    pub(crate) fn new(idle: Option<Duration>, hard: Option<Duration>) -> Self {
        let is_by_client = idle.is_none();
        let idle = idle.unwrap_or(IDLE);
        Self { idle, hard: hard.unwrap_or(HARD.max(idle)), is_by_client }
    }

    /// Those of calls that their host runs.
    pub(crate) fn of_host(idle: Option<Duration>, hard: Option<Duration>) -> Self {
        let idle = idle.unwrap_or(HOST_IDLE);
        Self::new(Some(idle), Some(hard.unwrap_or(HOST_HARD.max(idle))))
    }

    /// The limits for the client that calls itself `name/version`.
    pub(crate) fn of_client(self, client: &str) -> Self {
        match CLIENTS.iter().find(|known| self.is_by_client && known.is(client)) {
            Some(known) => Self { idle: (known.limit - BEFORE).min(self.hard), ..self },
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(limits: Limits) -> (u64, u64) {
        (limits.idle.as_secs(), limits.hard.as_secs())
    }

    #[test]
    fn the_limit_is_the_clients_less_two_seconds() {
        let of = |name: &str| seconds(Limits::new(None, None).of_client(name));
        assert_eq!(of("claude-code/2.1.330"), (600, 600));
        assert_eq!(of("gemini-cli-mcp-client/0.61.0"), (598, 600));
        assert_eq!(of("codex-mcp-client/0.169.0"), (298, 600));
        assert_eq!(of("codex-mcp-client/0.149.9"), (118, 600));
        assert_eq!(of("codex-mcp-client/0.113.0"), (118, 600));
        assert_eq!(of("codex-mcp-client/0.104.0"), (58, 600));
        assert_eq!(of("codex-mcp-client"), (58, 600));
        assert_eq!(of("another"), (58, 600));
    }

    #[test]
    fn a_limit_that_is_set_holds_for_every_client() {
        let s = Duration::from_secs;
        let set = Limits::new(Some(s(5)), None).of_client("claude-code");
        assert_eq!(seconds(set), (5, 600));
        let long = Limits::new(Some(s(900)), None);
        assert_eq!(seconds(long), (900, 900));
        let hard = Limits::new(None, Some(s(100))).of_client("gemini-cli-mcp-client");
        assert_eq!(seconds(hard), (100, 100));
        let host = Limits::of_host(None, None).of_client("claude-code");
        assert_eq!(seconds(host), (3600, 24 * 3600));
    }
}
