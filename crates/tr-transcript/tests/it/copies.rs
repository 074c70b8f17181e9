//! Results that say the same: which of them is a copy, and which another call's.
use crate::common::*;
use tr_transcript::{
    ActionKind::{self, OrphanToText, RemoveDuplicate},
    Format, LossKind, Repair, Transcript, Validator,
};

const RANDOM: &str = "call_a7Bq3xYz9Kd0";

fn repaired(mut transcript: Transcript) -> (Vec<ActionKind>, Vec<LossKind>, String) {
    let plan = Repair::preserve().plan(&transcript);
    let losses = plan.losses().iter().map(|loss| loss.what).collect();
    let result = plan.apply(&mut transcript).unwrap();
    assert_eq!(Validator::of(&transcript).findings(), [], "{}", transcript.to_json());
    assert!(Repair::preserve().plan(&transcript).is_empty());
    (result.repairs.iter().map(|it| it.action).collect(), losses, transcript.to_json())
}

/// The call of the second payment is lost; what it answered says what the first did.
#[test]
fn the_receipt_of_a_second_payment_is_no_copy_of_the_first() {
    for format in FORMATS {
        for id in ["call_0", "functions.pay_1", RANDOM] {
            for between in [says("now order 2"), user("now order 2")] {
                let mut messages = vec![user("pay 1, then 2")];
                messages.extend(step(format, &[id]));
                messages.extend(results(format, &[(id, "paid")]));
                messages.push(between);
                messages.extend(results(format, &[(id, "paid")]));
                messages.push(user("done?"));
                let (actions, losses, text) = repaired(of(format, &messages));
                assert_eq!(actions, [OrphanToText], "{format:?} {id}");
                assert_eq!(losses, [LossKind::Link]);
                assert_eq!(text.matches("paid").count(), 2, "{text}");
            }
        }
    }
}

/// Beside the first, it may still be another call's, if ids are counted up.
#[test]
fn beside_the_first_only_a_random_id_tells_a_copy() {
    for format in FORMATS {
        for (id, done) in
            [("call_0", OrphanToText), ("toolu1", OrphanToText), (RANDOM, RemoveDuplicate)]
        {
            let mut messages = vec![user("pay 1, then 2")];
            messages.extend(step(format, &[id]));
            messages.extend(results(format, &[(id, "paid"), (id, "paid")]));
            messages.push(user("done?"));
            let (actions, _, text) = repaired(of(format, &messages));
            assert_eq!(actions, [done], "{format:?} {id}");
            let said = if done == OrphanToText { 2 } else { 1 };
            assert_eq!(text.matches("paid").count(), said, "{text}");
        }
    }
}

/// An id that was given out again names two calls, however it looks.
#[test]
fn an_id_of_two_calls_tells_no_copy() {
    let format = Format::OpenAiChat;
    let mut messages = vec![user("pay twice")];
    for _ in 0..2 {
        messages.extend(step(format, &[RANDOM]));
        messages.extend(results(format, &[(RANDOM, "paid")]));
    }
    messages.extend(results(format, &[(RANDOM, "paid")]));
    messages.push(user("done?"));
    let mut transcript = of(format, &messages);
    let _ = Repair::preserve().plan(&transcript).apply(&mut transcript).unwrap();
    assert_eq!(transcript.to_json().matches("paid").count(), 3, "{}", transcript.to_json());
}

/// What says that it failed is no copy of what does not.
#[test]
fn a_failed_result_is_no_copy_of_another() {
    let one = result_block(RANDOM, "paid");
    let other = one.replace('}', r#","is_error":true}"#);
    let both = format!(r#"{{"role":"user","content":[{one},{other}]}}"#);
    let step = uses(Format::AnthropicMessages, &[RANDOM]);
    let (actions, ..) = repaired(anthropic(&[&user("go"), &step, &both]));
    assert_eq!(actions, [OrphanToText]);
}
