//! Asks a person at a terminal before a record is settled or forgotten, or takes the operator's token for one.
//!
//! A refusal that a model reads names the record, and a model with a shell tool can run this program: so a
//! person types the ID, or a program of theirs shows the token. Standard input and standard error are asked,
//! and not `/dev/tty`: an agent's shell tool has its user's terminal as the latter, too.
use super::shown::SHOWN;
use crate::mcp::{
    operator::{token, user},
    records::secret_in,
};
use clap::Args;
use std::{
    io::{self, IsTerminal as _, Write as _},
    path::PathBuf,
};
use tool_reliability::{admin::is_same_token, idempotency::Settlement};

/// Without a person at a terminal, and without the operator's token.
pub(super) const NOT_ALLOWED: u8 = 7;
/// The person did not type the record's ID.
pub(super) const NOT_CONFIRMED: u8 = 8;

#[derive(Clone, Debug, Args)]
pub(super) struct Consent {
    /// Why: it is kept in the record
    #[arg(long, value_name = "TEXT")]
    why: Option<String>,
    /// Ask no person at a terminal: for programs of the operator's, which have the token
    #[arg(long, requires_all = ["token_file", "why"])]
    yes: bool,
    /// With `--yes`: the file with the operator's token, which only its user can read
    #[arg(long, value_name = "FILE", requires = "yes")]
    token_file: Option<PathBuf>,
}

impl Consent {
    /// Whether no person is asked.
    pub(super) fn is_by_token(&self) -> bool {
        self.token_file.is_some()
    }

    /// Refuses an order that neither a person at a terminal gives nor a program with the token.
    ///
    /// # Errors
    /// Why it is refused. It says no command that would not be.
    pub(super) fn check(&self) -> Result<(), String> {
        let Some(file) = &self.token_file else {
            let is_asked = io::stdin().is_terminal() && io::stderr().is_terminal();
            return if is_asked { Ok(()) } else { Err(PERSON.to_owned()) };
        };
        let of_user = token().and_then(|(_, token)| Ok((token, secret_in(file)?)));
        match of_user {
            Ok((token, given)) if is_same_token(&given, token.as_bytes()) => Ok(()),
            Ok(_) => Err("nothing was done: the token is not this user's".to_owned()),
            Err(error) => Err(format!("nothing was done: {error:#}")),
        }
    }

    /// Has a person at a terminal read what will happen, and type a word, such as the record's ID; `None` if they
    /// did not.
    pub(super) fn confirm(
        self,
        (named, word): (&str, &str),
        said: &str,
        happens: &str,
    ) -> io::Result<Option<Settlement>> {
        let (way, why) = match self.token_file {
            Some(_) => ("by token", self.why),
            None => {
                eprintln!("{said}\n{happens}\n");
                let why = match self.why {
                    None => ask("why, to be kept in the record (may be empty): ")?,
                    Some(why) => why,
                };
                let typed = ask(&format!("to do this, type {named}: "))?.to_ascii_lowercase();
                if typed.len() < SHOWN.min(word.len()) || !word.starts_with(&typed) {
                    return Ok(None);
                }
                ("at a terminal", Some(why))
            }
        };
        Ok(Some(Settlement::new(&format!("{}, {way}", user()), &why.unwrap_or_default())))
    }
}

/// What a person types who settles or forgets a record.
pub(super) const ID: &str = "the ID of the record";

/// The refusal that a program gets.
const PERSON: &str = "nothing was done: this is for a person at a terminal, who types what it asks for; \
                      if you are a model or a program, ask the user to decide";

fn ask(what: &str) -> io::Result<String> {
    eprint!("{what}");
    io::stderr().flush()?;
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}
