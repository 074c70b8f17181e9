//! Every corruption seen in the wild, in both harnesses' files.
use super::make::{Act, Kind, file};
use tr_transcript::{
    FileActionKind, FileFault, OUTCOME_UNKNOWN, Repair, SessionFile, Severity, SkipReason,
};

const KINDS: [Kind; 2] = [Kind::ClaudeCode, Kind::OpenClaw(3)];

/// A turn, a step with two calls, an answer, another turn.
fn lines(kind: Kind) -> Vec<String> {
    let acts = [Act::Step { calls: 2, order: 0 }, Act::Say, Act::Turn, Act::Say];
    file(kind, &acts).lines().map(str::to_owned).collect()
}

fn at(lines: &[String], what: &str) -> usize {
    lines.iter().position(|line| line.contains(what)).unwrap()
}

fn bytes(lines: &[String]) -> Vec<u8> {
    lines.iter().flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

/// Repairs a file that is at fault; it is whole then, and one more repair changes nothing.
fn repaired(file: Vec<u8>, fault: FileFault) -> (SessionFile, String) {
    let mut session = SessionFile::read(file);
    let findings = session.check().findings;
    assert!(findings.iter().any(|finding| finding.fault == fault), "{fault:?}: {findings:?}");
    let plan = session.plan(Repair::preserve());
    session.apply(plan).unwrap();
    let text = String::from_utf8(session.to_bytes()).unwrap();
    assert!(session.check().is_clean(), "{:?}\n{text}", session.check().findings);
    assert!(session.plan(Repair::preserve()).is_empty());
    (session, text)
}

const fn unanswered() -> FileFault {
    FileFault::Message(tr_transcript::Fault::IncompleteUse)
}

#[test]
fn a_missing_result_is_unknown_and_other_lines_stay() {
    for kind in KINDS {
        let mut lines = lines(kind);
        let lost = at(&lines, "answer 2.1;");
        lines.remove(lost);
        let (_, text) = repaired(bytes(&lines), unanswered());
        assert_eq!(text.matches(OUTCOME_UNKNOWN).count(), 1);
        let changed = lines.iter().filter(|line| !text.contains(&***line)).count();
        // Those behind the new line, and behind the lost one, are linked anew.
        assert!((1..=2).contains(&changed), "{text}");
    }
}

#[test]
fn a_result_before_its_call_moves_home() {
    for kind in KINDS {
        let mut lines = lines(kind);
        let result = lines.remove(at(&lines, "answer 2.1;"));
        let lost = at(&lines, "turn 0");
        lines.insert(lost, result);
        let file = bytes(&lines);
        let mut session = SessionFile::read(&*file);
        let plan = session.plan(Repair::preserve());
        session.apply(plan).unwrap();
        assert!(session.check().is_clean());
        let text = String::from_utf8(session.to_bytes()).unwrap();
        assert!(text.contains("answer 2.1;") && !text.contains(OUTCOME_UNKNOWN), "{text}");
    }
}

#[test]
fn a_second_result_goes_and_the_entry_behind_it_is_linked_anew() {
    for kind in KINDS {
        let mut lines = lines(kind);
        // One that no other call can have.
        lines.iter_mut().for_each(|line| *line = line.replace("call_2_1", "call_2a7b3c9d2"));
        let result = at(&lines, "answer 2.1;");
        let again = lines[result].clone();
        // The copy is a child of the result.
        let value: serde_json::Value = serde_json::from_str(&again).unwrap();
        let (name, parent) =
            if kind == Kind::ClaudeCode { ("uuid", "parentUuid") } else { ("id", "parentId") };
        let mut copy = value.clone();
        copy[parent] = value[name].clone();
        copy[name] = "ffffffff".into();
        lines.insert(result + 1, copy.to_string());
        lines[result + 2] = lines[result + 2].replace(
            &format!("\"{parent}\":{}", value[name]),
            &format!("\"{parent}\":\"ffffffff\""),
        );
        let fault = FileFault::Message(tr_transcript::Fault::SeveralResults);
        let (_, text) = repaired(bytes(&lines), fault);
        assert!(!text.contains("ffffffff"), "{text}");
    }
}

#[test]
fn a_torn_line_with_the_next_glued_on_is_cut_off() {
    for kind in KINDS {
        let mut lines = lines(kind);
        let torn = at(&lines, "turn 0");
        let next = lines.remove(torn + 1);
        let half = lines[torn].len() / 2;
        lines[torn] = format!("{}{next}", &lines[torn][..half]);
        let mut session = SessionFile::read(bytes(&lines));
        let plan = session.plan(Repair::preserve());
        assert_eq!(&*plan.dropped[0].bytes, &lines[torn].as_bytes()[..half]);
        session.apply(plan).unwrap();
        assert!(session.check().is_clean());
        assert!(String::from_utf8(session.to_bytes()).unwrap().contains("answer 2.0;"));
    }
}

#[test]
fn glued_records_nul_runs_and_a_torn_end_are_mended() {
    for kind in KINDS {
        let lines = lines(kind);
        let mut file = bytes(&lines);
        let end = file.iter().position(|&byte| byte == b'\n').unwrap();
        file.remove(end);
        let (_, text) = repaired(file, FileFault::Glued);
        assert_eq!(text.into_bytes(), bytes(&lines));

        let mut file = bytes(&lines);
        drop(file.splice(end..end, [0; 300]));
        let (_, text) = repaired(file, FileFault::Skipped(SkipReason::Nul));
        assert_eq!(text.into_bytes(), bytes(&lines));

        let mut file = bytes(&lines);
        file.extend_from_slice(b"{\"type\":\"mess");
        let (_, text) = repaired(file, FileFault::Skipped(SkipReason::Torn));
        assert_eq!(text.into_bytes(), bytes(&lines));
    }
}

/// Found outside: the halves were told as torn, and the result in them became unknown.
#[test]
fn raw_line_breaks_in_a_string_are_written_as_json_has_them() {
    for (kind, break_) in KINDS.into_iter().zip(["\n", "\r\n"]) {
        let lines = lines(kind);
        let answer = at(&lines, "answer 2.1;");
        let json = break_.escape_default().to_string();
        for text in ["answer {|} 2.1;", "answer |}| 2.1;|", "|answer 2.1;", r"answer | \n|\\| 2.1;"]
        {
            let broken = |with: &str| {
                let mut lines = lines.clone();
                lines[answer] = lines[answer].replace("answer 2.1;", &text.replace('|', with));
                bytes(&lines)
            };
            let (session, text) =
                repaired(broken(break_), FileFault::Skipped(SkipReason::LineBreak));
            assert_eq!(text.into_bytes(), broken(&json));
            assert!(!String::from_utf8(session.to_bytes()).unwrap().contains(OUTCOME_UNKNOWN));
        }
    }
}

/// A torn record, whose string would go on in the next line, leaves that one as it is.
#[test]
fn a_record_is_not_joined_with_those_behind_it() {
    let lines = lines(Kind::ClaudeCode);
    let answer = at(&lines, "answer 2.1;");
    for half in 1..lines[answer].len() {
        let mut torn = lines.clone();
        torn[answer].truncate(half);
        let findings = SessionFile::read(bytes(&torn)).check().findings;
        let skipped: Vec<_> =
            findings.iter().filter(|it| matches!(it.fault, FileFault::Skipped(_))).collect();
        assert_eq!(skipped.len(), 1, "{half}: {findings:?}");
        assert_eq!(skipped[0].fault, FileFault::Skipped(SkipReason::Torn), "{half}");
        assert_eq!(skipped[0].line, answer as u64 + 1);
    }
}

/// Found by hand: each byte of a run was told for itself.
#[test]
fn a_run_of_bytes_that_are_no_text_is_told_once_and_its_record_kept() {
    let mut lines = lines(Kind::ClaudeCode);
    let line = at(&lines, "answer 2.1;");
    lines[line] = lines[line].replacen("answer 2.1;", "answer ~~ ~ 2.1;", 1);
    let damaged = |bytes: Vec<u8>| -> Vec<u8> {
        bytes.into_iter().map(|byte| if byte == b'~' { 0xff } else { byte }).collect()
    };
    let (session, text) = repaired(damaged(bytes(&lines)), FileFault::Skipped(SkipReason::NotUtf8));
    assert!(text.contains("answer \u{fffd}\u{fffd} \u{fffd} 2.1;"), "{text}");
    let report = SessionFile::read(damaged(bytes(&lines))).check();
    let told: Vec<_> = report.findings.iter().map(ToString::to_string).collect();
    assert_eq!(told, ["Invalid UTF-8: 2 bytes", "Invalid UTF-8: 1 byte"]);
    assert_eq!(session.check().bytes.skipped, 0);
}

#[test]
fn a_phantom_parent_is_linked_to_the_entry_before_it() {
    for kind in KINDS {
        let mut lines = lines(kind);
        lines.remove(at(&lines, "turn 0"));
        let lost = lines.iter().position(|line| line.contains("\"so\"")).unwrap();
        lines.remove(lost);
        let mut session = SessionFile::read(bytes(&lines));
        assert!(session.check().findings.iter().any(|f| f.fault == FileFault::PhantomParent));
        let plan = session.plan(Repair::preserve());
        let relinked =
            plan.actions.iter().filter(|action| action.action == FileActionKind::Relink).count();
        assert_eq!(relinked, 1);
        session.apply(plan).unwrap();
        assert!(session.check().is_clean());
        // What stood before the phantom is seen again.
        assert!(session.transcript().unwrap().to_json().contains("answer 2.0;"));
    }
}

#[test]
fn a_compaction_that_cuts_a_pair_leaves_text() {
    let mut lines = lines(Kind::OpenClaw(3));
    let result = at(&lines, "answer 2.1;");
    let id = |line: &str| {
        let value: serde_json::Value = serde_json::from_str(line).unwrap();
        value["id"].as_str().unwrap().to_owned()
    };
    let (first, last) = (id(&lines[result]), id(lines.last().unwrap()));
    lines.push(format!(
        r#"{{"type":"compaction","id":"cccc","parentId":"{last}","summary":"s","firstKeptEntryId":"{first}"}}"#
    ));
    let fault = FileFault::Message(tr_transcript::Fault::ResultWithoutAssistant);
    let (_, text) = repaired(bytes(&lines), fault);
    assert!(text.contains("[result of a tool call that is not in this session: call_2_1]"));
    assert!(text.contains("answer 2.1;"));
}

/// A call that was broken off is not sent, so that nothing is made up for it.
#[test]
fn a_call_that_was_broken_off_is_left_alone() {
    let text = file(Kind::OpenClaw(3), &[Act::BrokenOff, Act::Say]);
    assert!(SessionFile::read(text.as_bytes()).plan(Repair::preserve()).is_empty());
}

#[test]
fn a_killed_session_is_live_until_its_tail_is_closed() {
    for kind in KINDS {
        let mut lines = lines(kind);
        lines.truncate(at(&lines, "answer 2.0;"));
        let mut session = SessionFile::read(bytes(&lines));
        assert_eq!(session.check().pending.len(), 2);
        assert!(session.plan(Repair::preserve()).is_empty());
        let plan = session.plan(Repair::preserve().close_tail());
        session.apply(plan).unwrap();
        assert!(session.check().pending.is_empty());
        assert_eq!(
            String::from_utf8(session.to_bytes()).unwrap().matches(OUTCOME_UNKNOWN).count(),
            2
        );
    }
}

#[test]
fn a_reused_id_is_rewritten_where_it_is_refused() {
    let acts =
        [Act::Step { calls: 1, order: 0 }, Act::Turn, Act::Step { calls: 1, order: 0 }, Act::Say];
    let again = |kind: Kind| {
        let text = file(kind, &acts);
        let second = text.rfind("call_").unwrap();
        let id = text[second..].split('"').next().unwrap().to_owned();
        text.replace(&id, "call_2_0")
    };
    let fault = FileFault::Message(tr_transcript::Fault::DuplicateId);
    let (_, text) = repaired(again(Kind::ClaudeCode).into_bytes(), fault);
    assert_eq!(text.matches("call_2_0_r2").count(), 2);
    let session = SessionFile::read(again(Kind::OpenClaw(3)).as_bytes());
    assert!(session.check().is_valid() && session.plan(Repair::preserve()).is_empty());
}

/// A file whose entries just follow one another stays so.
#[test]
fn a_file_without_links_gets_none() {
    let lines: Vec<_> = include_str!("../data/representative_messages.jsonl")
        .lines()
        .filter(|line| !line.contains("\"type\": \"tool_result\""))
        .map(str::to_owned)
        .collect();
    let fault = FileFault::Message(tr_transcript::Fault::UseWithoutUser);
    let (session, text) = repaired(bytes(&lines), fault);
    assert_eq!(session.transcript().unwrap().len(), 11);
    assert!(text.contains("\"parentUuid\":null"), "{text}");
}

/// Found by fuzzing: a check, which reads outlines, and a repair, which reads whole messages, took
/// such a block for different things.
#[test]
fn a_block_that_names_a_member_twice_is_read_alike_by_check_and_repair() {
    for kind in KINDS {
        let lines = lines(kind)
            .into_iter()
            .filter(|line| !line.contains("toolResult") && !line.contains("tool_result"));
        let twice = |line: String| line.replace(r#""name":"#, r#""name":"again","name":"#);
        let file = bytes(&lines.map(twice).collect::<Vec<_>>());
        assert!(String::from_utf8_lossy(&file).contains(r#""again","name""#));
        let mut session = SessionFile::read(file);
        let plan = session.plan(Repair::preserve());
        session.apply(plan).unwrap();
        let report = session.check();
        assert!(report.is_valid(), "{:?}", report.findings);
        let unread = FileFault::Message(tr_transcript::Fault::UnreadBlock);
        assert!(report.findings.iter().any(|found| found.fault == unread));
    }
}

/// Its content may be all that is left of what a tool answered.
#[test]
fn a_message_whose_content_is_not_where_it_belongs_is_told_and_stays() {
    for kind in KINDS {
        let mut lines = lines(kind);
        let result = at(&lines, "answer 2.1;");
        // OpenClaw's result is known by its call; this one lost its role.
        let name = if kind == Kind::ClaudeCode { "content" } else { "role" };
        let name = format!(r#""{name}":"#);
        let place = lines[result].rfind(&name).unwrap();
        let place = lines[result].find(&name).filter(|_| name.contains("content")).unwrap_or(place);
        lines[result].replace_range(place..place + 2, "\"?");
        let damaged = lines[result].clone();
        let mut session = SessionFile::read(bytes(&lines));
        let plan = session.plan(Repair::preserve());
        session.apply(plan).unwrap();
        let report = session.check();
        assert!(report.is_valid(), "{:?}", report.findings);
        assert!(report.findings.iter().any(|found| found.fault == FileFault::UnreadMessage));
        let text = String::from_utf8(session.to_bytes()).unwrap();
        let message = &damaged[damaged.find(r#""message":"#).unwrap()..];
        let message = &message[..message.find("answer 2.1;").unwrap()];
        assert!(text.contains(message), "{text}");
        assert_eq!(text.matches(OUTCOME_UNKNOWN).count(), 1);
        assert!(session.plan(Repair::preserve()).is_empty());
    }
}

/// Found by fuzzing: what was no message of the file's form was taken for one without content.
#[test]
fn messages_of_another_form_stay() {
    let lines = [
        r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"one"}]}"#,
        r#"{"role":"model","parts":[{"functionCall":{"id":"d","name":"p","args":{}}}]}"#,
        r#"{"role":"user","parts":[{"text":"two"}]}"#,
    ];
    let lines = lines.map(str::to_owned);
    for lines in [&lines[..], &[lines[1].clone(), lines[0].clone(), lines[2].clone()]] {
        let mut session = SessionFile::read(bytes(lines));
        let plan = session.plan(Repair::preserve());
        session.apply(plan).unwrap();
        assert!(session.check().is_valid(), "{:?}", session.check().findings);
        let text = String::from_utf8(session.to_bytes()).unwrap();
        assert!(text.contains("one") && text.contains("two"), "{text}");
    }
}

/// Agents parse a line as a whole: a record beside other bytes is none to them.
#[test]
fn a_record_that_shares_its_line_with_other_bytes_is_an_error() {
    for kind in KINDS {
        let whole = lines(kind);
        let result = at(&whole, "answer 2.1;");
        for (before, behind) in [("\0\0\0\0", ""), ("", "{\"type\":\"mess"), ("{\"type\":\"us", "")]
        {
            let mut shared = whole.clone();
            shared[result] = format!("{before}{}{behind}", whole[result]);
            let findings = SessionFile::read(bytes(&shared)).check().findings;
            let told: Vec<_> =
                findings.iter().filter(|it| it.fault == FileFault::SharedLine).collect();
            assert_eq!(told.len(), 1, "{findings:?}");
            assert_eq!((told[0].line, told[0].severity), (result as u64 + 1, Severity::Error));
            repaired(bytes(&shared), FileFault::SharedLine);
        }
        let mut alone = whole.clone();
        alone.insert(result, "\0\0\0\0".into());
        assert!(
            SessionFile::read(bytes(&alone)).check().is_valid(),
            "a line of its own costs none"
        );
    }
}

/// Of a torn record, a block may be whole: it is no entry, and none is linked to it.
#[test]
fn a_block_that_a_torn_record_leaves_is_no_entry() {
    let mut lines = lines(Kind::OpenClaw(3));
    let count = SessionFile::read(bytes(&lines)).check().messages;
    let result = at(&lines, "answer 2.0;");
    let next = lines.remove(result + 1);
    let torn = lines[result].find("}],").unwrap() + 1;
    lines[result] = format!("{}{next}", &lines[result][..torn]);
    let (session, text) = repaired(bytes(&lines), FileFault::Glued);
    assert_eq!(session.check().messages, count, "{text}");
    let left = text.lines().find(|line| line.contains("answer 2.0;")).unwrap();
    assert!(!left.contains("\"id\""), "{left}");
    assert!(text.contains("answer 2.1;") && text.contains(OUTCOME_UNKNOWN), "{text}");
}
