//! What a client would start for a server, as far as its file says.
use crate::install::{
    client::Form,
    servers::{Entry, Reached},
    tree::Refusal,
};
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};
use tool_reliability::config::at_home;

/// A server's process.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Launch {
    pub(crate) command: Vec<OsString>,
    pub(crate) variables: Vec<(OsString, OsString)>,
    pub(crate) folder: PathBuf,
}

/// What is started for an entry in the client's folder, or why nothing is, if it is a command.
pub(crate) fn launch(
    entry: &Entry<'_>,
    reached: &Reached<'_>,
    form: &Form,
    folder: &Path,
) -> Result<Result<Launch, Option<&'static str>>, Refusal> {
    let words = reached.words();
    if words.is_empty() {
        return Ok(Err(None));
    }
    if !entry.is_enabled()? {
        return Ok(Err(Some("it is disabled")));
    }
    if entry.member("envFile")?.is_some() {
        return Ok(Err(Some("its variables are in a file (`envFile`)")));
    }
    let variables = entry.texts(form.env)?;
    let cwd = match entry.text("cwd")? {
        Some((_, cwd)) => Some(cwd),
        None => entry.text("workingDirectory")?.map(|(_, cwd)| cwd),
    };
    let values = variables.iter().map(|(_, value)| *value);
    let mut all = words.iter().copied().chain(values).chain(cwd);
    let is_expanded =
        |word: &str| word.contains(['$', '%']) || word.contains("{env:") || word.contains("{file:");
    if form.expands && all.any(is_expanded) {
        return Ok(Err(Some("it has variables that its client fills in")));
    }
    let cwd = cwd.unwrap_or_default();
    Ok(Ok(Launch {
        command: words.iter().map(Into::into).collect(),
        variables: variables.iter().map(|(name, value)| (name.into(), value.into())).collect(),
        folder: folder.join(entry.project.unwrap_or_default()).join(at_home(Path::new(cwd))),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::{client::Client, servers::entries, tree::read};

    fn launched(client: Client, text: &str) -> Result<Launch, Option<&'static str>> {
        let form = client.form();
        let root = read(text, form.syntax).unwrap();
        let entry = entries(root.as_ref(), form).unwrap().pop().unwrap();
        let reached = entry.reached(form).unwrap();
        launch(&entry, &reached, form, Path::new("/here")).unwrap()
    }

    #[test]
    fn a_server_is_started_as_its_file_says() {
        let text = r#"{"projects": {"/shop": {"mcpServers": {"a": {"command": "x", "args": ["y"], "env": {"A": "1"}}}}}}"#;
        let found = launched(Client::ClaudeCode, text).unwrap();
        assert_eq!(found.command, ["x", "y"]);
        assert_eq!(found.variables, [("A".into(), "1".into())]);
        assert_eq!(found.folder, Path::new("/shop"));
        let text = r#"{"mcp": {"a": {"type": "local", "command": ["x"], "environment": {"A": "1"}, "cwd": "sub"}}}"#;
        let found = launched(Client::Opencode, text).unwrap();
        assert_eq!((found.variables.len(), found.folder), (1, "/here/sub".into()));
        let codex = "[mcp_servers.a]\ncommand = 'x'\nenv = { P = 'a$b' }";
        assert_eq!(launched(Client::Codex, codex).unwrap().variables, [("P".into(), "a$b".into())]);
    }

    #[test]
    fn what_only_the_client_knows_is_not_guessed() {
        let one = |entry: &str| {
            launched(Client::Cursor, &format!(r#"{{"mcpServers": {{"a": {entry}}}}}"#)).unwrap_err()
        };
        let why = |entry: &str| one(entry).unwrap();
        assert!(why(r#"{"command": "${HOME}/x"}"#).contains("fills in"));
        assert!(why(r#"{"command": "x", "env": {"K": "$KEY"}}"#).contains("fills in"));
        assert!(why(r#"{"command": "x", "cwd": "${workspaceFolder}"}"#).contains("fills in"));
        assert!(why(r#"{"command": "x", "envFile": ".env"}"#).contains("envFile"));
        assert!(why(r#"{"command": "x", "disabled": true}"#).contains("disabled"));
        assert_eq!(one(r#"{"url": "https://h/mcp"}"#), None);
    }
}
