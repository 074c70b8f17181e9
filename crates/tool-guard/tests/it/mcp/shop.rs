//! A server that pays, behind a guard. It writes into a ledger, and files beside that say what goes wrong.
use super::client::{BIN, Client, ledger};
use std::{fs, marker::PhantomData, path::PathBuf, process::Command};

/// What is for sale.
pub(super) trait Sells {
    /// The server, for a shell. `LEDGER` is its ledger.
    const SERVER: &str;

    /// How a session begins.
    fn greet(_: &mut Client) {}
}

pub(super) struct Shop<S> {
    pub(super) client: Client,
    pub(super) ledger: PathBuf,
    options: Vec<String>,
    sells: PhantomData<S>,
}

impl<S: Sells> Shop<S> {
    /// With this catalog of tools, and the guard's options.
    pub(super) fn open(catalog: &str, options: &[&str]) -> Self {
        let ledger = ledger();
        let file = ledger.with_extension("toml");
        fs::write(&file, catalog).unwrap();
        let all = ["--catalog", file.to_str().unwrap()].into_iter().chain(options.iter().copied());
        Self::start(ledger, all.map(ToOwned::to_owned).collect())
    }

    fn start(ledger: PathBuf, options: Vec<String>) -> Self {
        let mut command = Command::new(BIN);
        command.arg("mcp").args(&options).args(["--", "sh", "-c", S::SERVER]);
        // It names the conversation, which outlives the guard.
        command.env("LEDGER", &ledger).env("CLAUDE_PROJECT_DIR", "/home/user/shop");
        let mut client = Client::start(command, ledger.clone());
        S::greet(&mut client);
        Self { client, ledger, options, sells: PhantomData }
    }

    /// Another guard on the same records.
    pub(super) fn again(&mut self) {
        let ledger = ledger();
        fs::rename(&self.ledger, &ledger).unwrap();
        fs::rename(self.ledger.with_extension("state"), ledger.with_extension("state")).unwrap();
        *self = Self::start(ledger, self.options.clone());
    }

    pub(super) fn set(&self, file: &str) {
        fs::write(self.ledger.with_extension(file), "").unwrap();
    }

    pub(super) fn unset(&self, file: &str) {
        fs::remove_file(self.ledger.with_extension(file)).unwrap();
    }
}
