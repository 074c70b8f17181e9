//! Where each client keeps its configuration.
use super::client::Client;
use clap::ValueEnum;
use std::{
    env,
    ffi::OsString,
    path::{Path, PathBuf},
};

/// Whose servers a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Scope {
    /// The user's, in all projects
    User,
    /// Those of the project in the current folder
    Project,
}

/// A place where a client looks for its configuration; the file may not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) scope: Scope,
    pub(crate) path: PathBuf,
}

/// The variables and the folder that decide where the files are.
pub(crate) struct Environment<'s> {
    pub(crate) variable: &'s dyn Fn(&str) -> Option<OsString>,
    pub(crate) folder: PathBuf,
}

impl Environment<'_> {
    /// Those of this process.
    pub(crate) fn here() -> std::io::Result<Self> {
        Ok(Self { variable: &|name| env::var_os(name), folder: env::current_dir()? })
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        (self.variable)(name).filter(|it| !it.is_empty()).map(|it| self.folder.join(it))
    }

    /// The folder of a variable, or one below the home folder.
    fn folder_of(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        self.path(variable).or_else(|| Some(self.path("HOME")?.join(below_home)))
    }
}

/// The places of a client's files, in the order in which people know them.
pub(crate) fn places(client: Client, here: &Environment<'_>) -> Vec<Place> {
    let mut places: Vec<Place> = Vec::new();
    let users = users(client, here).unwrap_or_default();
    places.extend(users.into_iter().map(|path| Place { scope: Scope::User, path }));
    let found = |name: &&str| upward(&here.folder, Path::new(name), here.path("HOME").as_deref());
    for path in client.form().of_project.iter().filter_map(found) {
        if !places.iter().any(|it| it.path == path) {
            places.push(Place { scope: Scope::Project, path });
        }
    }
    places
}

/// `None` without a home folder.
fn users(client: Client, here: &Environment<'_>) -> Option<Vec<PathBuf>> {
    let config = || here.folder_of("XDG_CONFIG_HOME", ".config");
    Some(match client {
        Client::ClaudeCode => vec![here.folder_of("CLAUDE_CONFIG_DIR", "")?.join(".claude.json")],
        Client::Codex => vec![here.folder_of("CODEX_HOME", ".codex")?.join("config.toml")],
        Client::Gemini => {
            vec![here.folder_of("GEMINI_CLI_HOME", "")?.join(".gemini/settings.json")]
        }
        Client::Cursor => vec![here.path("HOME")?.join(".cursor/mcp.json")],
        Client::Vscode => {
            let mac = || Some(here.path("HOME")?.join("Library/Application Support"));
            let base = if cfg!(target_os = "macos") { mac()? } else { config()? };
            let names = ["Code", "Code - Insiders", "VSCodium"];
            names.map(|name| base.join(name).join("User/mcp.json")).into()
        }
        Client::Opencode => {
            let names = ["opencode.json", "opencode.jsonc", "config.json"];
            let folder = config().map(|it| it.join("opencode"));
            let folders = folder.into_iter().chain(here.path("OPENCODE_CONFIG_DIR"));
            let files = folders.flat_map(|folder| names.map(|name| folder.join(name)));
            files.chain(here.path("OPENCODE_CONFIG")).collect()
        }
        Client::Openclaw => {
            let home = || Some(here.folder_of("OPENCLAW_HOME", "")?.join(".openclaw"));
            let state = || here.path("OPENCLAW_STATE_DIR").or_else(home);
            let named = here.path("OPENCLAW_CONFIG_PATH");
            vec![named.or_else(|| Some(state()?.join("openclaw.json")))?]
        }
    })
}

/// The nearest file of this name in the folder or above, below the home folder.
fn upward(folder: &Path, name: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let above = folder.ancestors().enumerate();
    let own = above.take_while(|(depth, it)| *depth == 0 || Some(*it) != home);
    own.map(|(_, it)| it.join(name)).find(|it| it.symlink_metadata().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(client: Client, variables: &[(&str, &str)]) -> Vec<String> {
        let variable = |name: &str| {
            let found = variables.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| OsString::from(value))
        };
        let here = Environment { variable: &variable, folder: "/nowhere/at/all".into() };
        places(client, &here).into_iter().map(|it| it.path.display().to_string()).collect()
    }

    #[test]
    fn each_client_has_its_files_where_its_variables_say() {
        let home = [("HOME", "/h")];
        assert_eq!(paths(Client::ClaudeCode, &home), ["/h/.claude.json"]);
        let moved = [("HOME", "/h"), ("CLAUDE_CONFIG_DIR", "/c")];
        assert_eq!(paths(Client::ClaudeCode, &moved), ["/c/.claude.json"]);
        assert_eq!(paths(Client::Codex, &home), ["/h/.codex/config.toml"]);
        assert_eq!(paths(Client::Codex, &[("CODEX_HOME", "/c")]), ["/c/config.toml"]);
        assert_eq!(paths(Client::Gemini, &home), ["/h/.gemini/settings.json"]);
        assert_eq!(paths(Client::Cursor, &home), ["/h/.cursor/mcp.json"]);
        let opencode = paths(Client::Opencode, &[("XDG_CONFIG_HOME", "/x")]);
        assert!(opencode.contains(&"/x/opencode/opencode.jsonc".to_owned()), "{opencode:?}");
        assert_eq!(paths(Client::Openclaw, &home), ["/h/.openclaw/openclaw.json"]);
        let state = [("HOME", "/h"), ("OPENCLAW_STATE_DIR", "/s")];
        assert_eq!(paths(Client::Openclaw, &state), ["/s/openclaw.json"]);
        assert!(paths(Client::Codex, &[]).is_empty());
    }

    #[test]
    fn the_nearest_file_above_is_the_projects_and_those_at_home_are_not() {
        let root = tempfile::tempdir().unwrap();
        let inner = root.path().join("home/project/src");
        std::fs::create_dir_all(&inner).unwrap();
        let name = Path::new(".mcp.json");
        let home = root.path().join("home");
        std::fs::write(home.join(name), "{}").unwrap();
        assert_eq!(upward(&inner, name, Some(&home)), None);
        assert_eq!(upward(&home, name, Some(&home)), Some(home.join(name)), "called there");
        std::fs::write(home.join("project").join(name), "{}").unwrap();
        assert_eq!(upward(&inner, name, Some(&home)), Some(home.join("project").join(name)));
    }
}
