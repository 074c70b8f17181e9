//! Which model made which malformed call, as JSON lines.
use crate::turn::Decision;
use serde_json::{Map, Value, json};
use std::{
    env,
    fmt::Debug,
    fs::{self, File, OpenOptions},
    io::{self, Write},
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
};
use tr_core::{LoopRef, classify, rfc3339};

/// Where the tool guard's specification has its log.
pub const LOG_PATH: &str = "~/.openclaw/tool-guard.log";

/// A log of this size is put aside as `….1`, and a new one begun.
const MAX_BYTES: u64 = 10 * 1024 * 1024;

/// Takes down malformed calls. It must not block for long, and cannot fail a call.
pub trait AttributionLog: Debug + Send + Sync {
    /// A malformed call has failed.
    fn write(&self, entry: &Attribution<'_>);
}

/// A malformed call, and whose it was. Of its args only names and types are known.
#[derive(Clone, Copy, Debug)]
pub struct Attribution<'r> {
    call: LoopRef<'r>,
    decision: Decision,
    unix_ms: u64,
}

impl<'r> Attribution<'r> {
    pub(crate) const fn of(call: &LoopRef<'r>, decision: Decision, unix_ms: u64) -> Self {
        Self { call: *call, decision, unix_ms }
    }

    /// The provider whose model made the call: what the call says, else by the prefix of its id
    /// (`anthropic`, `fireworks/openai-compat`, `unknown`).
    #[must_use]
    pub fn provider(&self) -> &'r str {
        let by_id = || classify::provider_of(self.call.tool_call_id.unwrap_or_default());
        self.call.provider.unwrap_or_else(by_id)
    }

    /// The entry as one line of JSON, without its newline.
    #[must_use]
    pub fn to_json(&self) -> String {
        let action = match self.decision {
            Decision::Continue | Decision::Signal(_) => "continue",
            Decision::LoopDetected(_) => "loop-detected",
            Decision::HardCap(_) => "hard-cap",
        };
        json!({
            "timestamp": rfc3339(self.unix_ms).to_string(),
            "model": self.call.model.unwrap_or_else(|| self.provider()),
            "provider": self.provider(),
            "toolName": self.call.tool,
            "toolCallId": self.call.tool_call_id,
            "args": shape(self.call.text),
            "errorType": "non-retryable",
            "action": action,
        })
        .to_string()
    }
}

/// Names and types of the args.
fn shape(text: Option<&str>) -> Value {
    let args: Option<Map<String, Value>> = text.and_then(|text| serde_json::from_str(text).ok());
    let Some(args) = args else { return Value::Null };
    let kind = |value: Value| match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    args.into_iter()
        .map(|(name, value)| (name, Value::from(kind(value))))
        .collect::<Map<_, _>>()
        .into()
}

/// A file of JSON lines. It is opened at the first entry, and put aside at 10 MiB (one old file is
/// kept). What cannot be written is lost; the first time is said on standard error.
#[derive(Debug)]
pub struct FileLog {
    path: PathBuf,
    state: Mutex<FileState>,
}

#[derive(Debug, Default)]
struct FileState {
    file: Option<(File, u64)>,
    complained: bool,
}

impl FileLog {
    /// Writes to `path`; `~/` is the home folder.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path: PathBuf = path.into();
        let home = || env::var_os("HOME").map(PathBuf::from);
        let path = match path.strip_prefix("~") {
            Ok(rest) => home().map_or_else(|| path.clone(), |home| home.join(rest)),
            Err(_) => path,
        };
        Self { path, state: Mutex::default() }
    }

    /// Where it writes.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn try_write(&self, state: &mut FileState, line: &str) -> io::Result<()> {
        let opened = state.file.take().map_or_else(|| self.open(), Ok)?;
        let (mut file, bytes) = if opened.1 < MAX_BYTES {
            opened
        } else {
            let mut old = self.path.clone().into_os_string();
            old.push(".1");
            fs::rename(&self.path, old)?;
            self.open()?
        };
        file.write_all(line.as_bytes())?;
        state.file = Some((file, bytes + line.len() as u64));
        Ok(())
    }

    /// The file and its size.
    fn open(&self) -> io::Result<(File, u64)> {
        if let Some(folder) = self.path.parent() {
            fs::create_dir_all(folder)?;
        }
        let file = OpenOptions::new().create(true).append(true).open(&self.path)?;
        let bytes = file.metadata()?.len();
        Ok((file, bytes))
    }
}

impl AttributionLog for FileLog {
    fn write(&self, entry: &Attribution<'_>) {
        let mut line = entry.to_json();
        line.push('\n');
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = self.try_write(&mut state, &line)
            && !std::mem::replace(&mut state.complained, true)
        {
            eprintln!("tr-loopguard: cannot write {}: {error}", self.path.display());
        }
    }
}
