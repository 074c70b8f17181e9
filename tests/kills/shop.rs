//! Where payments are recorded and where they are made: what outlives every guard.
use crate::process::{Process, until};
use rusqlite::{Connection, OpenFlags};
use serde_json::json;
use std::{
    env, fs,
    path::PathBuf,
    process::Command,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};
use tempfile::TempDir;

/// The variable that all processes of a round inherit.
const MARK: &str = "TR_KILLS_MARK";

/// Records and a ledger.
#[derive(Debug)]
pub(crate) struct Shop {
    folder: TempDir,
    records: String,
    is_sqlite: bool,
    options: Vec<String>,
}

impl Shop {
    pub(crate) fn with_sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let records = folder.path().join("records/calls.db").display().to_string();
        Self { folder, records, is_sqlite: true, options: Vec::new() }
    }

    pub(crate) fn with_redis(url: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, records: url.to_owned(), is_sqlite: false, options: Vec::new() }
    }

    /// How long a killed guard's calls stay claimed where its end is not noticed.
    pub(crate) fn leasing(mut self, lease: Duration) -> Self {
        let config = self.path("config.toml");
        let text = format!("[idempotency]\ninflight_ttl_ms = {}\n", lease.as_millis());
        fs::write(&config, text).unwrap();
        self.options = vec!["--config".to_owned(), config.display().to_string()];
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A name for all processes of a round.
    pub(crate) fn mark() -> String {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        format!("{}-{}-", std::process::id(), NEXT.fetch_add(1, Relaxed))
    }

    /// Starts a guard, the round's first or a later one, in front of a bank, directly or by way of a
    /// client program, and says hello.
    pub(crate) fn open(&self, mark: &str, start: usize, by_client: bool) -> Process {
        let bank = env!("CARGO_BIN_EXE_kills-bank");
        let guard = guard();
        let mut command = if by_client {
            let mut client = Command::new(bank);
            client.arg("client").arg(guard);
            client
        } else {
            Command::new(guard)
        };
        command
            .args(["mcp", "--log", "off", "--loops", "off", "--records", &self.records])
            .args(&self.options)
            .args(["--name", &self.folder.path().display().to_string(), "--", bank, "serve"])
            .args([self.path("ledger"), self.pid_file(mark, start)])
            .env("CLAUDE_CODE_SESSION_ID", "c0ffee00-5e55-4000-8000-000000000000")
            .env(MARK, mark);
        let client = json!({ "name": "kills", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let mut process = Process::start(command);
        process.send(&[
            json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params }),
        ]);
        process
    }

    fn pid_file(&self, mark: &str, start: usize) -> PathBuf {
        self.path(&format!("pid-{mark}{start}"))
    }

    /// The server of the guard that was started then, once it says so.
    pub(crate) fn server(&self, mark: &str, start: usize) -> u32 {
        until("the server says its process ID", || {
            let text = fs::read_to_string(self.pid_file(mark, start)).ok()?;
            text.strip_suffix('\n')?.parse().ok()
        })
    }

    /// How often a payment was made.
    pub(crate) fn paid(&self, order: &str) -> usize {
        let ledger = fs::read_to_string(self.path("ledger")).unwrap_or_default();
        ledger.lines().filter(|line| *line == order).count()
    }

    /// What is wrong with the records' file, if anything is.
    pub(crate) fn check(&self) -> Result<(), String> {
        if !self.is_sqlite {
            return Ok(());
        }
        let open = Connection::open_with_flags(&self.records, OpenFlags::SQLITE_OPEN_READ_WRITE);
        let found = open.and_then(|file| {
            file.busy_timeout(Duration::from_secs(10))?;
            file.query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0))
        });
        match found {
            Ok(text) if text == "ok" => Ok(()),
            // A guard that was killed before it came to its records leaves none.
            Err(_) if !PathBuf::from(&self.records).exists() => Ok(()),
            found => Err(format!("the records' file: {found:?}")),
        }
    }

    /// Waits until no process of the round is left.
    pub(crate) fn until_empty(&self, mark: &str) {
        until("all processes of the round have ended", || alive(mark).is_empty().then_some(()));
    }
}

/// The processes that bear a mark. One that has ended and is not yet waited for bears none.
fn alive(mark: &str) -> Vec<u32> {
    let wanted = format!("{MARK}={mark}\0").into_bytes();
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<u32>().ok()
    });
    all.filter(|pid| {
        let vars = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        vars.windows(wanted.len()).any(|part| part == wanted)
    })
    .collect()
}

/// What `cargo xtask test` and `cargo xtask soak` tell.
fn guard() -> PathBuf {
    let guard = env::var_os("TR_TOOL_GUARD");
    guard.expect("TR_TOOL_GUARD names the guard's binary: run cargo xtask test").into()
}
