//! The last events, as lines for people.
use serde_json::{Value, json};
use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::Mutex,
};
use tr_core::{SystemClock, WallClock as _, internal::lock};

/// How many are kept.
const MOST: usize = 20;

/// Of this process, as what is logged is.
static LINES: Mutex<VecDeque<(u64, String)>> = Mutex::new(VecDeque::new());

/// Keeps each line that is written to it.
#[derive(Debug)]
pub(super) struct Recent;

impl Write for Recent {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut lines = lock(&LINES);
        if lines.len() == MOST {
            lines.pop_front();
        }
        let text = String::from_utf8_lossy(line).trim_end().to_owned();
        lines.push_back((SystemClock.unix_ms(), text));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The last of them, the oldest first, each with its time in milliseconds since 1970.
pub(crate) fn recent() -> Vec<Value> {
    lock(&LINES).iter().map(|(at, line)| json!({ "at": at, "line": line })).collect()
}
