//! An outline agrees with what the whole record says.
use super::{Outline, outline, read};
use crate::{
    file::{
        entry::{Entry, What},
        form::FileForm,
    },
    format::Format,
    message::{Block, Kind, Unknown},
};
use proptest::{collection::vec, prelude::*, sample::select};
use std::cell::Cell;

type Member = (&'static str, &'static str);

const PARTS: [&[Member]; 8] = [
    &[("type", r#""text""#), ("text", r#""so""#)],
    &[("type", r#""text""#), ("text", r#""\n""#)],
    &[("type", r#""tool_use""#), ("id", r#""a""#), ("name", r#""pay""#), ("input", "{}")],
    &[("type", r#""tool_result""#), ("tool_use_id", r#""a""#), ("content", r#""ok""#)],
    &[("type", r#""tool_result""#), ("tool_use_id", r#""a""#), ("content", "[]")],
    &[("type", r#""thinking""#), ("thinking", r#""hm""#), ("signature", r#""s""#)],
    &[("type", r#""image""#), ("source", "{}")],
    &[("type", r#""toolCall""#), ("id", r#""a""#), ("name", r#""pay""#), ("arguments", "{}")],
];

/// What may stand in a part beside that, in the place of it, or once more.
const OF_PARTS: [Member; 40] = [
    ("type", "1"),
    ("type", "null"),
    ("type", r#""te\u0078t""#),
    ("type", r#""spell""#),
    ("type", r#""web_search_tool_result""#),
    ("text", r#""""#),
    ("text", r#"" \u00a0""#),
    ("text", r#""\ud800""#),
    ("text", r#""a\ud800""#),
    ("text", r#""o\ud800""#),
    ("text", "null"),
    ("text", "1"),
    ("text", r#""outcome unknown, may have run""#),
    ("text", r#""\u006futcome unknown, may have run""#),
    ("text", r#""[openclaw] missing tool result in session history\n""#),
    ("id", r#""""#),
    ("id", r#""a b""#),
    ("id", "null"),
    ("id", "1"),
    ("name", r#""""#),
    ("name", "null"),
    ("name", "2"),
    ("input", "null"),
    ("input", "[]"),
    ("input", r#"{"a":[1,{"b":"\\"}]}"#),
    ("tool_use_id", "null"),
    ("content", "null"),
    ("content", "1"),
    ("content", r#""outcome unknown, may have run""#),
    ("content", r#"[{"type":"text","text":"outcome unknown, may have run"}]"#),
    ("content", r#"[{"text":"outcome unknown, may have run"},{}]"#),
    ("content", r#"[{"text":"outcome unknown, may have run","text":"b"}]"#),
    ("is_error", "true"),
    ("arguments", r#""{}""#),
    ("arguments", "null"),
    ("thoughtSignature", r#""s""#),
    ("citations", "[]"),
    ("isSystemPrompt", "true"),
    ("cache_control", "{}"),
    ("new", "1"),
];

const OF_MESSAGES: [Member; 26] = [
    ("id", r#""msg""#),
    ("id", "null"),
    ("role", r#""user""#),
    ("role", r#""wizard""#),
    ("role", "null"),
    ("content", r#""so""#),
    ("content", r#""""#),
    ("content", r#"" ""#),
    ("content", "[]"),
    ("content", "{}"),
    ("content", "null"),
    ("content", r#""outcome unknown, may have run""#),
    ("model", r#""claude""#),
    ("model", r#""gpt""#),
    ("usage", r#"{"a":1}"#),
    ("new", r#""new""#),
    ("new", "[]"),
    ("toolCallId", r#""a""#),
    ("toolCallId", "null"),
    ("toolName", r#""pay""#),
    ("stopReason", r#""error""#),
    ("stopReason", r#""stop""#),
    ("api", r#""anthropic-messages""#),
    ("api", r#""x""#),
    ("text", r#""so""#),
    ("tool_calls", "null"),
];

const OF_LINES: [Member; 31] = [
    ("type", r#""reset""#),
    ("subtype", r#""compact_boundary""#),
    ("subtype", "null"),
    ("leafUuid", r#""a""#),
    ("summary", r#""a""#),
    ("firstKeptEntryId", r#""a""#),
    ("firstKeptEntryIndex", "1"),
    ("type", r#""system""#),
    ("type", "null"),
    ("uuid", r#""u""#),
    ("uuid", "null"),
    ("uuid", "1"),
    ("parentUuid", r#""p""#),
    ("parentUuid", "null"),
    ("id", r#""u""#),
    ("id", "null"),
    ("parentId", r#""p""#),
    ("parentId", "null"),
    ("parentId", r#""\u0070""#),
    ("isSidechain", "true"),
    ("isSidechain", "false"),
    ("isSidechain", "null"),
    ("isApiErrorMessage", "true"),
    ("isVisibleInTranscriptOnly", "true"),
    ("message", "null"),
    ("message", r#"{"role":"user","content":"so"}"#),
    ("new", "[1.5e3,-0,null,true]"),
    ("new", "01"),
    ("new", r#""\x""#),
    ("n\\u0065w", "1"),
    ("text", r#""so""#),
];

/// An object of some of these members, in any order.
fn object(
    own: Vec<(&'static str, String)>,
    others: &'static [Member],
    most: usize,
) -> impl Strategy<Value = String> {
    vec(select(others), 0..=most).prop_flat_map(move |others| {
        let others = others.into_iter().map(|(name, value)| (name, value.to_owned()));
        let all: Vec<_> = own.iter().cloned().chain(others).collect();
        Just(all).prop_shuffle().prop_map(|all| {
            let all: Vec<_> =
                all.iter().map(|(name, value)| format!(r#""{name}":{value}"#)).collect();
            format!("{{{}}}", all.join(","))
        })
    })
}

fn part() -> impl Strategy<Value = String> {
    select(&PARTS[..]).prop_flat_map(|members| {
        let own = members.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        object(own, &OF_PARTS, 1)
    })
}

fn message() -> impl Strategy<Value = String> {
    let role = select(&["user", "assistant", "assistant", "toolResult"][..]);
    let parts = prop_oneof![vec(part(), 0..4), vec(part(), 1..2)];
    (role, parts, any::<bool>()).prop_flat_map(|(role, parts, has_content)| {
        let mut own = vec![("role", format!("\"{role}\""))];
        if has_content {
            own.push(("content", format!("[{}]", parts.join(","))));
        }
        object(own, &OF_MESSAGES, 2)
    })
}

fn line() -> impl Strategy<Value = String> {
    let kind = select(&["user", "assistant", "message"][..]);
    (kind, message()).prop_flat_map(|(kind, message)| {
        object(vec![("type", format!("\"{kind}\"")), ("message", message)], &OF_LINES, 3)
    })
}

/// All of an entry that a check looks at.
fn seen(entry: &Entry) -> String {
    let Entry { id, link, what } = entry;
    let block = |block: &Block| {
        let kind = match &block.kind {
            Kind::Use { id, id_at, .. } => format!("use {id:?} {}", id_at.is_some()),
            Kind::Result { id, synthetic, .. } => format!("result {id:?} {synthetic}"),
            kind => format!("{kind:?}"),
        };
        (kind, block.unknown.filter(|it| *it == Unknown::Content), block.refused.clone())
    };
    let what = match what {
        What::Message { message, group } => {
            let blocks: Vec<_> = message.blocks().iter().map(block).collect();
            let unknown = message.body.unknown.filter(|it| *it == Unknown::Content);
            let shown =
                (message.role(), group, message.body.answered_in, unknown, message.refused());
            format!("{shown:?} {blocks:?}")
        }
        what => format!("{what:?}"),
    };
    format!("{id:?} {link:?} {what}")
}

thread_local! {
    static READ: Cell<u32> = const { Cell::new(0) };
}

fn agrees(form: FileForm, record: &str) -> Result<(), TestCaseError> {
    let Some(Outline { entry, is_own, .. }) = outline(form, record) else {
        return Ok(());
    };
    prop_assert!(is_own || !form.owns(record), "{:?} {}", form, record);
    READ.set(READ.get() + 1);
    prop_assert!(serde_json::from_str::<serde::de::IgnoredAny>(record).is_ok(), "{}", record);
    prop_assert_eq!(seen(&entry), seen(&Entry::read(form, record)), "{:?} {}", form, record);
    Ok(())
}

#[test]
fn an_outline_says_what_the_record_says() {
    let forms = [FileForm::ClaudeCode, FileForm::ClaudeSubagent, FileForm::OpenClaw { version: 3 }];
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(8_000) };
    proptest!(config, |(line in line(), message in message())| {
        for form in forms {
            agrees(form, &line)?;
        }
        agrees(FileForm::Messages(Format::AnthropicMessages), &message)?;
    });
    // Those that are not understood show nothing.
    assert!(READ.get() > 2_000, "{}", READ.get());
}

const MOST: usize = 10;

/// Of a message with too many blocks or members nothing is kept.
#[test]
fn a_message_of_too_much_is_reported() {
    let message = |blocks: &str| format!(r#"{{"role":"assistant","content":[{blocks}]}}"#);
    let form = FileForm::Messages(Format::AnthropicMessages);
    let is_too_much = |message: &str| read(form, message, MOST).map(|it| it.is_too_much);
    for block in ["1", "{}", r#"{"type":"spell"}"#, r#"{"type":"text","text":"a"}"#] {
        let blocks = |count: usize| message(&vec![block; count].join(","));
        assert_eq!(is_too_much(&blocks(MOST + 1)), Some(true), "{block}");
        assert_ne!(is_too_much(&blocks(MOST)), Some(true), "{block}");
    }
    let members = |count: usize| {
        let members: Vec<_> = (0..count).map(|n| format!("\"m{n}\":1")).collect();
        message(&format!("{{{}}}", members.join(",")))
    };
    assert_eq!(is_too_much(&members(MOST + 1)), Some(true));
    assert_eq!(is_too_much(&members(MOST)), Some(false));
}
