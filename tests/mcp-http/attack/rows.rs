//! Rows beside the table: ids that two sessions use for several calls, and a guard that is started again.
use super::{
    scene::{Credentials, Got, Ids, Stage},
    table::within,
    vault::CREATES,
};
use crate::{client::Call, identity::code};
use serde_json::json;

/// Ann, Bob and Ann make calls under one id, then Bob one with other arguments. A weak id names another call each time;
/// a random one names one call for those of one credential, whether a thread is named or not.
pub(super) fn ids(stage: &Stage) {
    let (mut ann, mut bob) = (stage.a(), stage.b());
    let rows = [
        ("claude", json!({ "claudecode/toolUseId": "functions.pay:0" }), false),
        ("codex", json!({ "callId": "call_1" }), false),
        ("codex thread", json!({ "callId": "call_1", "threadId": "one thread" }), false),
        ("codex random", json!({ "callId": "call_abcdEFGH1234567890ijKLmn" }), true),
        (
            "codex random thread",
            json!({ "callId": "call_abcdEFGH1234567890ijKLmn", "threadId": "one thread" }),
            true,
        ),
    ];
    let mut broken = Vec::new();
    for (row, meta, is_strong) in rows {
        let call = |order: &str| Call {
            tool: CREATES,
            order: order.into(),
            meta: meta.clone(),
            key: None,
        };
        let (order, other) = (row.to_owned(), format!("{row}, other"));
        ann.once(&call(&order));
        let got = [
            stage.got(&order, &bob.once(&call(&order))),
            stage.got(&order, &ann.once(&call(&order))),
        ];
        let seen = bob.once(&call(&other));
        let made = [&order, &other].map(|order| stage.vault.secrets(order).len());
        let is_refused = matches!(got[0], Got::Refused(_));
        let holds = match stage.credentials {
            _ if !is_strong => got == [Got::Own, Got::Own] && made == [3, 1],
            Credentials::Different => is_refused && got[1] == Got::Theirs && made == [1, 0],
            _ => got == [Got::Theirs, Got::Theirs] && made == [1, 0],
        };
        let is_conflict = code(&seen) == "idempotency_conflict";
        if !holds || is_conflict != is_strong {
            broken.push(format!("{row}: {got:?}, executions {made:?}, at last {seen:?}"));
        }
    }
    assert!(broken.is_empty(), "{:?}\n{}", stage.credentials, broken.join("\n"));
}

/// A was cut off, and the guard was killed. B's session is older than the guard, which has not seen its beginning.
pub(super) fn restart(mut stage: Stage, is_ended: bool) {
    let (order, vault) = ("order-1", stage.vault.clone());
    let (mut a, mut b) = (stage.a(), stage.b());
    vault.hold(order, 1);
    let call = a.call(order, Ids::Weak);
    let pending = a.begin(&call);
    assert!(within(|| vault.secrets(order).len() == 1));
    pending.cut();
    stage.barrier(&b);
    if is_ended {
        vault.release(order);
        let is_done = || stage.shop.records(&["list"]).1.contains(" done ");
        assert!(within(is_done), "{:?}", stage.shop.records(&["list"]));
    }
    stage.guard.kill();
    stage.guard = stage.shop.listen(stage.scene.way());
    b.http = b.http.at(&stage.guard.url);
    let mut all = Vec::new();
    for ids in [Ids::None, Ids::Weak] {
        let got = stage.got(order, &b.once(&b.call(order, ids)));
        all.push((ids, got));
    }
    vault.release(order);
    let told = format!("{:?}, ended: {is_ended}: {all:?}", stage.credentials);
    for (_, got) in all {
        assert!(matches!(got, Got::Own | Got::Refused(_)), "{told}");
        let is_own = got == Got::Own;
        match stage.credentials {
            Credentials::None => assert!(is_ended || !is_own, "{told}"),
            Credentials::Different => assert!(is_own, "{told}"),
            _ => {}
        }
    }
}
