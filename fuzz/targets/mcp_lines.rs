//! Any bytes: a line is read however it is broken, in pieces as in one, and no server's mark passes.
#![no_main]
#![expect(dead_code, reason = "the program uses more of its readers")]

#[path = "../../crates/tool-guard/src/wire"]
mod wire {
    pub(crate) mod batch;
    pub(crate) mod elements;
    pub(crate) mod jsonrpc;
    pub(crate) mod lines;
    pub(crate) mod mark;
    pub(crate) mod scan;
}

use bytes::Bytes;
use libfuzzer_sys::fuzz_target;
use serde::de::IgnoredAny;
use serde_json::Value;
use wire::{
    batch,
    jsonrpc::{self, Line, Token},
    lines::{Item, Lines},
    mark,
    scan::{Guess, IdScan},
};

fuzz_target!(|bytes: &[u8]| {
    let line = Bytes::copy_from_slice(bytes);
    reads(&line);
    no_mark_is_left(&line);
    no_byte_is_lost(bytes);
});

fn reads(line: &Bytes) {
    match jsonrpc::read(line) {
        Line::One(message) => {
            for part in
                [message.id, message.params, message.result, message.error].into_iter().flatten()
            {
                let place = jsonrpc::range(line, part);
                assert_eq!(&line[place], part.get().as_bytes());
            }
            if let Some(id) = message.id.and_then(Token::read) {
                let again: Value = serde_json::from_str(&id.to_json()).expect("an id is JSON");
                assert!(again.is_string() || again.is_number());
            }
        }
        Line::Batch => {
            let members = serde_json::from_slice::<Vec<IgnoredAny>>(line).expect("an array").len();
            // An array in JSON is one to any reader.
            assert_eq!(batch::parts(line).count(), members.max(1));
            let asked = batch::asked(line);
            assert!(asked.len() <= members);
            assert!(asked.iter().filter(|id| **id == "null").count() <= 100);
        }
        Line::Unreadable { .. } => {}
    }
    if let Some(guess) = Guess::of(line) {
        for place in [Some(guess.place), guess.error, guess.result.map(|(place, _)| place)] {
            assert!(place.is_none_or(|place| line.get(place).is_some()));
        }
    }
    let whole = scanned([&line[..]].into_iter());
    assert_eq!(scanned(line.chunks(3)), whole);
}

fn scanned<'l>(parts: impl Iterator<Item = &'l [u8]>) -> (bool, bool, bool, Option<Box<str>>) {
    let mut scan = IdScan::default();
    parts.for_each(|part| scan.feed(part));
    (scan.asks, scan.answers, scan.ended, scan.found.map(|(text, _)| text))
}

fn no_mark_is_left(line: &Bytes) {
    let left = mark::without(line);
    assert_eq!(mark::without(&left), left, "once is enough");
    let Ok(mut sent) = serde_json::from_slice::<Value>(line) else { return };
    clean(&mut sent);
    let left: Value = serde_json::from_slice(&left).expect("what was JSON still is");
    assert_eq!(left, sent);
}

fn clean(value: &mut Value) {
    match value {
        Value::Array(all) => all.iter_mut().for_each(clean),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    Value::Object(meta) if name == "_meta" => drop(meta.remove(mark::NAME)),
                    _ => clean(value),
                }
            }
        }
        _ => {}
    }
}

fn no_byte_is_lost(bytes: &[u8]) {
    let mut lines = Lines::in_parts(40);
    let mut joined = Vec::new();
    let mut take = |item| match item {
        Item::Line(bytes) | Item::Part(bytes) => joined.extend_from_slice(&bytes),
        Item::Oversized(_) => {}
    };
    for chunk in bytes.chunks(7) {
        lines.buffer().extend_from_slice(chunk);
        while let Some(item) = lines.next() {
            take(item);
        }
    }
    lines.finish().into_iter().for_each(take);
    assert_eq!(joined, bytes);
}
