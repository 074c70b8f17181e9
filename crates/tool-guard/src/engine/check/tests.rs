//! What answers show, and what they do not.
use super::*;
use serde_json::json;
use std::time::Duration;

const SINCE: u64 = 1_780_000_000_000;

fn check() -> OutcomeCheck {
    let mut check = OutcomeCheck::default();
    check.tool = "list_payments".into();
    check.args = vec![("order".into(), "/order_id".parse().unwrap())];
    check.found = "/payments".parse().unwrap();
    check.matches = vec![
        ("order".into(), "/order_id".parse().unwrap()),
        ("/sum/amount".into(), "/amount".parse().unwrap()),
    ];
    check.not_before = Some("/at".parse().unwrap());
    check
}

fn absent_after(seconds: u64) -> OutcomeCheck {
    let mut check = check();
    check.absent_after = Some(Duration::from_secs(seconds));
    check
}

fn asked() -> Question {
    Question::of(&check(), r#"{"order_id": "A1", "amount": 42, "memo": "x"}"#, SINCE, 7).unwrap()
}

fn paid(amount: impl Into<Value>, at: impl Into<Value>) -> Value {
    json!({ "order": "A1", "sum": { "amount": amount.into() }, "at": at.into() })
}

fn shown(document: &Value, after: u64) -> Shown {
    judge(
        &check(),
        &asked(),
        SINCE,
        &json!({ "structuredContent": document }).to_string(),
        SINCE + after,
    )
}

fn nothing(shown: &Shown) -> bool {
    matches!(shown, Shown::Nothing(_) | Shown::NotYet(_))
}

#[test]
fn a_question_has_the_calls_values_and_can_be_noted() {
    let asked = asked();
    assert_eq!(Value::from(asked.args.clone()), json!({ "order": "A1" }));
    assert_eq!(asked.values, [json!("A1"), json!(42)]);
    assert_eq!(
        serde_json::from_str::<Question>(&serde_json::to_string(&asked).unwrap()).unwrap(),
        asked
    );
    for params in ["{}", r#"{"order_id":"A1"}"#, r#"{"order_id":"A1","amount":null}"#, "[]"] {
        assert_eq!(Question::of(&check(), params, SINCE, 7), None, "{params}");
    }
    let long = json!({ "order_id": "A".repeat(5_000), "amount": 1 }).to_string();
    assert_eq!(Question::of(&check(), &long, SINCE, 7), None);
}

#[test]
fn exactly_one_element_that_is_not_older_says_that_it_ran() {
    let new = paid(42, SINCE + 20);
    for elements in [
        json!([new]),
        json!([paid(42, SINCE - 60_001), new, paid(41, SINCE + 20)]),
        json!([{ "other": 1 }, new]),
        json!([paid(42.0, SINCE + 20)]),
    ] {
        let ran = shown(
            &json!({ "payments": elements, "total": elements.as_array().map(Vec::len) }),
            100,
        );
        assert!(matches!(&ran, Shown::Ran(element) if element["at"] == SINCE + 20), "{ran:?}");
    }
    let text = json!({ "content": [{ "type": "text", "text": json!({ "payments": [new] }).to_string() }] });
    assert_eq!(judge(&check(), &asked(), SINCE, &text.to_string(), SINCE + 100), Shown::Ran(new));
}

#[test]
fn a_text_of_json_where_the_array_is_expected_is_read() {
    let list = |list: &Value| json!({ "payments": list.to_string() });
    let new = paid(42, SINCE + 20);
    assert_eq!(shown(&list(&json!([new])), 5_000), Shown::Ran(new.clone()));
    for doubt in [json!([new, new]), json!({ "payments": [new] }), json!("Paid.")] {
        assert!(nothing(&shown(&list(&doubt), 5_000)), "{doubt}");
    }
    let result = json!({ "structuredContent": list(&json!([])) }).to_string();
    assert_eq!(judge(&absent_after(1), &asked(), SINCE, &result, SINCE + 5_000), Shown::DidNotRun);
}

#[test]
fn what_is_in_doubt_says_nothing() {
    let (new, late) = (paid(42, SINCE + 20), 3_600_000);
    for (document, why) in [
        (json!({ "payments": [new, new] }), "several"),
        (json!({ "payments": [paid(42, SINCE - 1)] }), "just before the call"),
        (json!({ "payments": [paid(42, SINCE - 1), new] }), "one just before the call, too"),
        (json!({ "payments": [paid(42, SINCE + late + 90_000)] }), "a time that is still to come"),
        (json!({ "payments": [paid(42, "2026-05-28 20:26:40")] }), "a time without a zone"),
        (json!({ "payments": [paid(42, "yesterday")] }), "no time"),
        (json!({ "payments": [paid("42", SINCE + 20)] }), "a text for a number"),
        (json!({ "payments": [{ "order": "A1", "at": SINCE }] }), "a member less"),
        (json!({ "payments": { "0": new } }), "no array"),
        (json!({ "orders": [new] }), "another document"),
        (json!({ "payments": [new], "next_cursor": "x" }), "a further page"),
        (json!({ "payments": [], "page": { "hasMore": true } }), "a further page inside"),
        (json!({ "payments": [new], "links": { "next": { "href": "/2" } } }), "a link"),
        (json!({ "payments": [new], "total": 2 }), "more in all"),
        (json!({ "payments": [paid(21, SINCE + 20), paid(21, SINCE + 20)] }), "instalments"),
        (json!({ "payments": [paid(43.5, SINCE - 59_000)] }), "the same with a fee"),
    ] {
        // Even where absence would count.
        let check = absent_after(1);
        let result = json!({ "structuredContent": document });
        assert!(
            nothing(&judge(&check, &asked(), SINCE, &result.to_string(), SINCE + late)),
            "{why}"
        );
    }
    for result in [
        json!({}),
        json!({ "content": [] }),
        json!({ "content": [{ "type": "text", "text": "Paid." }] }),
        json!({ "content": [{ "type": "text", "text": "{}" }, { "type": "text", "text": "{}" }] }),
        json!({ "structuredContent": { "payments": [new] }, "nextCursor": "2" }),
    ] {
        assert!(
            nothing(&judge(&check(), &asked(), SINCE, &result.to_string(), SINCE + late)),
            "{result}"
        );
    }
}

#[test]
fn a_time_is_as_exact_as_it_is_written() {
    let begun = 1_780_000_000_500;
    for (at, ran) in [
        // It may have been before the call in the same second.
        (json!("2026-05-28T20:26:40Z"), false),
        (json!(1_780_000_000), false),
        (json!("2026-05-28T20:26:41Z"), true),
        (json!("2026-05-28 22:26:41+02:00"), true),
        (json!("2026-05-28T20:26:40.5Z"), true),
        (json!("2026-05-28T20:26:40.499Z"), false),
        (json!(1_780_000_000.7), true),
        (json!(1_780_000_001), true),
        (json!(1_780_000_000_500_u64), true),
        (json!(1_780_000_000_500_000_u64), false),
        (json!(true), false),
    ] {
        let asked = Question { since: begun, ..asked() };
        let result = json!({ "structuredContent": { "payments": [paid(42, at.clone())] } });
        let shown = judge(&check(), &asked, begun, &result.to_string(), begun + 5_000);
        assert_eq!(matches!(shown, Shown::Ran(_)), ran, "{at}: {shown:?}");
    }
}

#[test]
fn absence_counts_only_where_it_is_declared_and_that_long_after_the_last_attempt() {
    let (mut other, old) = (paid(42, SINCE + 20), paid(41, SINCE - 90_000));
    other["order"] = "B7".into();
    let none = json!({ "payments": [other, old] });
    assert!(nothing(&shown(&none, 3_600_000)));
    let (check, result) = (absent_after(30), json!({ "structuredContent": none }).to_string());
    let shown = |last, now| judge(&check, &asked(), last, &result, now);
    assert!(nothing(&shown(SINCE, SINCE + 29_999)));
    assert_eq!(shown(SINCE, SINCE + 30_000), Shown::DidNotRun);
    assert!(nothing(&shown(SINCE + 5_000, SINCE + 34_999)));
    assert_eq!(shown(SINCE + 5_000, SINCE + 35_000), Shown::DidNotRun);
}

#[test]
fn an_answer_that_may_not_be_whole_shows_no_absence() {
    let shown = |document: &str| {
        let result = format!(r#"{{"structuredContent":{document}}}"#);
        judge(&absent_after(1), &asked(), SINCE, &result, SINCE + 3_600_000)
    };
    for whole in [
        r#"{"payments":[]}"#,
        r#"{"payments":[],"ok":true,"order":"A1","total":0,"next_cursor":null,"has_more":false,"error":""}"#,
        r#"{"payments":[],"page":{"size":0}}"#,
    ] {
        assert_eq!(shown(whole), Shown::DidNotRun, "{whole}");
    }
    for part in [
        r#"{"ok":false,"error":"database unavailable","payments":[]}"#,
        r#"{"ok":false,"payments":[]}"#,
        r#"{"remaining":42,"payments":[]}"#,
        r#"{"missing":"A1","payments":[]}"#,
        r#"{"status":"error","payments":[]}"#,
        r#"{"payments":[],"has_more":"true"}"#,
        r#"{"payments":[],"total":"7"}"#,
        r#"{"payments":[],"isLast":false,"cursor":"x"}"#,
        r#"{"payments":[],"remaining":3}"#,
        r#"{"payments":[],"warning":"partial result"}"#,
        r#"{"payments":[{"order":"A1"}],"payments":[]}"#,
        // The clock of the server is far behind.
        r#"{"payments":[{"order":"A1","sum":{"amount":42},"at":1779990000000}]}"#,
    ] {
        assert!(nothing(&shown(part)), "{part}: {:?}", shown(part));
    }
    let long = format!(r#"{{"payments":[{}]}}"#, "1,".repeat(600_000) + "1");
    assert!(nothing(&shown(&long)));
}

#[test]
fn a_twin_is_another_call_for_the_same_thing_however_its_numbers_are_written() {
    let question = |amount: &str, since, nonce| {
        let params = format!(r#"{{"order_id":"A1","amount":{amount}}}"#);
        Question::of(&check(), &params, since, nonce).unwrap()
    };
    let asked = asked();
    assert!(!asked.is_twin_of(&asked));
    for (amount, since, twin) in [
        ("42.0", SINCE, true),
        ("42", SINCE - 60_000, true),
        ("42", SINCE - 60_001, false),
        ("41", SINCE, false),
    ] {
        assert_eq!(question(amount, since, 8).is_twin_of(&asked), twin, "{amount} {since}");
    }
}
