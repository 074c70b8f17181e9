//! The names of the records of calls: where they are, and what their store and their servers are called.
use crate::{
    secrets::{is_like_one, secret_in},
    terminal::quoted,
};
use anyhow::anyhow;
use std::{
    env,
    ffi::{OsStr, OsString},
    fmt,
    os::unix::ffi::OsStrExt as _,
    path::{self, Path, PathBuf},
    time::Duration,
};
pub(crate) use tool_reliability::config::RecordPlace as Place;
use tool_reliability::idempotency::store::SealingKey;
use tr_core::{canonical::Digest, printable};

/// How long a call of unknown outcome blocks its repeats by default: until a person has settled it, or a
/// month.
pub(crate) const UNKNOWN: Duration = Duration::from_secs(30 * 24 * 3600);

/// The server's address without its password.
pub(super) fn place_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("redis", url));
    let rest = rest.rsplit_once('@').map_or(rest.to_owned(), |(_, at)| format!("***@{at}"));
    quoted(Path::new(&format!("{scheme}://{rest}")))
}

/// A server's command, or its URL, as a person recognizes it: the program and its first argument, without what may be a
/// secret.
pub(super) fn label_of(words: &[OsString]) -> String {
    let text = |word: &OsString| word.to_string_lossy().into_owned();
    let Some(first) = words.first().map(text) else { return String::new() };
    if let Some((_, rest)) = first.split_once("://") {
        let host = rest.split('/').next().unwrap_or_default();
        return printable(host.rsplit('@').next().unwrap_or_default()).into_owned();
    }
    let program = first.rsplit('/').next().unwrap_or_default().to_owned();
    let argument = words[1..].iter().map(text).find(|word| !word.starts_with('-'));
    let argument = argument.filter(|word| !is_like_one(word) && !word.contains('='));
    let label = argument.map_or(program.clone(), |word| format!("{program} {word}"));
    printable(&label).chars().take(LABEL).collect()
}

/// How much of a server's label is kept, in characters.
const LABEL: usize = 80;

/// The command by which a person reaches the same records, for messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordsCommand(Option<Box<str>>);

impl RecordsCommand {
    /// For the records at `place`; the default ones need no option.
    pub(crate) fn of(place: Option<&Place>) -> Self {
        // As a word for a shell, without a server's password.
        let word = |place: &Place| match place {
            Place::Memory => "memory".to_owned(),
            Place::File(file) => quoted(&path::absolute(file).unwrap_or_else(|_| file.clone())),
            Place::Redis(url) => place_of(url),
        };
        Self(place.map(|place| word(place).into()))
    }
}

impl fmt::Display for RecordsCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("tool-guard records")?;
        match &self.0 {
            Some(place) => write!(f, " --records {place}"),
            None => Ok(()),
        }
    }
}

/// `$XDG_STATE_HOME/tool-guard/records.db`.
pub(crate) fn default_file() -> anyhow::Result<PathBuf> {
    in_state("records.db", ", or give --records")
}

/// The folder in which each guard of the user's has its own socket.
pub(crate) fn guards_folder() -> anyhow::Result<PathBuf> {
    in_state("guards", "")
}

/// A file of this program in the user's state folder.
pub(super) fn in_state(name: &str, elsewhere: &str) -> anyhow::Result<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let state = absolute("XDG_STATE_HOME")
        .or_else(|| Some(absolute("HOME")?.join(".local/state")))
        .ok_or_else(|| anyhow!("no folder for {name} is known: set XDG_STATE_HOME or HOME to an absolute path{elsewhere}"))?;
    Ok(state.join("tool-guard").join(name))
}

/// A name for the server that this command starts: the same command has the same name in every connection.
pub(crate) fn name_of(command: &[OsString]) -> String {
    let mut whole = Vec::new();
    for part in command {
        let part = OsStr::as_bytes(part);
        whole.extend_from_slice(&(part.len() as u64).to_le_bytes());
        whole.extend_from_slice(part);
    }
    format!("command-{}", &Digest::of_bytes(whole).to_string()[..32])
}

/// The key with which records are sealed.
pub(crate) fn key(file: &Path) -> anyhow::Result<SealingKey> {
    Ok(SealingKey::new(1, secret_in(file)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_names_the_records_unless_they_are_the_default_ones() {
        let command = |place: &str| RecordsCommand::of(Some(&place.parse().unwrap())).to_string();
        assert_eq!(RecordsCommand::default().to_string(), "tool-guard records");
        assert_eq!(command("/a b/c.db"), "tool-guard records --records '/a b/c.db'");
        assert!(command("c.db").ends_with("/c.db") && command("c.db").contains("--records /"));
        assert_eq!(command("redis://h:1/2"), "tool-guard records --records redis://h:1/2");
        let hidden = command("rediss://user:p@ss/w@h:1");
        assert_eq!(hidden, "tool-guard records --records 'rediss://***@h:1'");
    }

    #[test]
    fn a_command_is_named_by_its_words_and_where_they_end() {
        let name = |words: &[&str]| name_of(&words.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(name(&["npx", "pay"]), name(&["npx", "pay"]));
        assert_ne!(name(&["npx", "pay"]), name(&["npxpay"]));
        assert_ne!(name(&["a", "bc"]), name(&["ab", "c"]));
    }
}
