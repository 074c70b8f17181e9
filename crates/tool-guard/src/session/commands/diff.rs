//! `tool-guard session diff`: what a repair would change, record by record.
use crate::{
    session::{
        document::Document,
        each::Outcome,
        options::How,
        report::{About, head},
        source::Source,
        target::Target,
        verdict::{Failure, NotJudged, Verdict},
    },
    terminal::{DIM, MINUS, PLUS, TITLE},
};
use serde::Serialize;
use similar::{Algorithm, ChangeTag, DiffOp, TextDiff, capture_diff_slices};
use std::{fmt::Write as _, iter};

/// The number of unchanged lines around a change.
const AROUND: usize = 3;

/// Longer runs of NUL characters are abbreviated.
const NULS: &str = "\0\0\0\0\0\0\0\0";

/// The changes of a repair.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Differs {
    #[serde(flatten)]
    about: About,
    changes: Vec<Change>,
    #[serde(flatten)]
    not_judged: Option<NotJudged>,
}

/// Consecutive records, and those that replace them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Change {
    /// The line of the first of them in the current file, or the line of the insertion.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// The index of the message or line, from 0; empty lines do not count.
    record: usize,
    before: Vec<String>,
    after: Vec<String>,
}

/// Compares a session with the result of a repair.
pub(crate) fn diff(target: &Target, how: How) -> Result<Differs, Failure> {
    let content = Source::open(target)?.content()?;
    let planned = content.plan(how.repair())?;
    let after = planned.after.as_deref();
    let changes = after.map_or_else(Vec::new, |after| changes(&*content, after));
    let not_judged = after.unwrap_or(&*content).health().not_judged();
    let not_judged = not_judged.filter(|_| changes.is_empty());
    Ok(Differs { about: content.about(), changes, not_judged })
}

fn changes(before: &dyn Document, after: &dyn Document) -> Vec<Change> {
    let (places, old): (Vec<u64>, Vec<&[u8]>) = before.numbered().unzip();
    let new: Vec<&[u8]> = after.numbered().map(|(_, text)| text).collect();
    let shown = |records: &[&[u8]]| records.iter().map(|record| shown(record)).collect();
    let changed = capture_diff_slices(Algorithm::Myers, &old, &new).into_iter();
    let changed = changed.filter(|op| !matches!(op, DiffOp::Equal { .. }));
    let change = |op: DiffOp| {
        let place = places.get(op.old_range().start).or(places.last());
        Change {
            line: place.map_or(Some(1), |&record| before.line_of(record)),
            record: op.old_range().start,
            before: shown(&old[op.old_range()]),
            after: shown(&new[op.new_range()]),
        }
    };
    changed.map(change).collect()
}

/// A record as text. Bytes that are no UTF-8 are shown as `\xFF`, which no JSON contains.
fn shown(record: &[u8]) -> String {
    let mut text = String::with_capacity(record.len());
    for chunk in record.utf8_chunks() {
        text.push_str(chunk.valid());
        for byte in chunk.invalid() {
            let _ = write!(text, "\\x{byte:02X}");
        }
    }
    text
}

impl Outcome for Differs {
    fn verdict(&self) -> Verdict {
        match self.not_judged {
            _ if !self.changes.is_empty() => Verdict::Findings,
            Some(_) => Verdict::NotJudged,
            None => Verdict::Clean,
        }
    }

    fn show(&self, target: &Target, out: &mut String) {
        if self.changes.is_empty() {
            head(target, &self.about, self.verdict(), out);
            if let Some(why) = &self.not_judged {
                let _ = write!(out, "{why}");
            }
            return;
        }
        let _ = writeln!(out, "{TITLE}--- {target}\n+++ {target}, repaired{TITLE:#}");
        for change in &self.changes {
            let line = change.line.map(|line| format!(":{line}")).unwrap_or_default();
            let first = change.record;
            let what = match (change.before.len(), change.after.len()) {
                (0, _) => format!("before record {first} comes in"),
                (1, 0) => format!("record {first} goes"),
                (1, _) => format!("record {first} changes"),
                (more, 0) => format!("records {first} to {} go", first + more - 1),
                (more, _) => format!("records {first} to {} change", first + more - 1),
            };
            let _ = writeln!(out, "{DIM}@@ {target}{line}, {what} @@{DIM:#}");
            let lines = |records: &[String]| -> String {
                records.iter().map(|record| pretty_json(&counted(record))).collect()
            };
            let (before, after) = (lines(&change.before), lines(&change.after));
            show_lines(&before, &after, out);
        }
    }

    fn next(&self, target: &Target) -> Option<String> {
        let target = target.argument();
        (!self.changes.is_empty())
            .then(|| format!("See what it loses:  tool-guard session repair {target}"))
    }
}

/// A record with long runs of NUL characters abbreviated.
fn counted(record: &str) -> String {
    let mut out = String::with_capacity(record.len());
    let mut rest = record;
    while let Some(at) = rest.find(NULS) {
        let run = rest[at..].bytes().take_while(|byte| *byte == 0).count();
        let _ = write!(out, "{}NUL×{run}", &rest[..at]);
        rest = &rest[at + run..];
    }
    out + rest
}

fn show_lines(before: &str, after: &str, out: &mut String) {
    let diff = TextDiff::from_lines(before, after);
    let groups = diff.grouped_ops(AROUND);
    for (at, group) in groups.iter().enumerate() {
        if at > 0 {
            let _ = writeln!(out, "{DIM} …{DIM:#}");
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let line = tr_core::printable_lines(change.value().trim_end_matches('\n'));
            let _ = match change.tag() {
                ChangeTag::Equal => writeln!(out, " {line}"),
                ChangeTag::Delete => writeln!(out, "{MINUS}-{line}{MINUS:#}"),
                ChangeTag::Insert => writeln!(out, "{PLUS}+{line}{PLUS:#}"),
            };
        }
    }
}

/// Puts each value of a JSON text on its own line, with numbers, escapes and the order of members
/// as written. Invalid JSON is formatted in some way, but nothing of it is lost.
fn pretty_json(json: &str) -> String {
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(iter::repeat_n("  ", depth));
    };
    let (mut out, mut depth) = (String::with_capacity(json.len() * 2), 0_usize);
    let (mut is_open, mut is_string, mut is_escaped) = (false, false, false);
    for c in json.chars() {
        if is_string {
            out.push(c);
            is_string = c != '"' || is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            continue;
        }
        if c.is_ascii_whitespace() {
            continue;
        }
        let closes = matches!(c, '}' | ']');
        depth = depth.saturating_sub(usize::from(closes));
        // The first value after a bracket begins a line; empty brackets stay together.
        if is_open != closes {
            line(&mut out, depth);
        }
        out.push(c);
        is_open = matches!(c, '{' | '[');
        depth += usize::from(is_open);
        match c {
            ',' => line(&mut out, depth),
            ':' => out.push(' '),
            _ => is_string = c == '"',
        }
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_spread_as_they_are_written() {
        let json = r#"{ "b":1.0,"a" : ["x\"],{\\", -0 ,{}, [ ]],"ü":{"n":12345678901234567890}}"#;
        let expected = r#"{
  "b": 1.0,
  "a": [
    "x\"],{\\",
    -0,
    {},
    []
  ],
  "ü": {
    "n": 12345678901234567890
  }
}
"#;
        assert_eq!(pretty_json(json), expected);
    }

    #[test]
    fn what_is_no_json_loses_nothing_but_white_space() {
        for text in ["", "}}]", "{\"a", "plain text", "\"\\", "[1,,2"] {
            let dense = |text: &str| text.split_whitespace().collect::<String>();
            assert_eq!(dense(&pretty_json(text)), dense(text), "{text}");
        }
    }
}
