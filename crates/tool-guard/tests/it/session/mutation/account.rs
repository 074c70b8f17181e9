//! What a file says, line by line, to find again after a repair.
use serde_json::{Deserializer, Value};
use std::collections::{BTreeSet, HashMap};

/// How often each word is said, and on which lines.
#[derive(Default)]
pub(crate) struct Account(HashMap<String, (usize, BTreeSet<u64>)>);

/// Members that have what is said; all others name, link and count.
const SAID: [&str; 14] = [
    "content",
    "parts",
    "tool_calls",
    "input",
    "arguments",
    "args",
    "output",
    "response",
    "result",
    "summary",
    "text",
    "thinking",
    "replacement_history",
    "provider_extra",
];

impl Account {
    /// Of all records that are whole: the lines of JSON lines, or of one JSON text with a message on
    /// each line, its messages.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        let mut account = Self::default();
        for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1..) {
            let line = line.trim_ascii().strip_suffix(b",").unwrap_or(line.trim_ascii());
            let starts = line.iter().position(|byte| *byte != 0).unwrap_or(line.len());
            for record in Deserializer::from_slice(&line[starts..]).into_iter::<Value>() {
                let Ok(record) = record else { break };
                let message = ["message", "payload"].into_iter().find_map(|it| record.get(it));
                let said = message.unwrap_or(&record).as_object().into_iter().flatten();
                let said = said.filter(|(name, _)| SAID.contains(&&***name));
                said.for_each(|(_, said)| account.add(said, number));
            }
        }
        account
    }

    fn add(&mut self, value: &Value, line: u64) {
        match value {
            Value::String(said) => {
                let said = Value::from(&**said).to_string();
                for word in words(said.as_bytes()) {
                    let entry = self.0.entry(word.to_owned()).or_default();
                    entry.0 += 1;
                    entry.1.insert(line);
                }
            }
            Value::Array(list) => list.iter().for_each(|it| self.add(it, line)),
            Value::Object(map) => {
                let named = ["id", "tool_use_id", "call_id", "type", "name"];
                let said = map.iter().filter(|(name, _)| !named.contains(&&***name));
                said.for_each(|(_, it)| self.add(it, line));
            }
            _ => {}
        }
    }

    /// Words that are said less often in the file as it is now.
    pub(crate) fn missing(&self, now: &[u8]) -> Vec<Missing<'_>> {
        let mut left: HashMap<&str, usize> = HashMap::new();
        for word in words(now) {
            *left.entry(word).or_default() += 1;
        }
        let missing = self.0.iter().map(|(word, (count, lines))| {
            let left = left.get(&**word).copied().unwrap_or(0);
            (left < *count).then_some(Missing { word, lines, is_left: left > 0 })
        });
        missing.flatten().collect()
    }
}

/// A word that is said less often than it was.
#[derive(Debug)]
pub(crate) struct Missing<'a> {
    pub(crate) word: &'a str,
    /// The lines that said it.
    pub(crate) lines: &'a BTreeSet<u64>,
    /// Whether it is said at all.
    pub(crate) is_left: bool,
}

/// Runs of letters and digits, long enough to mean something.
fn words(bytes: &[u8]) -> impl Iterator<Item = &str> {
    let runs = bytes.split(|byte| !byte.is_ascii_alphanumeric());
    runs.filter(|run| run.len() > 6).map(|run| str::from_utf8(run).unwrap())
}
