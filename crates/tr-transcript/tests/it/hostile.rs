//! Messages of hundreds of thousands of parts: memory and allocations grow with the text, and no
//! faster.
use tr_testkit::alloc;
use tr_transcript::{FileCheck, FilePlanner, Repair, SessionFile};

/// The parts of which one message is made, and the most that a check holds for each byte of them.
const PARTS: [(&str, u64); 7] = [
    ("1", 24),
    ("{}", 24),
    (r#"{"type":"spell"}"#, 16),
    (r#"{"type":"thinking","thinking":"a"}"#, 20),
    (r#"{"type":"text","text":""}"#, 50),
    (r#"{"type":"tool_use","id":"t","name":"a","input":{}}"#, 32),
    (r#"{"type":"tool_result","tool_use_id":"t","content":""}"#, 28),
];

fn file(part: &str, bytes: usize) -> Vec<u8> {
    let parts = vec![part; bytes / (part.len() + 1)].join(",");
    let role = if part.contains("tool_result") { "user" } else { "assistant" };
    format!(
        "{{\"role\":\"user\",\"content\":\"go\"}}\n{{\"role\":\"{role}\",\"content\":[{parts}]}}\n"
    )
    .into_bytes()
}

fn check(file: &[u8]) {
    let report = FileCheck::in_memory(file.len()).with_members().run(file, |_| {}).unwrap();
    assert_eq!(report.messages, 2);
}

fn plan(file: &[u8]) {
    let file = SessionFile::read(file);
    for repair in [Repair::preserve(), Repair::remove()] {
        drop(file.plan(repair));
    }
}

#[test]
fn what_a_message_of_many_parts_takes_grows_with_its_text() {
    const BYTES: usize = 1 << 17;
    for (part, most) in PARTS {
        let (one, two) = (file(part, BYTES), file(part, 2 * BYTES));
        for (name, work) in [("check", check as fn(&[u8])), ("plan", plan)] {
            let ((), peak) = alloc::peak(|| work(&one));
            let per_byte = peak / BYTES as u64;
            println!("{name} of {part}: {per_byte} bytes for each byte");
            if name == "check" {
                assert!(per_byte <= most, "{name} of {part}: {per_byte} bytes for each byte");
            }
            let bytes = |file: &[u8]| alloc::count(|| work(file)).bytes;
            let (once, twice) = (bytes(&one), bytes(&two));
            assert!(twice <= 2 * once + once / 4, "{name} of {part}: {once}, {twice}");
        }
    }
}

/// A line of a rollout that names a call without a result, again and again, and is no outcome.
fn rollout(bytes: usize) -> Vec<u8> {
    let names = vec![r#""call_1""#; bytes / 9].join(",");
    let says = |members: &str| {
        format!(
            r#"{{"timestamp":"t","type":"response_item","payload":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"go"}}]{members}}}}}"#
        )
    };
    let call = r#"{"timestamp":"t","type":"response_item","payload":{"type":"function_call","name":"pay","arguments":"{}","call_id":"call_1"}}"#;
    let meta = r#"{"timestamp":"t","type":"session_meta","payload":{"id":"s","cwd":"/"}}"#;
    let (go, many) = (says(""), says(&format!(r#","names":[{names}]"#)));
    format!("{meta}\n{go}\n{call}\n{many}\n{go}\n").into_bytes()
}

#[test]
fn a_line_that_names_a_call_many_times_is_read_once() {
    let read = |size| {
        let file = rollout(size);
        let count = alloc::count(|| {
            let plan = FilePlanner::new(Repair::preserve()).whole_up_to(1).plan(&file, |_| {});
            assert!(plan.named_elsewhere.is_none());
        });
        count.count
    };
    let (few, many) = (read(1 << 13), read(1 << 14));
    assert!(many <= few + 100, "{few}, {many}");
}
