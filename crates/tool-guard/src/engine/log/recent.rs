//! The last events, as lines for people; one that comes again and again is one.
use serde_json::{Value, json};
use std::{collections::VecDeque, sync::Mutex};
use tr_core::{SystemClock, WallClock as _, internal::lock};

/// How many are kept.
const MOST: usize = 20;

/// Of this process, as what is logged is.
static LINES: Mutex<VecDeque<(u64, String, u32)>> = Mutex::new(VecDeque::new());

/// Keeps a line.
pub(super) fn keep(line: &str) {
    let mut lines = lock(&LINES);
    let text = line.trim_end().to_owned();
    let again = lines.back().filter(|(_, last, _)| what(last) == what(&text));
    let times = again.map_or(1, |(_, _, times)| times + 1);
    if times > 1 {
        lines.pop_back();
    } else if lines.len() == MOST {
        lines.pop_front();
    }
    lines.push_back((SystemClock.unix_ms(), text, times));
}

/// A line without its time, with which it begins, and without how long the call took, with which it ends.
fn what(line: &str) -> &str {
    let what = line.split_once(' ').map_or(line, |(_, what)| what);
    what.rsplit_once(" (")
        .filter(|(_, took)| took.ends_with(" ms)") || took.ends_with(" s)"))
        .map_or(what, |(what, _)| what)
}

/// The last of them, the oldest first, each with its time in milliseconds since 1970.
pub(crate) fn recent() -> Vec<Value> {
    let said = |(at, line, times): &(u64, String, u32)| match times {
        1 => json!({ "at": at, "line": line }),
        _ => json!({ "at": at, "line": format!("{line} ({times} times)") }),
    };
    lock(&LINES).iter().map(said).collect()
}
