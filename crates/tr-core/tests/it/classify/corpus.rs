//! The labelled corpus is classified without a miss.
use serde::Deserialize;
use std::collections::BTreeMap;
use tr_core::{Ran, SetClock, ToolError, classify};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    source: String,
    via: String,
    text: String,
    verdict: String,
    ran: Ran,
    code: String,
}

fn cases() -> Vec<Case> {
    let lines = include_str!("../../data/errors/corpus.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Verdict, whether it ran, and the code of what the tables found.
fn classify(case: &Case) -> (&'static str, Ran, String) {
    let text = &*case.text;
    let number = || text.parse().expect("a number");
    let error;
    let found = match &*case.via {
        "message" => classify::message(text),
        "mcp" => classify::mcp_is_error(text),
        "code" => {
            error = ToolError::new(text, "it went wrong");
            let found = classify::tool_error(&error);
            assert_eq!(found.end.code, text, "a tool's code stays its own");
            found
        }
        "json_rpc" => {
            let (code, message) = text.split_once(' ').expect("code and message");
            classify::json_rpc(code.parse().expect("a number"), message)
        }
        "http" => classify::http_response(number(), |_| None, &SetClock::at(0)),
        "grpc" => classify::grpc(i32::from(number()), None),
        via => panic!("unknown way: {via}"),
    };
    let code = match found.kind {
        Some(kind) => kind.code(),
        None => found.end.code,
    };
    (found.end.verdict.as_str(), found.end.ran, code.to_owned())
}

#[test]
fn corpus_is_classified_without_a_miss() {
    let cases = cases();
    let mut counts = BTreeMap::<&str, (u32, u32)>::new();
    let mut misses = Vec::new();
    for case in &cases {
        let (verdict, ran, code) = classify(case);
        let (right, all) = counts.entry(&case.verdict).or_default();
        *all += 1;
        if (verdict, ran, &*code) == (&*case.verdict, case.ran, &*case.code) {
            *right += 1;
        } else {
            misses.push(format!(
                "{:?} ({}, {})\n    want {} {:?} {}, got {verdict} {ran:?} {code}",
                case.text, case.via, case.source, case.verdict, case.ran, case.code
            ));
        }
    }
    for (verdict, (right, all)) in &counts {
        println!("{verdict}: {right} of {all}");
    }
    assert!(misses.is_empty(), "{} of {}:\n{}", misses.len(), cases.len(), misses.join("\n"));
    assert!(cases.len() >= 400, "the corpus shrank to {}", cases.len());
}

#[test]
fn corpus_has_no_error_twice() {
    let mut seen = std::collections::HashSet::new();
    for case in cases() {
        assert!(seen.insert((case.via, case.text.clone())), "{:?}", case.text);
    }
}
