//! Whatever happens to a session: it is mended so that its provider takes it, or it is not judged;
//! nothing is lost that was not told, and what is not mended stays as it is.
mod account;
mod agents;
mod change;
mod forms;
mod session;
mod story;
mod verdict;

use super::provider::{Form, judge};
use session::Session;
use std::ops::Range;
use story::Words;
use verdict::{Case, Tally};

/// What others published, as the agent wrote it.
const REAL: [&str; 3] = [
    include_str!("../../../../tr-transcript/tests/it/data/todowrite_examples.jsonl"),
    include_str!("../../../../tr-transcript/tests/it/data/representative_messages.jsonl"),
    include_str!("../../../../tr-transcript/tests/it/data/session_b.jsonl"),
];

/// Which mutations: the first 2,000, or those that are asked for, as `N` or as `FROM..TO`.
fn wanted() -> Range<u64> {
    let Ok(asked) = std::env::var("TR_MUTATIONS") else { return 0..2_000 };
    let number = |text: &str| text.parse().expect("a number");
    match asked.split_once("..") {
        Some((from, to)) => number(from)..number(to),
        None => 0..number(&asked),
    }
}

fn seed(words: &mut Words) -> Session {
    let number = words.random.usize(0..Form::ALL.len() + 1);
    match Form::ALL.get(number) {
        Some(form) => {
            let story = words.story();
            Session::of(*form, &story, words)
        }
        None => Session::read(REAL[words.random.usize(0..REAL.len())]),
    }
}

fn case(number: u64) -> Case {
    let mut words = Words::new(number);
    let mut session = seed(&mut words);
    let mut done = Vec::new();
    let mut bytes = None;
    for _ in 0..words.random.usize(1..4) {
        if words.random.u8(0..4) > 0 || bytes.is_some() {
            done.push(change::change(&mut session, &mut words));
        } else {
            let mut damaged = session.bytes();
            done.push(change::damage(&mut damaged, &mut words.random));
            bytes = Some(damaged);
        }
    }
    let bytes = bytes.unwrap_or_else(|| session.bytes());
    Case { name: format!("{number:06}.{}", session.name()), form: session.form, done, bytes }
}

#[test]
fn what_is_mended_is_taken_by_its_provider_and_nothing_is_lost_untold() {
    let mut tally = Tally::default();
    let numbers: Vec<_> = wanted().collect();
    for batch in numbers.chunks(4_000) {
        let cases: Vec<_> = batch.iter().map(|number| case(*number)).collect();
        tally.play(&cases);
    }
    println!("{tally}");
    tally.assert_none_wrong();
}

#[test]
fn sessions_as_they_were_written_are_clean_and_the_second_opinion_agrees() {
    let mut cases = Vec::new();
    for number in 0..90 {
        let mut words = Words::new(1_000_000 + number);
        let story = words.story();
        let form = Form::ALL[number as usize % Form::ALL.len()];
        let session = Session::of(form, &story, &mut words);
        let bytes = session.bytes();
        let told = judge(form, &bytes);
        assert!(
            told.faults.is_empty() && told.members.is_empty() && told.open.is_empty(),
            "{form:?} {told:?}"
        );
        cases.push(Case {
            name: format!("{number}.{}", session.name()),
            form,
            done: vec![],
            bytes,
        });
    }
    let mut tally = Tally::default();
    tally.play(&cases);
    tally.assert_none_wrong();
    assert_eq!(tally.clean, 90, "{tally}");
}
