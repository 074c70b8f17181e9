//! Real files: no false finding.
use tr_transcript::{Fault, FileCheck, FileFault, FileForm, FileReport};

const REPRESENTATIVE: &str = include_str!("../data/representative_messages.jsonl");
const TO_DO: &str = include_str!("../data/todowrite_examples.jsonl");
const SESSION_B: &str = include_str!("../data/session_b.jsonl");
const EDGE_CASES: &str = include_str!("../data/edge_cases.jsonl");
const OPENHANDS: &str = include_str!("../data/openhands-events.jsonl");

fn check(file: &str) -> FileReport {
    FileCheck::new().run(file.as_bytes(), |_| {}).unwrap()
}

#[test]
fn whole_files_have_no_finding() {
    for (file, records, messages) in [(REPRESENTATIVE, 12, 11), (TO_DO, 12, 10), (SESSION_B, 3, 3)]
    {
        let report = check(file);
        assert_eq!(report.form, FileForm::ClaudeCode);
        assert!(report.is_clean(), "{:?}", report.findings);
        assert_eq!(report.records, records);
        assert_eq!(report.messages, messages);
        assert_eq!(report.bytes.total, file.len() as u64);
    }
}

/// Its authors broke the lines with the results of two calls, and one more.
#[test]
fn a_broken_file_has_the_findings_that_its_authors_made() {
    let report = check(EDGE_CASES);
    let found: Vec<_> = report
        .findings
        .iter()
        .map(|found| {
            let id = found.finding.as_ref().and_then(|finding| finding.tool_use_id.as_deref());
            (found.line, found.fault, id)
        })
        .collect();
    let expected = [
        (9, FileFault::Message(Fault::IncompleteUse), Some("tool_edge_002")),
        (10, FileFault::UnreadMessage, None),
        (11, FileFault::UnreadMessage, None),
        (17, FileFault::Message(Fault::IncompleteUse), Some("toolu_todowrite_002")),
        (18, FileFault::Message(Fault::UnreadBlock), None),
    ];
    assert_eq!(found, expected);
    let error = report.findings[0].finding.as_ref().unwrap().provider_error().unwrap();
    assert!(error.contains("without `tool_result` blocks immediately after: tool_edge_002"));
}

#[test]
fn events_of_another_kind_are_not_judged() {
    let report = check(OPENHANDS);
    assert_eq!((report.form, report.records, report.found), (FileForm::Other, 10, 0));
}
