//! Requests with faults: they are answered, and nothing else happens.
use super::*;
use crate::common::Notes;
use tr_testkit::calls::answers;

#[tokio::test(start_paused = true)]
async fn tr_01_bad_envelopes_reach_nothing_of_a_stack_that_could_act() {
    let notes = Notes::default();
    let stack = ToolStack::builder().hook(notes.clone()).build().unwrap();
    let bench = Bench::of(stack, [answers("ok")]);
    let without = |name: &str| {
        let mut request: Value = serde_json::from_str(&bs_tim_5("pay", &json!({}))).unwrap();
        request.as_object_mut().unwrap().remove(name);
        request.to_string()
    };
    let keyed = json!({"idempotencyKey": "k", "timeout": 0, "priority": "urgent"});
    for (request, pointers) in [
        (without("toolName"), &["/toolName"][..]),
        (without("target"), &["/target"]),
        (bs_tim_5("pay", &json!({})).replace("1.1", "9"), &["/contractVersion"]),
        (
            without("toolName").replace("1.1", "9").replace("enforced", "always"),
            &["/toolName", "/contractVersion", "/transport/dedupeMode"],
        ),
        (
            bs_tim_5("pay", &json!({"_utee": {"timeout": "soon"}})),
            &["/payload/params/_utee/timeout"],
        ),
        (
            bs_tim_5("pay", &json!(5)).replace(r#""s""#, "7"),
            &["/target/sessionKey", "/payload/params"],
        ),
        (utee("pay", keyed), &["/timeout", "/priority"]),
        (utee("", json!({"params": {"_utee": 5}})), &["/tool", "/params/_utee"]),
        (r#"{"tool": "pay", "action": "", "params": {"a": 1, "a": 2}}"#.into(), &["/params/a"]),
        ("{}".into(), &[""]),
        ("[]".into(), &[""]),
        ("12".into(), &[""]),
        (r#"{"tool": "pay""#.into(), &[""]),
        (String::new(), &[""]),
    ] {
        let answer = bench.answer(request.clone()).await;
        assert!(answer.is_refused(), "{request}");
        let said: Value = answer.to_json().parse().unwrap();
        assert_eq!(
            (&said["status"], &said["error"]["code"]),
            (&json!("error"), &json!("invalid_envelope"))
        );
        assert_eq!(
            (&said["error"]["ran"], &said["attempts"]),
            (&json!("no"), &json!(0)),
            "{request}"
        );
        let faults = said["error"]["details"]["faults"].as_array().unwrap();
        let mut named: Vec<_> = faults.iter().map(|it| it["pointer"].as_str().unwrap()).collect();
        let mut wanted = pointers.to_vec();
        named.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(named, wanted, "{request}");
        let message = said["error"]["message"].as_str().unwrap();
        assert!(pointers.iter().all(|pointer| message.contains(pointer)), "{message}");
    }
    assert_eq!(notes.take(), [""; 0], "no hook");
    assert_eq!(bench.handle.calls(), 0);
    assert_eq!(bench.stack.records().records().len(), 0, "no record");
    assert!(bench.stack.breakers().get(tr_core::KeyRef::new("pay")).is_none(), "no breaker");

    // The same stack acts on a good one.
    let keyed = json!({"idempotencyKey": "k"});
    assert_eq!(bench.ask(utee("pay", keyed)).await["status"], "success");
    assert_eq!(notes.take(), ["prepare", "before", "after"]);
    assert_eq!((bench.handle.calls(), bench.stack.records().records().len()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_has_the_form_and_the_id_of_its_request() {
    let bench = Bench::new([answers("ok")]);
    let said =
        bench.ask(r#"{"contractVersion": "1.0", "requestId": "r-7", "toolName": "pay"}"#).await;
    assert_eq!((&said["requestId"], &said["toolName"]), (&json!("r-7"), &json!("pay")));
    assert_eq!(
        (&said["error"]["terminal"], &said["error"]["retriable"]),
        (&json!(true), &json!(false))
    );
    assert_eq!(said["fromCache"], false);

    let said = bench.ask(r#"{"tool": "pay", "requestId": "r-8"}"#).await;
    assert_eq!((&said["requestId"], &said["error"]["retryable"]), (&json!("r-8"), &json!(false)));
    assert!(said.get("toolName").is_none());

    // Half a request shows its form, too; its id could be half an id.
    let said = bench.ask(r#"{"contractVersion": "1.1", "requestId": "r-9", "toolNam"#).await;
    assert_eq!(said["toolName"], "");
    assert_eq!(said["requestId"].as_str().unwrap().len(), 36);
    // No text at all.
    let said = bench.ask(vec![0xff, 0xfe]).await;
    assert_eq!(said["error"]["details"]["faults"][0]["expected"], "JSON in UTF-8");
}

#[tokio::test(start_paused = true)]
async fn a_request_beyond_the_bound_is_refused_unread() {
    let bench = Bench::new([answers("ok")]);
    let layer = EnvelopesLayer::builder().max_request_bytes(200).build().unwrap();
    let tools = layer.layer(bench.stack.service(ScriptedTool::script([answers("ok")])));
    let long = utee("pay", json!({"params": {"text": "x".repeat(200)}}));
    let Ok(answer) = tools.clone().oneshot(long.into()).await;
    let said: Value = answer.to_json().parse().unwrap();
    assert_eq!(said["error"]["details"]["faults"][0]["expected"], "at most 200 bytes");
    let Ok(answer) = tools.oneshot(utee("pay", json!({})).into()).await;
    assert!(!answer.is_refused());

    let error = EnvelopesLayer::builder().max_request_bytes(0).max_cancellable(0).build();
    assert_eq!(error.unwrap_err().faults().count(), 2);
}

/// A refusal must not keep what another request waits for.
#[tokio::test(start_paused = true)]
async fn a_refusal_gives_the_place_back_that_it_had_reserved() {
    let tool = ScriptedTool::script([answers("ok")]).then_repeat_last().capacity(1);
    let tools = Envelopes::new(tool);
    let mut first = tools.clone();
    let Ok(ready) = ServiceExt::<EnvelopeRequest>::ready(&mut first).await;
    let Ok(refused) = tower::Service::call(ready, "{}".into()).await;
    assert!(refused.is_refused());
    let Ok(answer) = tools.oneshot(utee("pay", json!({})).into()).await;
    assert!(answer.finished.end.is_ok());
    drop(first);
}
