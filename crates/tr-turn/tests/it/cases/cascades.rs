//! What a failure means for the other calls.
use super::*;
use tr_core::Ran;
use tr_turn::{Outcome, Recovery};

fn invalid() -> Vec<Step<ToolOutcome>> {
    vec![says("Invalid airport code: XYZ")]
}

#[tokio::test(start_paused = true)]
async fn eh_5_1_dependents_are_skipped_when_their_dependency_fails() {
    let bench = Bench::new([
        ("flight_search", invalid()),
        ("compare_prices", ok()),
        ("create_itinerary", ok()),
        ("weather", ok()),
    ]);
    let draft = Draft::new("t")
        .call(reads("flight_search"))
        .call(reads("compare_prices").after("flight_search"))
        .call(reads("create_itinerary").after("compare_prices"))
        .call(reads("weather"));
    let report = bench.run(draft).await;
    let ends: Vec<_> = report.calls.iter().map(|call| call.outcome).collect();
    let skipped = Outcome::Skipped;
    assert_eq!(ends, [Outcome::Failed, skipped, skipped, Outcome::Success]);
    assert!(has(&report, "compare_prices", "Skipped (dependency failed)"));
    assert!(has(&report, "create_itinerary", "Skipped (dependency failed)"));
    assert_eq!(bench.calls("compare_prices") + bench.calls("create_itinerary"), 0);
    assert_eq!(report.calls[1].ran, Ran::No);
    let failure = report.calls[2].failure.as_ref().unwrap();
    assert_eq!(&*failure.message, "Its dependency compare_prices has no result");
    assert_eq!(
        report.summary,
        "Completed weather, but flight search failed, compare prices and create itinerary were skipped"
    );
}

#[tokio::test(start_paused = true)]
async fn eh_5_2_optional_tools_are_skipped_and_required_tools_escalate() {
    let bench = Bench::new([
        ("flight_search", invalid()),
        ("compare_prices", ok()),
        ("create_itinerary", ok()),
    ]);
    let draft = Draft::new("t")
        .call(reads("flight_search"))
        .call(reads("compare_prices").optional().after("flight_search"))
        .call(reads("create_itinerary").required().after("flight_search"));
    let report = bench.run(draft).await;
    let decided = |call: &str| report.call(call).unwrap().decision.unwrap().to_string();
    assert_eq!(decided("compare_prices"), "Skip (optional)");
    assert_eq!(decided("create_itinerary"), "Escalate (required but missing input)");
    let sentence = "Required tool skipped due to dependency failure";
    assert!(has(&report, "create_itinerary", sentence));
    assert!(!has(&report, "compare_prices", sentence));
    let told = "create itinerary was skipped: Its dependency flight_search has no result";
    assert!(has(&report, "create_itinerary", told));
    let told: Vec<_> = report.escalated().map(|call| &*call.name).collect();
    assert_eq!(told, ["flight_search", "create_itinerary"]);
}

#[tokio::test(start_paused = true)]
async fn eh_5_3_default_values_are_used_when_available() {
    let bench = Bench::new([("flight_search", invalid()), ("compare_prices", ok())]);
    let params = serde_json::json!({ "flights": { "$from": "Tool A" } });
    // The dependent has the value, as the requirement says.
    let draft = Draft::new("t").call(reads("flight_search").named("Tool A")).call(
        reads("compare_prices")
            .named("Tool B")
            .params(params.clone())
            .or_default("Tool A", serde_json::json!(["LH 1"])),
    );
    let report = bench.run(draft).await;
    assert!(has(&report, "compare_prices", "Used default value for Tool B"));
    assert_eq!(report.call("Tool A").unwrap().decision.unwrap().recovery, Recovery::UseDefault);
    assert_eq!(report.call("Tool B").unwrap().outcome, Outcome::Success);
    let request = &bench.handle.requests()[1];
    assert_eq!(request.parts().params.get(), r#"{"flights":["LH 1"]}"#);

    // Or the tool that fails has it, for all its dependents, as a manifest says.
    let draft = Draft::new("t")
        .call(reads("flight_search").named("Tool A").default_value(serde_json::json!([])))
        .call(reads("compare_prices").named("Tool B").params(params));
    let report = bench.run(draft).await;
    assert!(has(&report, "compare_prices", "Used default value for Tool B"));
    assert_eq!(bench.handle.requests()[3].parts().params.get(), r#"{"flights":[]}"#);
    assert_eq!(report.summary, "Completed Tool B, but Tool A failed");
}

#[tokio::test(start_paused = true)]
async fn eh_5_4_independent_tools_continue_despite_failures() {
    let bench = Bench::new([
        ("flight_search", invalid()),
        ("hotel_search", vec![after(3, answers("Ritz"))]),
        ("activity_search", vec![after(5, answers("Opera"))]),
    ]);
    let draft = ["flight_search", "hotel_search", "activity_search"]
        .into_iter()
        .fold(Draft::new("t"), |draft, tool| draft.call(reads(tool)));
    let report = bench.run(draft).await;
    let ends: Vec<_> = report.calls.iter().map(|call| call.outcome).collect();
    assert_eq!(ends, [Outcome::Failed, Outcome::Success, Outcome::Success]);
    assert_eq!(report.calls[2].content().unwrap().get(), r#""Opera""#);
    assert_eq!(report.took, seconds(5));
}

#[tokio::test(start_paused = true)]
async fn results_flow_into_params() {
    let bench = Bench::new([
        (
            "flight_search",
            vec![Step::Ok(ToolOutcome::success(serde_json::json!([{"id": 7, "price": 99.5}])))],
        ),
        ("book", ok()),
    ]);
    let params = serde_json::json!({ "flight": { "$from": "flight_search", "at": "/0/id" } });
    let draft = Draft::new("t").call(reads("flight_search")).call(reads("book").params(params));
    let report = bench.run(draft).await;
    assert!(report.is_complete());
    assert_eq!(bench.handle.requests()[1].parts().params.get(), r#"{"flight":7}"#);

    let params = serde_json::json!({ "flight": { "$from": "flight_search", "at": "/1/id" } });
    let draft = Draft::new("t").call(reads("flight_search")).call(reads("book").params(params));
    let report = bench.run(draft).await;
    let book = report.call("book").unwrap();
    assert_eq!((book.outcome, book.ran), (Outcome::Failed, Ran::No));
    let message = &*book.failure.as_ref().unwrap().message;
    assert_eq!(message, r#"The result of flight_search has no value at "/1/id""#);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_answer_cannot_be_read_has_no_result() {
    for default in [false, true] {
        let bench = Bench::new([
            ("price", vec![Step::Ok(ToolOutcome::not_kept())]),
            ("pay", ok()),
            ("weather", ok()),
        ]);
        let params = serde_json::json!({ "amount": { "$from": "price" } });
        let price = reads("price");
        let price = if default { price.default_value(serde_json::json!(7)) } else { price };
        let draft =
            Draft::new("t").call(price).call(reads("pay").params(params)).call(reads("weather"));
        let report = bench.run(draft).await;
        let price = report.call("price").unwrap();
        let failure = price.failure.as_ref().unwrap();
        assert_eq!((price.outcome, price.ran, price.attempts), (Outcome::Failed, Ran::Yes, 1));
        assert_eq!(&*failure.code, "answer_not_kept");
        assert_eq!(&*failure.message, "The tool ran, but its answer cannot be read");
        let ends = if default { (Outcome::Success, 1) } else { (Outcome::Skipped, 0) };
        assert_eq!((report.call("pay").unwrap().outcome, bench.calls("pay")), ends);
        assert_eq!(report.call("weather").unwrap().outcome, Outcome::Success);
        assert_eq!(bench.calls("price"), 1, "it ran, and does not run again");
    }
}
