//! The model of a malformed call, for the attribution log: read from what the client says about itself,
//! its turn and the call. It changes no byte that passes.
use crate::wire::params::Said;
use anyhow::Context as _;
use std::{path::Path, sync::Mutex, time::Duration};
use tool_reliability::{
    loopguard::{Attribution, AttributionLog, FileLog},
    telemetry::redact::{Redact as _, Redactor},
};
use tr_core::{CallParts, internal::lock};

/// How long the guard waits for the log at its end.
const PATIENCE: Duration = Duration::from_secs(1);
/// The kept length of a name or id, in characters.
const MOST: usize = 256;

/// The file of malformed calls, and the client that sends them.
#[derive(Debug)]
pub(crate) struct ClientLog {
    file: FileLog,
    client: Mutex<Option<String>>,
}

impl ClientLog {
    /// Opens the file.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let redactor = Redactor::default();
        let file = FileLog::new(path).cleaning(move |text| redactor.redact(text).into());
        file.open().with_context(|| format!("cannot log to {}", file.path().display()))?;
        Ok(Self { file, client: Mutex::default() })
    }

    /// Adds to the call what its client says about its model.
    pub(crate) fn attribute(&self, parts: &mut CallParts, said: &Said) {
        parts.model = said.model.as_deref().map(|model| shortened(model).into());
    }

    /// Waits until everything is written, for a limited time.
    pub(crate) fn finish(&self) {
        self.file.flush(PATIENCE);
    }

    /// The client has said its name.
    pub(crate) fn know(&self, client: &str) {
        *lock(&self.client) = Some(shortened(client));
    }
}

impl AttributionLog for ClientLog {
    fn write(&self, entry: &Attribution<'_>) {
        let mut entry = entry.to_map();
        let client = lock(&self.client).clone();
        entry.insert("client".into(), client.into());
        self.file.append(entry);
    }
}

fn shortened(text: &str) -> String {
    text.chars().take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{jsonrpc, params};
    use tr_core::Json;

    fn log() -> ClientLog {
        ClientLog { file: FileLog::new("/no/such/log"), client: Mutex::default() }
    }

    #[test]
    fn a_client_is_known_by_its_initialize_or_by_its_calls() {
        let log = log();
        let known = || log.client.lock().unwrap().clone();
        let hear = |line: &str| {
            let jsonrpc::Line::One(message) = jsonrpc::read(line.as_bytes()) else { panic!() };
            params::initializes(&message).iter().for_each(|client| log.know(client));
        };
        let attributed = |client: Option<&str>, model: &str| {
            let mut parts = CallParts::new("read", Json::empty_object());
            client.into_iter().for_each(|client| log.know(client));
            let said = Said { model: Some(model.into()), ..Said::default() };
            log.attribute(&mut parts, &said);
            parts.model
        };
        hear(r#"{"id":1,"method":"ping","params":{"clientInfo":{"name":"other"}}}"#);
        hear(r#"{"id":1,"method":"initialize","params":{"clientInfo":[]}}"#);
        assert_eq!(known(), None);
        hear(
            r#"{"id":1,"method":"initialize","params":{"clientInfo":{"name":"claude-code","version":"2.1"}}}"#,
        );
        assert_eq!(known().as_deref(), Some("claude-code/2.1"));
        assert_eq!(attributed(None, "gpt-5.4").as_deref(), Some("gpt-5.4"));
        assert_eq!(known().as_deref(), Some("claude-code/2.1"));
        assert_eq!(attributed(Some("codex"), &"m".repeat(1000)).unwrap().len(), MOST);
        assert_eq!(known().as_deref(), Some("codex"));
    }
}
