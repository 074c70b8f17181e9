//! Lines that cannot be used.
use super::*;

fn fault(line: &str) -> (Option<String>, String) {
    let Fault { id, error } = Event::read(line.as_bytes()).unwrap_err();
    (id.map(|id| id.to_json()), error)
}

#[test]
fn a_line_that_cannot_be_used_gets_its_id_and_the_reason() {
    for (line, id, said) in [
        ("hi", None, "no JSON object"),
        ("[1]", None, "no JSON object"),
        (r#"{"id":1,"id":2,"event":"turn_end"}"#, None, "duplicate field"),
        (r#"{"event":"before","tool":"x"}"#, None, "id must be"),
        (r#"{"id":{},"event":"before","tool":"x"}"#, None, "id must be"),
        (r#"{"id":"a"}"#, Some("\"a\""), "event is missing"),
        (
            r#"{"id":"a","event":"befor\u001b"}"#,
            Some("\"a\""),
            "expected before, after or turn_end",
        ),
        (r#"{"id":1,"event":"before"}"#, Some("1"), "missing field `tool`"),
        (r#"{"id":1,"event":"before","tool":""}"#, Some("1"), "tool must not be empty"),
        (
            r#"{"id":1,"event":"before","tool":"x","params":[]}"#,
            Some("1"),
            "params must be an object",
        ),
        (
            r#"{"id":1,"event":"before","tool":"x","sesion":"s"}"#,
            Some("1"),
            "unknown field `sesion`",
        ),
        (r#"{"id":1,"event":"before","tool":"x","session":""}"#, Some("1"), "leave them out"),
        (
            r#"{"id":1,"event":"before","tool":"x","effect":"safe"}"#,
            Some("1"),
            "unknown variant `safe`",
        ),
        (r#"{"id":1,"event":"after"}"#, Some("1"), "before or call must name"),
        (r#"{"id":1,"event":"after","before":null}"#, Some("1"), "before or call must name"),
        (r#"{"id":1,"event":"after","before":[]}"#, Some("1"), "before must be the id"),
        (
            r#"{"id":1,"event":"after","before":1,"output":null,"error":"x"}"#,
            Some("1"),
            "exclude each other",
        ),
        (r#"{"id":1,"event":"turn_end"}"#, Some("1"), "missing field `session`"),
    ] {
        let (had, error) = fault(line);
        assert_eq!(had.as_deref(), id, "{line}");
        assert!(error.contains(said) && !error.contains('\u{1b}'), "{line}: {error}");
    }
    assert_eq!(
        Event::read(b"{\"id\":1,\"event\":\"\xff\"}").unwrap_err().error,
        "the line is not UTF-8"
    );
}

#[test]
fn an_answer_is_one_line_whatever_is_in_it() {
    let mut answer = Answer::block(&Token::Text("a\n".into()), "replayed", "two\nlines");
    answer.result = Some(RawValue::from_string("{\n \"content\": [ ]\n}".into()).unwrap());
    let line = answer.line();
    assert_eq!(line.matches('\n').count(), 1, "{line}");
    let read: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&read["id"], &read["reason"]), (&"a\n".into(), &"two\nlines".into()));
}
