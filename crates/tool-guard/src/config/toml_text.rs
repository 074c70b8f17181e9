//! An effective configuration as TOML.
use super::effective::{Door, Effective, From};
use serde_json::Value;
use std::fmt::Write as _;
use tool_reliability::{
    Environment,
    config::PREFIX,
    environment::{DERIVE_IDEMPOTENCY, ENABLED, NORMALISE, OPEN_MODE},
    telemetry::redact::{Redact as _, Redactor},
};
use tr_core::printable;

/// Writes the whole configuration; `file` is where its lines are.
pub(super) fn write(
    effective: &Effective,
    file: &str,
    door: Door,
    switches: Environment,
) -> String {
    let mut text = format!(
        "# The effective configuration of {}: used as a configuration, it has the same effect.\n",
        door.name()
    );
    for (is_on, name, what) in [
        (switches.enabled, ENABLED, "every call bypasses the stack"),
        (switches.open_mode, OPEN_MODE, "no breaker refuses a call"),
        (switches.derive_idempotency, DERIVE_IDEMPOTENCY, "no key is derived"),
        (switches.normalise, NORMALISE, "the tools' own errors are left as they are"),
    ] {
        if !is_on {
            let _ = writeln!(text, "# {name} is off: {what}.");
        }
    }
    let mut writer = Writer { text, file, redactor: Redactor::default() };
    // Of each table its values, then the tables in it.
    let in_tables = effective.values.iter().filter_map(|it| Some((it.0.split_last()?, it.1)));
    let mut all: Vec<_> = in_tables.map(|((name, table), value)| (table, name, value)).collect();
    all.sort_by_key(|(table, name, _)| (*table, *name));
    let mut last: &[String] = &[];
    for (table, name, (value, from)) in all {
        if table != last {
            let place: Vec<_> = table.iter().map(|part| key(part)).collect();
            let _ = writeln!(writer.text, "\n[{}]", place.join("."));
            last = table;
        }
        writer.value(table, name, value, from);
    }
    let unset = effective.unset();
    if !unset.is_empty() {
        writer.text.push_str("\n# Not set:\n");
        for key in &unset {
            let default = match (&**key, door) {
                ("records.where", Door::Mcp | Door::Turn) => {
                    " (tool-guard/records.db in the user's state folder; memory if that cannot be used)"
                }
                _ => "",
            };
            let _ = writeln!(writer.text, "#   {key}{default}");
        }
    }
    writer.text
}

struct Writer<'f> {
    text: String,
    file: &'f str,
    redactor: Redactor,
}

impl Writer<'_> {
    fn value(&mut self, path: &[String], name: &str, value: &Value, from: &From) {
        let origin = match from {
            From::Default => "default".to_owned(),
            From::Preset(preset) => format!("default of {preset}"),
            From::Line(line) => format!("{}:{line}", self.file),
            From::Variable(name) => format!("variable {name}"),
            From::Option(option) => format!("option {option}"),
        };
        let origin = printable(&origin).into_owned();
        let key = key(name);
        let Some(shown) = self.hidden(value) else {
            let _ = match toml(value) {
                Some(value) => writeln!(self.text, "{key} = {value} # {origin}"),
                None => writeln!(self.text, "# {key}: TOML has no null # {origin}"),
            };
            return;
        };
        let variable: Vec<_> =
            path.iter().map(String::as_str).chain([name]).map(str::to_ascii_uppercase).collect();
        let how = match from {
            From::Variable(_) => String::new(),
            _ => format!("; hidden: set it as {PREFIX}{}", variable.join("__")),
        };
        let _ = writeln!(self.text, "# {key} = {shown} # {origin}{how}");
    }

    /// What is shown of a value with a secret in it.
    fn hidden(&self, value: &Value) -> Option<String> {
        let hides = |value| self.hidden(value).is_some();
        let hides = match value {
            Value::String(text) => match text.split_once("://") {
                Some((scheme, rest)) => return without_secret(scheme, rest).map(|it| string(&it)),
                None => self.redactor.redact(text) != *text,
            },
            Value::Array(all) => all.iter().any(hides),
            Value::Object(all) => all.values().any(hides),
            _ => false,
        };
        hides.then(|| string("<hidden>"))
    }
}

/// An address without the password or the query in it, if it has one.
fn without_secret(scheme: &str, rest: &str) -> Option<String> {
    // A password may hold any sign, so the last `@` ends it.
    if let Some((_, host)) = rest.rsplit_once('@') {
        let host = host.split(['?', '#']).next().unwrap_or_default();
        return Some(format!("{scheme}://<hidden>@{host}"));
    }
    let (bare, _) = rest.split_once('?')?;
    Some(format!("{scheme}://{bare}?<hidden>"))
}

/// A value in TOML; `None` if it holds null, which TOML does not have.
fn toml(value: &Value) -> Option<String> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => string(text),
        Value::Array(all) => {
            let all: Option<Vec<_>> = all.iter().map(toml).collect();
            format!("[{}]", all?.join(", "))
        }
        Value::Object(all) => {
            let members = all.iter();
            let members =
                members.map(|(name, value)| Some(format!("{} = {}", key(name), toml(value)?)));
            let all: Option<Vec<_>> = members.collect();
            format!("{{ {} }}", all?.join(", "))
        }
    })
}

fn key(name: &str) -> String {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    match !name.is_empty() && name.chars().all(is_bare) {
        true => name.to_owned(),
        false => string(name),
    }
}

/// A string of TOML: that of JSON, with DEL and what a terminal would act on escaped, too.
fn string(text: &str) -> String {
    let mut quoted = String::new();
    for c in Value::from(text).to_string().chars() {
        match c {
            '\u{7f}'..='\u{9f}' => drop(write!(quoted, "\\u{:04x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted
}
