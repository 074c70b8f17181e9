//! Corruptions seen in the wild, by name, and what the repair makes of them.
use crate::common::{
    self, FORMATS, anthropic, of, openai, output, response, result_block, results, says, step,
    tool, user, uses,
};
use tr_transcript::{
    ActionKind::{
        self, AddUnknown, MoveResult, OrphanToText, RemoveDuplicate, RemoveEmptyMessage,
        RemoveEmptyText, RemoveIncomplete, RemoveOrphan, RemoveSynthetic, RenameId,
    },
    Format, LossKind, OUTCOME_UNKNOWN, Repair, Transcript, Validator,
};

/// Repairs, checks that the result is valid and stays as it is, and gives back what was done.
fn preserve(transcript: &mut Transcript) -> Vec<ActionKind> {
    let result = Repair::preserve().plan(transcript).apply(transcript).unwrap();
    let validator = Validator::of(transcript);
    assert!(validator.is_valid(), "{:?}\n{}", validator.findings(), transcript.to_json());
    assert!(Repair::preserve().plan(transcript).is_empty(), "{}", transcript.to_json());
    assert_eq!(result.repaired, !result.repairs.is_empty());
    result.repairs.iter().map(|repair| repair.action).collect()
}

fn remove(transcript: &mut Transcript) -> Vec<(ActionKind, usize)> {
    let result = Repair::remove().plan(transcript).apply(transcript).unwrap();
    assert!(Repair::remove().plan(transcript).is_empty());
    result.repairs.iter().map(|repair| (repair.action, repair.message_index)).collect()
}

/// What answers what, in the order of the messages.
fn answers(transcript: &Transcript) -> Vec<(usize, &str)> {
    let messages = transcript.messages().iter().enumerate();
    messages.flat_map(|(at, message)| message.tool_results().map(move |id| (at, id))).collect()
}

fn unknown(format: Format, id: &str) -> String {
    match format {
        Format::AnthropicMessages => format!(
            r#"{{"type":"tool_result","tool_use_id":"{id}","content":"{OUTCOME_UNKNOWN}","is_error":true}}"#
        ),
        Format::OpenAiChat => tool(id, OUTCOME_UNKNOWN),
        Format::Gemini => response(id, OUTCOME_UNKNOWN).replace("output", "error"),
        _ => output(id, OUTCOME_UNKNOWN),
    }
}

/// An id that no other call has.
const RANDOM: &str = "call_a7Bq3xYz9Kd0";

#[test]
fn si_13_repair_orphaned_result_removes_it() {
    for format in FORMATS {
        let mut messages = vec![user("hi"), says("hello")];
        messages.extend(results(format, &[("ghost", "42")]));
        messages.push(user("so?"));
        let mut transcript = of(format, &messages);
        let plan = Repair::remove().plan(&transcript);
        let [loss] = plan.losses() else { panic!("{:?}", plan.losses()) };
        assert_eq!((loss.what, loss.message_index), (LossKind::Result, 2));
        assert_eq!(remove(&mut transcript), [(RemoveOrphan, 2), (RemoveEmptyMessage, 2)]);
        assert_eq!(transcript.len(), 3);
        assert!(Validator::of(&transcript).is_valid());
    }
}

#[test]
fn si_13_repair_orphaned_result_keeps_its_text() {
    for format in FORMATS {
        let mut messages = vec![user("hi"), says("hello")];
        messages.extend(results(format, &[("ghost", "42")]));
        let mut transcript = of(format, &messages);
        let plan = Repair::preserve().plan(&transcript);
        assert_eq!(plan.losses()[0].what, LossKind::Link);
        assert_eq!(preserve(&mut transcript), [OrphanToText]);
        assert_eq!(answers(&transcript), []);
        let title = "[result of a tool call that is not in this session: ghost]";
        // Gemini's results name their tool.
        let tool = if format == Format::Gemini { r"\n[name: read]" } else { "" };
        let text = format!(r"{title}{tool}\n42");
        assert!(transcript.to_json().contains(&text), "{}", transcript.to_json());
    }
}

#[test]
fn si_14_repair_incomplete_use_removes_it() {
    for format in FORMATS {
        let mut messages = [vec![user("go")], step(format, &["a", "b"])].concat();
        messages.extend(results(format, &[("a", "1")]));
        messages.push(user("hm"));
        let mut transcript = of(format, &messages);
        let plan = Repair::remove().plan(&transcript);
        let [loss] = plan.losses() else { panic!("{:?}", plan.losses()) };
        assert_eq!((loss.what, loss.tool.as_deref()), (LossKind::Call, Some("read")));
        // In a form of items, each use is a message.
        let at = 1 + usize::from(format == Format::OpenAiResponses);
        assert_eq!(remove(&mut transcript), [(RemoveIncomplete, at)]);
        let left: Vec<_> = transcript.messages()[1].tool_uses().collect();
        assert_eq!(left, ["a"]);
        assert!(Validator::of(&transcript).is_valid());
    }
}

#[test]
fn si_14_repair_incomplete_use_says_that_it_may_have_run() {
    for format in FORMATS {
        let mut messages = [vec![user("go")], step(format, &["a", "b"])].concat();
        messages.extend(results(format, &[("a", "1")]));
        messages.push(user("hm"));
        let mut transcript = of(format, &messages);
        assert_eq!(preserve(&mut transcript), [AddUnknown]);
        assert!(transcript.to_json().contains(&unknown(format, "b")));
        assert_eq!(Validator::of(&transcript).pending().count(), 0);
    }
}

/// The seed's own example of what is left of an assistant message: nothing, but it stays.
#[test]
fn remove_leaves_an_emptied_assistant_message_as_002_does() {
    let alone =
        r#"{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":{}}]}"#;
    let mut transcript = anthropic(&[alone, &user("hm")]);
    assert_eq!(remove(&mut transcript), [(RemoveIncomplete, 0)]);
    assert_eq!(transcript.messages()[0].raw(), r#"{"role":"assistant","content":[]}"#);
}

#[test]
fn actions_are_spelled_as_002_spells_them() {
    let mut messages = results(Format::AnthropicMessages, &[("a", "1")]);
    messages.extend([uses(Format::AnthropicMessages, &["b"]), user("hm")]);
    let transcript = of(Format::AnthropicMessages, &messages);
    let actions = serde_json::to_value(Repair::remove().plan(&transcript).actions()).unwrap();
    assert_eq!(
        actions,
        serde_json::json!([
            {"action": "remove_orphan", "messageIndex": 0, "toolUseId": "a"},
            {"action": "remove_empty_message", "messageIndex": 0},
            {"action": "remove_incomplete", "messageIndex": 0, "toolUseId": "b"},
        ])
    );
}

#[test]
fn killed_in_mid_tool_the_tail_is_left_alone() {
    for format in FORMATS {
        let mut transcript = of(format, &[user("go"), uses(format, &["a"])]);
        assert_eq!(preserve(&mut transcript), []);
        assert_eq!(remove(&mut transcript), []);
        // Unless somebody knows that nothing runs any more.
        let plan = Repair::preserve().close_tail().plan(&transcript);
        let _ = plan.apply(&mut transcript).unwrap();
        assert_eq!(answers(&transcript), [(2, "a")]);
    }
}

#[test]
fn killed_in_mid_tool_and_gone_on() {
    for format in FORMATS {
        let mut messages = [vec![user("go")], step(format, &["a", "b"])].concat();
        // Where a step is a run of items, the model's words would belong to it.
        let is_run = format == Format::OpenAiResponses;
        messages.push(if is_run { user("back again") } else { says("back again") });
        let mut transcript = of(format, &messages);
        assert_eq!(preserve(&mut transcript), [AddUnknown, AddUnknown]);
        let ids: Vec<_> = answers(&transcript).into_iter().map(|(_, id)| id).collect();
        assert_eq!(ids, ["a", "b"]);
    }
}

/// CASE-STUDY-001: seven hours of refusals because of one result.
#[test]
fn filter_truncates_a_call() {
    for format in FORMATS {
        let mut messages = vec![user("go"), says("I will")];
        messages.extend(results(format, &[("cut", "done")]));
        messages.push(user("hello?"));
        let mut transcript = of(format, &messages);
        assert!(!Validator::of(&transcript).is_valid());
        assert_eq!(preserve(&mut transcript), [OrphanToText]);
        assert!(transcript.to_json().contains("done"));
    }
}

#[test]
fn compaction_cuts_a_pair() {
    for format in FORMATS {
        let mut messages = vec![user("summary of what was")];
        messages.extend(results(format, &[("a", "kept"), ("b", "too")]));
        messages.push(uses(format, &["c"]));
        messages.extend(results(format, &[("c", "3")]));
        let mut transcript = of(format, &messages);
        assert_eq!(preserve(&mut transcript), [OrphanToText, OrphanToText]);
        assert!(transcript.to_json().contains("kept") && transcript.to_json().contains("too"));
    }
}

#[test]
fn duplicate_results() {
    for format in FORMATS {
        let id = "call_a7Bq3xYz9Kd0";
        let mut messages = vec![user("go"), uses(format, &[id])];
        messages.extend(results(format, &[(id, "same"), (id, "same"), (id, "other")]));
        let mut transcript = of(format, &messages);
        assert_eq!(preserve(&mut transcript), [RemoveDuplicate, OrphanToText]);
        assert_eq!(answers(&transcript).len(), 1);
        assert!(transcript.to_json().contains("other"));
    }
}

#[test]
fn real_beats_synthetic() {
    let openclaw = "[openclaw] missing tool result in session history; inserted synthetic error \
                    result for transcript repair.";
    for made_up in [OUTCOME_UNKNOWN, openclaw] {
        for format in FORMATS {
            let mut messages = vec![user("go"), uses(format, &[RANDOM])];
            messages.extend(results(format, &[(RANDOM, made_up)]));
            messages.push(user("hm"));
            messages.extend(results(format, &[(RANDOM, "real")]));
            let mut transcript = of(format, &messages);
            assert_eq!(
                preserve(&mut transcript),
                match format {
                    Format::AnthropicMessages | Format::Gemini => {
                        vec![MoveResult, RemoveSynthetic, RemoveEmptyMessage]
                    }
                    Format::OpenAiChat => vec![MoveResult, RemoveSynthetic],
                    // The real one may stay where it is.
                    _ => vec![RemoveSynthetic],
                }
            );
            let json = transcript.to_json();
            assert!(json.contains("real") && !json.contains(made_up), "{json}");
        }
    }
}

#[test]
fn reused_ids_are_rewritten_where_they_are_refused() {
    for format in FORMATS {
        let mut messages = vec![user("go")];
        for text in ["one", "two", "three"] {
            messages.push(uses(format, &["functions.read:0"]));
            messages.extend(results(format, &[("functions.read:0", text)]));
        }
        let mut transcript = of(format, &messages);
        let before = transcript.to_json();
        if format == Format::AnthropicMessages {
            // The use, and the message with its result.
            assert_eq!(preserve(&mut transcript), [RenameId; 4]);
            let ids: Vec<_> = answers(&transcript).into_iter().map(|(_, id)| id).collect();
            assert_eq!(ids, ["functions.read:0", "functions.read:0_r2", "functions.read:0_r3"]);
        } else {
            assert_eq!(preserve(&mut transcript), []);
            assert_eq!(transcript.to_json(), before);
        }
    }
}

#[test]
fn parallel_results_split_over_messages() {
    // Where results are messages, or items, they may.
    for format in [Format::AnthropicMessages, Format::Gemini] {
        let mut messages = [vec![user("go")], step(format, &["a", "b", "c"])].concat();
        for id in ["b", "a", "c"] {
            messages.extend(results(format, &[(id, id)]));
        }
        let mut transcript = of(format, &messages);
        let actions = preserve(&mut transcript);
        assert_eq!(actions, [MoveResult, MoveResult, RemoveEmptyMessage, RemoveEmptyMessage]);
        assert_eq!(answers(&transcript), [(2, "a"), (2, "b"), (2, "c")]);
        assert_eq!(transcript.len(), 3);
    }
}

#[test]
fn text_between_call_and_result() {
    for format in FORMATS {
        let mut messages = vec![user("go"), uses(format, &[RANDOM]), user("are you there?")];
        messages.extend(results(format, &[(RANDOM, "1")]));
        let mut transcript = of(format, &messages);
        if format == Format::OpenAiResponses {
            // This provider takes it.
            assert_eq!(Validator::of(&transcript).findings(), []);
            assert_eq!(preserve(&mut transcript), []);
            continue;
        }
        assert_eq!(preserve(&mut transcript)[0], MoveResult);
        assert_eq!(answers(&transcript), [(2, RANDOM)]);
        assert!(transcript.to_json().contains("are you there?"));
    }
}

#[test]
fn text_before_the_result_in_its_message() {
    let mixed = format!(
        r#"{{"role":"user","content":[{{"type":"text","text":"x"}},{}]}}"#,
        result_block("a", "1")
    );
    let mut transcript = anthropic(&[&uses(Format::AnthropicMessages, &["a"]), &mixed]);
    assert_eq!(preserve(&mut transcript), [MoveResult]);
    let swapped = format!(
        r#"{{"role":"user","content":[{},{{"type":"text","text":"x"}}]}}"#,
        result_block("a", "1")
    );
    assert_eq!(transcript.messages()[1].raw(), swapped);
}

/// Peers drop the real result and put a synthetic one in its place.
#[test]
fn openclaw_drops_a_real_result_that_precedes_its_call() {
    for format in FORMATS {
        let mut messages = results(format, &[(RANDOM, "precious")]);
        messages.extend([uses(format, &[RANDOM]), says("and so on")]);
        let mut transcript = of(format, &messages);
        assert_eq!(preserve(&mut transcript)[0], MoveResult);
        let json = transcript.to_json();
        assert!(json.contains("precious") && !json.contains(OUTCOME_UNKNOWN), "{json}");
    }
}

/// Peers synthesise results for tools that are still running.
#[test]
fn openclaw_synthesises_results_for_a_live_tail() {
    for format in FORMATS {
        let mut messages = vec![user("go"), uses(format, &["a"]), user("broken")];
        messages.extend(step(format, &["b", "c"]));
        let mut transcript = of(format, &messages);
        assert_eq!(preserve(&mut transcript), [AddUnknown]);
        assert_eq!(Validator::of(&transcript).pending().collect::<Vec<_>>(), ["b", "c"]);
        // A result that came too early is no reason to make up the other.
        messages.splice(0..0, results(format, &[("b", "early")]));
        let mut transcript = of(format, &messages);
        preserve(&mut transcript);
        let json = transcript.to_json();
        assert!(json.contains("early") && json.matches(OUTCOME_UNKNOWN).count() == 1, "{json}");
    }
}

/// Peers stamp their repairs with the time, and lose every prompt cache.
#[test]
fn openclaw_stamps_the_time() {
    for format in FORMATS {
        let broken =
            of(format, &[uses(format, &["a"]), user("x"), uses(format, &["b"]), user("y")]);
        let repaired = |mut transcript: Transcript| {
            preserve(&mut transcript);
            transcript.to_json()
        };
        assert_eq!(repaired(broken.clone()), repaired(broken.clone()));
        // What follows does not change how the beginning is repaired.
        let mut longer = broken.clone();
        longer.push(common::message(format, user("z")));
        let (short, long) = (repaired(broken), repaired(longer));
        assert!(long.starts_with(short.strip_suffix(']').unwrap()));
    }
}

#[test]
fn empty_texts_go() {
    let format = Format::AnthropicMessages;
    let calls = r#"{"role":"assistant","content":[{"type":"text","text":""},{"type":"tool_use","id":"a","name":"x","input":{}}]}"#;
    let mut messages = vec![calls.to_owned()];
    messages.extend(results(format, &[("a", "1")]));
    messages.extend([user(" "), says("ok"), r#"{"role":"user","content":[]}"#.to_owned()]);
    let mut transcript = of(format, &messages);
    assert_eq!(
        preserve(&mut transcript),
        [RemoveEmptyMessage, RemoveEmptyMessage, RemoveEmptyText]
    );
    assert_eq!(transcript.len(), 3);
}

#[test]
fn thinking_is_never_edited() {
    let thinking = r#"{"type":"thinking","thinking":"hm\u00e9  ","signature":"EqQB\/"}"#;
    let calls = format!(
        r#"{{"role":"assistant","content":[{thinking},{{"type":"text","text":""}},{{"type":"tool_use","id":"a","name":"x","input":{{}}}},{{"type":"tool_use","id":"a","name":"x","input":{{}}}}]}}"#
    );
    for repair in [Repair::preserve(), Repair::remove()] {
        let mut transcript = anthropic(&[&calls, &user("x")]);
        let _ = repair.plan(&transcript).apply(&mut transcript).unwrap();
        assert_ne!(transcript.messages()[0].raw(), calls);
        assert!(transcript.messages()[0].raw().contains(thinking));
    }
}

#[test]
fn an_orphan_among_good_results_follows_them() {
    let calls = uses(Format::OpenAiChat, &["a", "b"]);
    let mut transcript = openai(&[&calls, &tool("a", "1"), &tool("x", "2"), &tool("b", "3")]);
    assert_eq!(preserve(&mut transcript), [OrphanToText]);
    assert_eq!(answers(&transcript), [(1, "a"), (2, "b")]);
    assert!(transcript.messages()[3].raw().contains("2"));
}
