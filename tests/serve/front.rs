//! A front as its user starts it, and the HTTP tool behind it.
use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, Method, StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse as _, Response},
    routing::any,
};
use serde_json::{Value, json};
use std::{
    env,
    fs::{self, File},
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;
use tokio::net::TcpListener;

/// How long anything may take before a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What the tool has seen: each request's method, headers and params.
pub(crate) type Seen = Arc<Mutex<Vec<(Method, HeaderMap, Value)>>>;

/// A tool that does what its params say: `status`, `sleepMs`, `answer`, `lines`.
pub(crate) struct HttpTool {
    pub(crate) at: String,
    pub(crate) seen: Seen,
}

impl HttpTool {
    pub(crate) fn start() -> Self {
        let seen = Seen::default();
        let (known, (send, receive)) = (seen.clone(), std::sync::mpsc::channel());
        thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                send.send(listener.local_addr().unwrap()).unwrap();
                let app = Router::new().route("/{*path}", any(answer)).with_state(known);
                axum::serve(listener, app).await.unwrap();
            });
        });
        let at = format!("http://{}", receive.recv_timeout(PATIENCE).unwrap());
        Self { at, seen }
    }

    pub(crate) fn count(&self) -> usize {
        self.seen.lock().unwrap().len()
    }
}

async fn answer(
    State(seen): State<Seen>,
    method: Method,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let params: Value = serde_json::from_slice(&body).unwrap();
    let before = {
        let mut seen = seen.lock().unwrap();
        let before = seen.iter().filter(|(_, _, it)| *it == params).count();
        seen.push((method, headers, params.clone()));
        before
    };
    let takes = Duration::from_millis(params["sleepMs"].as_u64().unwrap_or(0));
    // A tool takes its time; the test does not wait for it.
    let _ = tokio::time::timeout(takes, std::future::pending::<()>()).await;
    // One status after the other, the last again and again.
    let statuses = params["statuses"].as_array().cloned().unwrap_or_default();
    let status = statuses.get(before).or(statuses.last()).and_then(Value::as_u64).unwrap_or(200);
    let status = StatusCode::from_u16(status as u16).unwrap();
    if let Some(lines) = params["lines"].as_array() {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        return ([(CONTENT_TYPE, "application/x-ndjson")], Body::from(text)).into_response();
    }
    let answer = params.get("answer").cloned().unwrap_or_else(|| json!({"paid": true}));
    (status, [(CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
}

/// A running `tool-guard serve`.
pub(crate) struct Front {
    pub(crate) child: Child,
    pub(crate) at: String,
}

/// A folder with a configuration.
pub(crate) struct Shop {
    pub(crate) folder: TempDir,
}

impl Shop {
    pub(crate) fn new(config: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("tools.toml"), config).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new(guard());
        command.arg("serve").arg("--config").arg(self.path("tools.toml"));
        if !options.contains(&"--records") {
            command.arg("--records").arg(self.path("records.db"));
        }
        command.args(options);
        command.env("SHOP_TOKEN", "s3cret-of-the-shop");
        command
    }

    /// Starts a front on a free port, and waits until it listens.
    pub(crate) fn open(&self, options: &[&str]) -> Front {
        let log = self.path("log");
        let mut command = self.command(options);
        if !options.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        let mut child = command.stderr(File::create(&log).unwrap()).spawn().unwrap();
        let mut address = None;
        until(|| {
            let text = fs::read_to_string(&log).unwrap();
            let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
            let mut events = events.filter(|event| event["event"] == "serve_listening");
            address = events.next().map(|event| event["address"].clone());
            let end = child.try_wait().unwrap();
            assert!(end.is_none(), "{end:?}\n{text}");
            address.is_some()
        });
        let at = format!("http://{}", address.unwrap().as_str().unwrap());
        Front { child, at }
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap()
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Front {
    /// Sends with curl: the status, and the body.
    pub(crate) fn curl(&self, path: &str, options: &[&str]) -> (u16, String) {
        let url = format!("{}{path}", self.at);
        let all = ["-s", "-m", "60", "-w", "\n%{http_code}", &url];
        let output = Command::new("curl").args(all).args(options).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let (body, status) = text.rsplit_once('\n').unwrap();
        (status.parse().unwrap(), body.to_owned())
    }

    pub(crate) fn call(&self, request: &Value) -> Value {
        let json = ["-H", "content-type: application/json", "-d", &request.to_string()];
        serde_json::from_str(&self.curl("/call", &json).1).unwrap()
    }

    /// The same by a client of `examples/serve`.
    pub(crate) fn by(&self, client: &str, tool: &str, params: &Value, key: &str) -> Value {
        let program = if client.ends_with(".py") { "python3" } else { "node" };
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/serve").join(client);
        let file = file.canonicalize().unwrap();
        let mut command = Command::new(program);
        command.arg(file).args([&*self.at, tool, &params.to_string(), key]);
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{client}: {error}\n{said}"))
    }
}

/// Waits for a condition, and looks again every few milliseconds.
#[expect(clippy::disallowed_methods, reason = "real processes take real time")]
pub(crate) fn until(mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < PATIENCE, "it did not come to hold");
        thread::park_timeout(Duration::from_millis(5));
    }
}

/// The lines that a command prints for those that it is given.
pub(crate) fn lines(mut command: Command, given: &[Value]) -> Vec<Value> {
    use std::io::Write as _;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let text: String = given.iter().map(|line| format!("{line}\n")).collect();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let lines = output.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    assert!(child.wait().unwrap().success());
    lines
}

/// What `cargo xtask test` tells, or the guard of the same build.
fn guard() -> PathBuf {
    let beside = || {
        let tests = env::current_exe().unwrap();
        tests.parent().and_then(Path::parent).unwrap().join("tool-guard")
    };
    env::var_os("TR_TOOL_GUARD").map_or_else(beside, PathBuf::from)
}
