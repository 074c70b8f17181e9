//! A successful answer pays one look, which allocates nothing.
use tr_core::{Json, ToolOutcome};
use tr_testkit::alloc;
use tr_wire::Normaliser;

#[test]
fn ut_03_looking_into_a_successful_answer_allocates_nothing() {
    let long = format!(
        r#"{{"rows":[{}],"ok":true,"error":null}}"#,
        vec![r#"{"ok":false,"s":"\\\"{"}"#; 10_000].join(",")
    );
    for answer in [r#""text""#, "[1]", r#"{"exitCode":0,"stdout":"x"}"#, &long] {
        let mut outcome = ToolOutcome::success(Json::from_text(answer).unwrap());
        let made = alloc::count(|| {
            let given = std::mem::take(&mut outcome);
            outcome = Normaliser::default().judge(given, None);
        });
        assert_eq!(made.count, 0, "{:.60}", answer);
        assert!(outcome.error().is_none(), "{:.60}", answer);
    }
}
