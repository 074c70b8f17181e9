//! What is recorded and where: by the command line, else by the configuration.
use super::{
    records::{self, Place},
    stores::{self, Records, Store},
};
use crate::terminal;
use clap::{Args, ValueEnum, builder::NonEmptyStringValueParser};
use serde_json::Value;
use std::{
    borrow::Cow,
    ffi::OsString,
    path::{Path, PathBuf},
};
use tool_reliability::config::{RecordBodies, RecordsConfig, at_home};

/// What a record keeps of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Bodies {
    /// All of it: a repeat gets the answer again
    Full,
    /// Nothing: a repeat gets the notice that the call ran, and when
    Digest,
}

/// What is recorded and where: the options, or what the configuration says of them.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Recording {
    /// Where to record mutating calls with an id, so that none runs twice even if the guard ends: a file,
    /// redis://HOST:PORT or memory [default: the configuration's, or tool-guard/records.db in the user's
    /// state folder]
    #[arg(long = "records", value_name = "WHERE")]
    pub(crate) place: Option<Place>,

    /// What is kept of their answers [default: full, or the configuration's]
    #[arg(long = "record-bodies", value_enum, value_name = "WHAT")]
    bodies: Option<Bodies>,

    /// Encrypt the records: 64 hexadecimal digits in a file that only you can read
    #[arg(long = "records-key-file", value_name = "FILE")]
    pub(crate) key_file: Option<PathBuf>,

    /// The server's name in the records, which several servers may share [default: by the command]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    name: Option<String>,
}

/// The value's name on the command line, which is its word in a configuration.
pub(super) fn word<V: ValueEnum>(value: &V) -> Value {
    terminal::word(value).into()
}

impl Recording {
    /// The keys of the configuration for these options, the values that they set, and the options.
    pub(super) fn settings(&self) -> [(&'static str, Option<Value>, &'static str); 4] {
        let text = |text: Cow<'_, str>| Value::from(text.into_owned());
        let place = self.place.as_ref().map(|place| match place {
            Place::Memory => "memory".into(),
            Place::File(file) => text(file.to_string_lossy()),
            Place::Redis(url) => Value::from(&**url),
        });
        let key_file = self.key_file.as_ref().map(|file| text(file.to_string_lossy()));
        [
            ("records.where", place, "--records"),
            ("records.bodies", self.bodies.as_ref().map(word), "--record-bodies"),
            ("records.key_file", key_file, "--records-key-file"),
            ("records.name", self.name.clone().map(Value::from), "--name"),
        ]
    }

    /// These options, else what the configuration says.
    pub(crate) fn over(self, config: &RecordsConfig) -> Self {
        let place = |place: &Place| match place {
            Place::File(file) => Place::File(at_home(file)),
            other => other.clone(),
        };
        let bodies = |bodies| match bodies {
            RecordBodies::Full => Bodies::Full,
            RecordBodies::Digest => Bodies::Digest,
        };
        let key_file = config.key_file.as_deref().map(Path::new);
        Self {
            place: self.place.or_else(|| config.place.as_ref().map(place)),
            key_file: self.key_file.or_else(|| key_file.map(at_home)),
            bodies: self.bodies.or_else(|| config.bodies.map(bodies)),
            name: self.name.or_else(|| config.name.as_deref().map(str::to_owned)),
        }
    }

    /// The name, in records, of the server that this command starts.
    pub(crate) fn server(&self, command: &[OsString]) -> String {
        self.name.clone().unwrap_or_else(|| records::name_of(command))
    }

    /// The same for people.
    pub(crate) fn label(&self, command: &[OsString]) -> String {
        self.name.clone().unwrap_or_else(|| records::label_of(command))
    }

    /// Opens the store.
    ///
    /// # Errors
    /// If a named store, or the key, cannot be used.
    pub(crate) async fn open(self, server: &str) -> anyhow::Result<Records> {
        let records = Records {
            store: stores::open(self.place).await?,
            key: self.key_file.as_deref().map(records::key).transpose()?,
            keep_answers: self.bodies != Some(Bodies::Digest),
            instance: server.into(),
            max_wait: None,
        };
        // Of a file that cannot be used, the calls find it out.
        if let Some(store @ (Store::File(_) | Store::Redis(_))) = &records.store {
            stores::check_key(&store.records(records.key.clone())?).await?;
        }
        Ok(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_stands_over_the_configuration_and_nothing_else_of_it_is_lost() {
        let mut config = RecordsConfig::default();
        config.place = Some(Place::Memory);
        config.bodies = Some(RecordBodies::Digest);
        config.name = Some("shop".into());
        let options =
            Recording { place: Some(Place::File("calls.db".into())), ..Recording::default() };
        let recording = options.over(&config);
        assert_eq!(recording.place, Some(Place::File("calls.db".into())));
        assert_eq!(recording.bodies, Some(Bodies::Digest));
        assert_eq!(recording.server(&["npx".into()]), "shop");
        assert_ne!(Recording::default().server(&["npx".into()]), "shop");
    }
}
