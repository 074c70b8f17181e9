//! The labelled sequences of `tests/data`, through the guard with its signals as they come.
mod sequence;

use sequence::{Sequence, replay};
use tr_loopguard::{LoopGuardLayer, Signals};

/// What the guard with its signals at their defaults makes of labelled sequences.
#[derive(Debug, Default)]
struct Score {
    missed: Vec<String>,
    wronged: Vec<String>,
}

async fn score(sequences: &[Sequence]) -> Score {
    let (mut stopped, mut score) = (0, Score::default());
    for sequence in sequences {
        let seen = replay(sequence, LoopGuardLayer::builder().signals(Signals::default())).await;
        match (sequence.is_loop, seen.refused.is_some()) {
            (true, true) => stopped += 1,
            (true, false) => score.missed.push(sequence.name.clone()),
            (false, true) => score.wronged.push(sequence.name.clone()),
            (false, false) => {}
        }
        // No call is refused without a warning before.
        assert!(
            seen.warned <= seen.refused.map(|at| at.saturating_sub(1)).or(seen.warned),
            "{}: {seen:?}",
            sequence.name
        );
        println!(
            "{:32} {:5} warned {:?}, refused {:?} of {}",
            sequence.name, sequence.is_loop, seen.warned, seen.refused, seen.calls
        );
    }
    let ratio = |part: usize, other: usize| part as f64 / (part + other) as f64;
    let (precision, recall) =
        (ratio(stopped, score.wronged.len()), ratio(stopped, score.missed.len()));
    println!("{} sequences: precision {precision:.2}, recall {recall:.2}", sequences.len());
    score
}

#[tokio::test(start_paused = true)]
async fn every_loop_is_stopped_and_nothing_else() {
    let sequences = Sequence::read(include_str!("../data/sequences.jsonl"));
    assert!(sequences.len() >= 40);
    let Score { missed, wronged } = score(&sequences).await;
    assert!(wronged.is_empty(), "stopped {wronged:?}");
    // Where the start of a turn is not known, a success gets a warning and is never refused.
    assert_eq!(missed, ["listing_without_turn"]);
}

/// These were labelled before anybody saw what the guard says of them. What it misses is listed
/// here, so that the list can only be changed on purpose.
#[tokio::test(start_paused = true)]
async fn an_adversary_s_sequences() {
    let sequences = Sequence::read(include_str!("../data/adversary.jsonl"));
    assert_eq!(sequences.len(), 25);
    let Score { missed, wronged } = score(&sequences).await;
    assert!(wronged.is_empty(), "stopped {wronged:?}");
    assert_eq!(
        missed,
        [
            // One answer to calls that all differ may be a list that is gone through.
            "re_read_with_other_ranges",
            "click_without_effect",
            "search_in_other_words",
            "subagent_that_asks_back",
            // A new call of a tool of which nothing is known may have changed the world.
            "thinking_aloud_between",
            "notes_of_the_same_failure",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn none_of_nine_calls_of_published_transcripts_is_refused() {
    let sequences = Sequence::read(include_str!("../data/transcripts.jsonl"));
    assert_eq!(sequences.iter().map(|sequence| sequence.calls.len()).sum::<usize>(), 9);
    for sequence in &sequences {
        for builder in [
            LoopGuardLayer::builder(),
            LoopGuardLayer::builder().signals(Signals::default()),
            LoopGuardLayer::builder().signals(Signals::default().count_transient(true)),
        ] {
            let seen = replay(sequence, builder).await;
            assert_eq!((seen.warned, seen.refused), (None, None), "{}", sequence.name);
        }
    }
}

/// Which calls each of the peers' failures comes to.
#[tokio::test(start_paused = true)]
async fn where_openclaw_s_detector_fails() {
    let sequences = Sequence::read(include_str!("../data/sequences.jsonl"));
    for (name, warned, refused) in [
        // Warned at 11 and blocked at 21 there.
        ("read_without_path", Some(1), Some(3)),
        // Never seen there.
        ("input_schema", Some(1), Some(3)),
        // Warned of and never blocked there.
        ("cycle_of_three", Some(9), Some(19)),
        // Blocked there.
        ("quiet_build_declared", None, None),
        ("quiet_build_waited_for", None, None),
        ("quiet_build_that_says_so", None, None),
        ("sleep_then_view", None, None),
        ("edit_then_same_failing_test", None, None),
        ("log_tail_that_moves", None, None),
        ("seven_identical", None, None),
    ] {
        let sequence = sequences.iter().find(|sequence| sequence.name == name).unwrap();
        let seen = replay(sequence, LoopGuardLayer::builder().signals(Signals::default())).await;
        assert_eq!((seen.warned, seen.refused), (warned, refused), "{name}");
    }
}
