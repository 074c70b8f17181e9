//! How fast sessions are checked: ratios of one run, and the times that the specification aims at.
//!
//! `cargo run --release -p tr-integrity --example session_figures`
use std::{hint::black_box, io::Read, time::Duration};
use tokio::time::Instant;
use tr_core::BoxError;
use tr_integrity::{FileCheck, Format, Operation, Repair, Session, Transcript, Validator};
use tr_testkit::sessions::{Form, SessionLines};

/// The least that `work` takes; other programs on the machine only add.
fn least<T>(mut work: impl FnMut() -> T) -> Duration {
    let time = |_| {
        let start = Instant::now();
        black_box(work());
        start.elapsed()
    };
    (0..9).map(time).min().unwrap_or_default()
}

fn file(form: Form, bytes: u64) -> Result<String, BoxError> {
    let mut file = String::new();
    SessionLines::new(form, bytes).read_to_string(&mut file)?;
    Ok(file)
}

fn main() -> Result<(), BoxError> {
    for form in [Form::ClaudeCode, Form::OpenClaw, Form::Anthropic] {
        let file = file(form, 6_500_000)?;
        let check = least(|| FileCheck::new().run(file.as_bytes(), |_| {}));
        let parse = least(|| -> Vec<serde_json::Value> {
            file.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
        });
        let ratio = check.as_secs_f64() / parse.as_secs_f64();
        println!("P16 {form:?}: check ÷ parsing {} lines: {ratio:.2}", file.lines().count());
    }
    let text = file(Form::Anthropic, 53_000_000)?;
    let format = Format::AnthropicMessages;
    let messages: Vec<_> = text.lines().filter_map(|line| format.read(line).ok()).collect();
    // A step and its result, so that the last message leaves nothing open.
    let append = |len: usize| {
        let mut validator = Validator::new(format);
        messages[..len].iter().for_each(|message| validator.push(message));
        let next = &messages[len..len + 600];
        let start = Instant::now();
        next.iter().for_each(|message| validator.push(message));
        start.elapsed()
    };
    let fastest = |len| (0..9).map(|_| append(len)).min().unwrap_or_default();
    let (short, long) = (fastest(100), fastest(100_000));
    println!("P16 append at 100,000 ÷ at 100: {:.2}", long.as_secs_f64() / short.as_secs_f64());

    let json =
        format!("[{}]", messages[..1_000].iter().map(|m| m.raw()).collect::<Vec<_>>().join(","));
    let transcript = Transcript::read_as(format, &json)?;
    let session = Session::load("s", transcript.clone());
    println!(
        "1,000 messages: validation {:?} (5 ms), repair {:?} (50 ms), checkpoint and rollback {:?} (30 ms)",
        least(|| Validator::of(&transcript)),
        least(|| Repair::preserve().plan(&transcript)),
        least(|| {
            let mut session = session.clone();
            let checkpoint = session.checkpoint(Operation::Manual, 0);
            session.rollback(&checkpoint.id, 1)
        })
    );
    Ok(())
}
