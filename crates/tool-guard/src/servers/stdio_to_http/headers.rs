//! Headers of requests to a server at an address: the operator's, and those that repeat parts of a message.
use crate::{
    engine::effects::Effects,
    files::read_secret,
    secrets,
    wire::{
        http_names::{METHOD, NAME, SESSION, VERSION},
        jsonrpc::{self, Line, string},
        mirrored::{self, Mirrored},
        params::Params,
    },
};
use anyhow::Context as _;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use hyper::{
    HeaderMap,
    header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue},
};
use std::{
    fs,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::SystemTime,
};
use tool_reliability::telemetry::TARGET;
use tr_core::internal::lock;

/// The headers of requests in a session.
#[derive(Clone)]
pub(super) struct Headers {
    pub(super) own: Own,
    pub(super) session: Option<HeaderValue>,
    pub(super) version: Option<HeaderValue>,
    /// What is known of the server's tools.
    pub(super) effects: Arc<Mutex<Effects>>,
}

impl Headers {
    /// Those of a request without a message.
    pub(super) fn base(&self) -> HeaderMap {
        let mut headers = self.own.now();
        if let Some(session) = &self.session {
            headers.insert(SESSION, session.clone());
        }
        if let Some(version) = &self.version {
            headers.insert(VERSION, version.clone());
        }
        headers
    }

    /// Those of a request with this message.
    pub(super) fn of(&self, body: &[u8]) -> HeaderMap {
        let mut headers = self.base();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let both = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, both);
        headers.extend(repeated(body, &lock(&self.effects).mirrored));
        headers
    }
}

/// The headers in which a message of MCP 2026-07-28 repeats parts of itself.
fn repeated(body: &[u8], tools: &Mirrored) -> HeaderMap {
    // Most messages do not name it.
    if memchr::memmem::find(body, b"io.modelcontextprotocol/protocolVersion").is_none() {
        return HeaderMap::new();
    }
    let Line::One(message) = jsonrpc::read(body) else { return HeaderMap::new() };
    let params = Params::of(&message);
    let version = params.meta().version.and_then(string);
    let (Some(method), Some(version)) = (message.method.as_deref(), version) else {
        return HeaderMap::new();
    };
    let name = params.name.and_then(string).or_else(|| params.uri.and_then(string));
    let tool = name.clone().filter(|_| method == "tools/call").unwrap_or_default();
    let arguments = params.arguments.and_then(|raw| serde_json::from_str(raw.get()).ok());
    let arguments = arguments.unwrap_or_default();
    let mut parts = vec![(VERSION, version), (METHOD, method.into())];
    parts.extend(name.map(|name| (NAME, name)));
    parts.extend(tools.of(&tool, &arguments).filter_map(|(name, argument)| {
        let name = format!("mcp-param-{name}").parse().ok()?;
        Some((name, mirrored::text(argument?)))
    }));
    parts.iter().filter_map(|(name, text)| Some((name.clone(), encoded(text)?))).collect()
}

/// Text as a header's value: in Base64 where it has other characters.
fn encoded(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim() == text
        && !text.starts_with("=?");
    let value = match is_plain {
        true => text.to_owned(),
        false => format!("=?base64?{}?=", STANDARD.encode(text)),
    };
    HeaderValue::from_str(&value).ok()
}

/// The operator's headers: those of a file, which is read again when it changes, as tokens are renewed.
#[derive(Clone, Default)]
pub(super) struct Own(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    file: Option<PathBuf>,
    /// When the file was changed, and which it was then.
    seen: Option<(SystemTime, u64, u64)>,
    headers: HeaderMap,
}

impl Own {
    /// # Errors
    /// If others can read the file, or a line is no header.
    pub(super) fn of(file: Option<&Path>) -> anyhow::Result<Self> {
        let Some(file) = file else { return Ok(Self::default()) };
        let state = State { seen: seen(file), file: Some(file.into()), headers: headers(file)? };
        Ok(Self(Arc::new(Mutex::new(state))))
    }

    /// The headers now. If the file has become unusable, those before stay.
    pub(super) fn now(&self) -> HeaderMap {
        let mut state = lock(&self.0);
        let state = &mut *state;
        if let Some(file) = &state.file
            && let now = seen(file)
            && now != state.seen
        {
            match headers(file) {
                Ok(headers) => {
                    tracing::warn!(target: TARGET, event = "header_file_reloaded");
                    state.headers = headers;
                }
                Err(error) => {
                    let why = format!("{error:#}");
                    tracing::warn!(target: TARGET, event = "header_file_not_reloaded", why);
                }
            }
            state.seen = now;
        }
        state.headers.clone()
    }
}

fn seen(file: &Path) -> Option<(SystemTime, u64, u64)> {
    let file = fs::metadata(file).ok()?;
    Some((file.modified().ok()?, file.len(), file.ino()))
}

/// Reads headers for the server, one on each line.
///
/// # Errors
/// If others can read the file, or a line is no header.
fn headers(file: &Path) -> anyhow::Result<HeaderMap> {
    let at = || format!("--header-file {}", file.display());
    let mut headers = HeaderMap::new();
    for (number, line) in read_secret(file).with_context(at)?.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        // The value is a secret.
        let wrong = || format!("{}, line {}: write `Name: value`", at(), number + 1);
        let (name, value) = line.split_once(':').with_context(wrong)?;
        let name: HeaderName = name.trim().parse().ok().with_context(wrong)?;
        let mut value: HeaderValue = value.trim().parse().ok().with_context(wrong)?;
        value.set_sensitive(true);
        secrets::keep(value.to_str().unwrap_or_default());
        headers.append(name, value);
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn a_changed_file_is_read_again_and_an_unusable_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("headers");
        let write = |text: &str, mode: u32| {
            let new = folder.path().join("new");
            fs::write(&new, text).unwrap();
            fs::set_permissions(&new, fs::Permissions::from_mode(mode)).unwrap();
            fs::rename(new, &file).unwrap();
        };
        write("Authorization: Bearer A\n", 0o600);
        let own = Own::of(Some(&file)).unwrap();
        let sent = || own.now().get("authorization").unwrap().to_str().unwrap().to_owned();
        assert_eq!(sent(), "Bearer A");
        write("Authorization: Bearer B\n", 0o600);
        assert_eq!(sent(), "Bearer B");
        write("Authorization: Bearer C\n", 0o644);
        assert_eq!(sent(), "Bearer B");
        write("no header", 0o600);
        assert_eq!(sent(), "Bearer B");
        write("Authorization: Bearer D\n", 0o600);
        assert_eq!(sent(), "Bearer D");
        fs::remove_file(&file).unwrap();
        assert_eq!(sent(), "Bearer D");
    }
}
