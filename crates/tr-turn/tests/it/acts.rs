//! What a configuration says of a tool for turns acts: a turn goes otherwise than without the key.
use std::time::Duration;
use tool_reliability::config::{Config, Live};
use tr_core::{Ran, ToolCall, ToolOutcome, Verdict};
use tr_testkit::{
    calls::{answers, fails},
    tool::{Scripted, Step},
};
use tr_turn::{Call, Draft, Limits, Tools, Turns};

/// What becomes of a turn's calls under this configuration of `search`, which ends so; `other` succeeds.
async fn turned(said: &str, end: &Step<ToolOutcome>, most: usize, calls: &[Call]) -> String {
    let config = format!(
        r#"{{"retry": {{"attempts": 1}}, "defaults": {{"effect": "read_only"}},
            "tools": {{"search": {{{said}}}, "other": {{}}}}}}"#
    );
    let live = Live::new(Config::from_json(&config).unwrap(), |builder| builder).unwrap();
    let end = end.clone();
    let tool = Scripted::by(move |_, call: &ToolCall| match call.parts().tool.label() {
        "search" => end.clone(),
        _ => Step::after(Duration::from_millis(10), answers("ok")),
    });
    let limits = Limits { concurrency: most, ..Limits::default() };
    let draft = calls.iter().cloned().fold(Draft::new("t").limits(limits), Draft::call);
    let plan = draft.check(&Tools::any().catalog(live.catalog())).unwrap();
    let report = Turns::new(live.stack().service(tool)).run(plan).await;
    let told = report.calls.iter().map(|call| {
        let decided = call.decision.as_ref().map_or("", |it| it.recovery.as_str());
        let started = call.started.map_or("never".into(), |at| at.as_millis().to_string());
        format!("{}={}{decided}@{started}", call.name, call.outcome)
    });
    told.collect::<Vec<_>>().join(" ")
}

#[tokio::test(start_paused = true)]
async fn each_key_of_a_tool_acts_that_turns_go_by() {
    let [search, other] = ["search", "other"].map(Call::new);
    let alone = [search.clone()];
    let behind = other.clone().after("search");
    let ok = Step::after(Duration::from_millis(10), answers("ok"));
    let down = fails("http_503", Verdict::TRANSIENT, Ran::No);
    for (said, end, most, calls, without, with) in [
        (
            r#""depends_on": ["other"]"#,
            &ok,
            8,
            &[search.clone(), other.clone()][..],
            "search=Success@0 other=Success@0",
            "search=Success@10 other=Success@0",
        ),
        (r#""required": true"#, &down, 8, &alone, "search=FailedSkip@0", "search=FailedEscalate@0"),
        (
            r#""default_value": 7"#,
            &down,
            8,
            &[search.clone(), behind],
            "search=FailedSkip@0 other=SkippedSkip@never",
            "search=FailedUseDefault@0 other=Success@0",
        ),
        (
            r#""alternatives": ["other"]"#,
            &down,
            8,
            &alone,
            "search=FailedSkip@0",
            "search=Success@0",
        ),
        (
            r#""priority": "high""#,
            &ok,
            1,
            &[other, search.clone()],
            "other=Success@0 search=Success@10",
            "other=Success@10 search=Success@0",
        ),
    ] {
        let seen = [turned("", end, most, calls).await, turned(said, end, most, calls).await];
        assert_eq!(seen, [without, with], "{said}");
    }
}
