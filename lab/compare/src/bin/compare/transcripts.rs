//! Transcripts in memory, and session files: what an append costs at which length, and a check beside a parser.
use benches::measure::{Effort, median};
use std::{hint::black_box, io::Read as _};
use tokio::time::Instant;
use tr_core::BoxError;
use tr_integrity::Session;
use tr_testkit::sessions::{Form, SessionLines};
use tr_transcript::{FileCheck, Format};

const FORMAT: Format = Format::AnthropicMessages;

/// Messages that are appended in one batch: whole turns.
const APPENDED: usize = 600;

/// A line of each form has about this many bytes.
const LINE: u64 = 650;

fn file(form: Form, lines: u64) -> Result<String, BoxError> {
    let mut file = String::new();
    SessionLines::new(form, lines * LINE).read_to_string(&mut file)?;
    Ok(file)
}

/// Nanoseconds that `work` takes.
fn time<T>(work: impl FnOnce() -> T) -> f64 {
    let begun = Instant::now();
    black_box(work());
    begun.elapsed().as_nanos() as f64
}

/// Nanoseconds of reading, checking and appending one message of a session of 100,000, and of 100.
///
/// The long session goes on growing, as a real one does. (A copy for each batch has no room for one
/// message more, and leaves nothing of what is measured in the caches: most of the time would be the
/// copy's.) Both get the same messages, which lie ready.
pub(crate) fn append(effort: Effort) -> Result<Option<[f64; 2]>, BoxError> {
    let batches = effort.batches / 4;
    let file = file(Form::Anthropic, 105_000 + (batches * APPENDED) as u64)?;
    let lines: Vec<&str> = file.lines().collect();
    let mut long = session(&lines[..100_000])?;
    let mut taken = [Vec::new(), Vec::new()];
    for _ in 0..batches {
        let next = &lines[long.transcript().len()..][..APPENDED];
        let next: Vec<String> = next.iter().copied().map(str::to_owned).collect();
        let mut short = session(&lines[..100])?;
        for (taken, session) in taken.iter_mut().zip([&mut long, &mut short]) {
            let append = || -> Result<(), BoxError> {
                for line in &next {
                    session.push(FORMAT.read(line.as_str())?);
                }
                Ok(())
            };
            taken.push(time(append) / APPENDED as f64);
        }
    }
    Ok(Some(taken.map(|mut taken| median(&mut taken))))
}

fn session(lines: &[&str]) -> Result<Session, BoxError> {
    let mut session = Session::new("s", FORMAT);
    for line in lines {
        session.push(FORMAT.read(*line)?);
    }
    Ok(session)
}

/// Nanoseconds of checking a file, and of parsing its lines.
fn check(form: Form, effort: Effort) -> Result<Option<[f64; 2]>, BoxError> {
    let file = file(form, 10_000)?;
    let report = FileCheck::new().run(file.as_bytes(), |_| {})?;
    if !report.is_clean() {
        return Err("a valid file has findings".into());
    }
    let mut taken = [Vec::new(), Vec::new()];
    for _ in 0..effort.batches / 4 {
        taken[0].push(time(|| FileCheck::new().run(file.as_bytes(), |_| {})));
        taken[1].push(time(|| {
            let lines = file.lines().map(serde_json::from_str::<serde_json::Value>);
            lines.collect::<Result<Vec<_>, _>>()
        }));
    }
    Ok(Some(taken.map(|mut taken| median(&mut taken))))
}

pub(crate) fn check_claude_code(effort: Effort) -> Result<Option<[f64; 2]>, BoxError> {
    check(Form::ClaudeCode, effort)
}

pub(crate) fn check_openclaw(effort: Effort) -> Result<Option<[f64; 2]>, BoxError> {
    check(Form::OpenClaw, effort)
}
