//! Where payments are recorded and where they are made: what outlives every guard.
use crate::process::{Listener, Process, until};
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

pub(crate) const BANK: &str = env!("CARGO_BIN_EXE_kills-bank");

/// A server that is killed often enough would be left alone for half a minute.
const CONFIG: &str = "[breaker]\nmode = \"disabled\"\n";

/// The variable that all processes of a round inherit.
const MARK: &str = "TR_KILLS_MARK";

/// What is in front of the guard and behind it: MCP on standard input and output, or over HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    StdioCommand,
    StdioHttp,
    HttpCommand,
    HttpHttp,
}

impl Way {
    pub(crate) const OVER_HTTP: [Self; 3] = [Self::StdioHttp, Self::HttpCommand, Self::HttpHttp];

    pub(crate) const fn is_listening(self) -> bool {
        matches!(self, Self::HttpCommand | Self::HttpHttp)
    }

    /// Whether the server is reached over HTTP, and so is none of the guard's own processes.
    pub(crate) const fn has_address(self) -> bool {
        matches!(self, Self::StdioHttp | Self::HttpHttp)
    }
}

/// Records and a ledger.
#[derive(Debug)]
pub(crate) struct Shop {
    folder: TempDir,
    /// Of this shop alone: a process that is killed and started again finds its port free.
    host: String,
    records: String,
    is_sqlite: bool,
}

impl Shop {
    pub(crate) fn with_sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let records = folder.path().join("records/calls.db").display().to_string();
        Self::new(folder, records, true)
    }

    pub(crate) fn with_redis(url: &str) -> Self {
        Self::new(tempfile::tempdir().unwrap(), url.to_owned(), false)
    }

    fn new(folder: TempDir, records: String, is_sqlite: bool) -> Self {
        let shop = Self { folder, host: host(), records, is_sqlite };
        shop.write(CONFIG);
        shop
    }

    /// How long a killed guard's calls stay claimed where its end is not noticed.
    pub(crate) fn leasing(self, lease: Duration) -> Self {
        let millis = lease.as_millis();
        self.write(&format!("{CONFIG}[idempotency]\ninflight_ttl_ms = {millis}\n"));
        self
    }

    fn write(&self, config: &str) {
        fs::write(self.path("config.toml"), config).unwrap();
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
    pub(crate) fn open(&self, way: Way, mark: &str, start: usize, by_client: bool) -> Process {
        let mut command = if by_client {
            let mut client = Command::new(BANK);
            client.arg("client").arg(guard());
            client
        } else {
            Command::new(guard())
        };
        self.configure(&mut command, way, mark, start, None);
        let client = json!({ "name": "kills", "version": "1" });
        let params =
            json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        let mut process = Process::start(command);
        process.send(&[
            json!({ "jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": params }),
        ]);
        process
    }

    /// Starts a guard that listens at this address.
    pub(crate) fn listen(&self, way: Way, mark: &str, start: usize, address: &str) -> Listener {
        let mut command = Command::new(guard());
        self.configure(&mut command, way, mark, start, Some(address));
        Listener::start(command, address)
    }

    /// Starts the bank over HTTP, and waits until it listens.
    pub(crate) fn bank(&self, mark: &str) -> Listener {
        let mut command = Command::new(BANK);
        command.arg("serve").args([self.path("ledger"), self.path("pid-bank")]);
        command.arg(self.address(0)).env(MARK, mark);
        let mut bank = Listener::start(command, &self.address(0));
        bank.listen();
        bank
    }

    /// The bank's address, or that of a guard, from 1.
    pub(crate) fn address(&self, number: usize) -> String {
        format!("{}{number}", self.host)
    }

    fn configure(&self, to: &mut Command, way: Way, mark: &str, start: usize, at: Option<&str>) {
        to.args(["mcp", "--log", "off", "--loops", "off", "--records", &self.records])
            .arg("--config")
            .arg(self.path("config.toml"))
            .args(["--name", &self.folder.path().display().to_string()])
            .env("CLAUDE_CODE_SESSION_ID", "c0ffee00-5e55-4000-8000-000000000000")
            .env(MARK, mark);
        if let Some(address) = at {
            to.args(["--listen", address]);
        }
        if way.has_address() {
            to.args(["--upstream", &format!("http://{}/mcp", self.address(0))]);
        } else {
            to.args(["--", BANK, "serve"]).args([self.path("ledger"), self.pid_file(mark, start)]);
        }
    }

    fn pid_file(&self, mark: &str, start: usize) -> PathBuf {
        self.path(&format!("pid-{mark}{start}"))
    }

    /// The server of the guard that was started then, once it says so.
    pub(crate) fn server(&self, mark: &str, start: usize) -> u32 {
        until("the server says its process ID", || self.last_server(mark, start))
    }

    /// The newest server of that guard that has said so and lives.
    pub(crate) fn last_server(&self, mark: &str, start: usize) -> Option<u32> {
        let text = fs::read_to_string(self.pid_file(mark, start)).ok()?;
        let pid = text.strip_suffix('\n')?.lines().last()?.parse().ok()?;
        bears(pid, mark).then_some(pid)
    }

    /// How often a payment was made.
    pub(crate) fn paid(&self, order: &str) -> usize {
        self.lines(order)
    }

    /// Whether the bank has begun to answer a payment.
    pub(crate) fn answers(&self, order: &str) -> bool {
        self.lines(&format!("answers {order}")) > 0
    }

    /// Whether a payment is made, and the bank does not answer it yet.
    pub(crate) fn is_between(&self, order: &str) -> bool {
        self.paid(order) > 0 && !self.answers(order)
    }

    fn lines(&self, wanted: &str) -> usize {
        let ledger = fs::read_to_string(self.path("ledger")).unwrap_or_default();
        ledger.lines().filter(|line| *line == wanted).count()
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

/// An address on this machine that no other shop has, up to the last digit of its port.
fn host() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let (id, next) = (std::process::id(), NEXT.fetch_add(1, Relaxed));
    let (high, low) = (id / 250 % 250 + 1, id % 250);
    format!("127.{high}.{low}.{}:{}", next % 250 + 1, 2_000 + next / 250)
}

/// The processes that bear a mark. One that has ended and is not yet waited for bears none.
fn alive(mark: &str) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse::<u32>().ok()
    });
    all.filter(|pid| bears(*pid, mark)).collect()
}

fn bears(pid: u32, mark: &str) -> bool {
    let wanted = format!("{MARK}={mark}\0").into_bytes();
    let vars = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    vars.windows(wanted.len()).any(|part| part == wanted)
}

/// What `cargo xtask test` and `cargo lab soak` tell.
pub(crate) fn guard() -> PathBuf {
    let guard = env::var_os("TR_TOOL_GUARD");
    guard.expect("TR_TOOL_GUARD names the guard's binary: run cargo xtask test").into()
}
