//! Payments that are asked for twice, by SDK clients whose calls have no ids: dispatched twice, asked for again with another
//! key in the arguments, and given up while they run.
use crate::faulty::{Asker, Faulty, Form, ask, list, pay};
use serde_json::{Value, json};
use std::{collections::BTreeSet, thread};

const BOTH: [Form; 2] = [Form::HttpToHttp, Form::StdioToHttp];

/// The payments of a client in each form and pattern: 1,560 of all.
const PAYMENTS: u64 = 60;

/// Two calls at once.
fn dispatched_twice(number: u64) -> Vec<Value> {
    let mut step = pay();
    (step["do"], step["number"]) = ("both".into(), number.into());
    vec![step]
}

/// One after the other, each with a key of its own.
fn asked_again(number: u64) -> Vec<Value> {
    let step = |key: &str| {
        let mut step = pay();
        step["number"] = number.into();
        step["arguments"]["idempotency_key"] = format!("{key}-{number}").into();
        step
    };
    vec![step("a"), step("b")]
}

type Pattern = fn(u64) -> Vec<Value>;

const PATTERNS: [(&str, Pattern); 2] =
    [("none, twice", dispatched_twice), ("none, again", asked_again)];

/// How often the orders were paid, each time by the same client, and the receipts in the answers.
fn paid(asker: Asker, is_declared: bool, each: u64) -> (Vec<usize>, Vec<String>) {
    let mut faulty = Faulty::start();
    let catalog = faulty.declare();
    let options: &[&str] = if is_declared { &["--catalog", &catalog] } else { &[] };
    for form in BOTH.into_iter().filter(|form| asker.has(*form)) {
        for (cell, pattern) in PATTERNS {
            let script: Vec<_> = [list()].into_iter().chain((0..each).flat_map(pattern)).collect();
            faulty.open((asker, form, cell), options, [&script, &[]]);
        }
    }
    let all = ask(asker, std::slice::from_mut(&mut faulty));
    let answers = all.iter().flat_map(|seen| seen.asked.iter().cloned().map(|(_, answer)| answer));
    let receipts = answers.filter(|answer| answer.contains("receipt of")).collect();
    (faulty.paid().into_values().collect(), receipts)
}

#[test]
fn where_the_order_is_declared_each_is_paid_once_and_each_asking_gets_the_receipt() {
    thread::scope(|scope| {
        for asker in Asker::ALL {
            scope.spawn(move || {
                let (paid, receipts) = paid(asker, true, PAYMENTS);
                let cells = if asker.has(Form::StdioToHttp) { 4 } else { 2 };
                assert_eq!(paid, vec![1; cells * PAYMENTS as usize], "{asker:?}");
                assert_eq!(receipts.len(), 2 * paid.len(), "{asker:?}");
            });
        }
    });
}

/// 312 repeats that may be meant, such as two refunds of one order or a test that is run again: nothing tells them from
/// those that are not, so each runs, and gets its own answer.
#[test]
fn where_nothing_is_declared_each_asking_pays_and_gets_its_own_receipt() {
    thread::scope(|scope| {
        for asker in Asker::ALL {
            scope.spawn(move || {
                let (paid, receipts) = paid(asker, false, 12);
                assert!(paid.iter().all(|payments| *payments == 2), "{asker:?}: {paid:?}");
                let own: BTreeSet<_> = receipts.iter().collect();
                assert_eq!((receipts.len(), own.len()), (2 * paid.len(), receipts.len()));
            });
        }
    });
}

/// The payment takes 6 s, the client waits for 5 s, and the model asks again.
#[test]
fn a_payment_that_takes_longer_than_the_client_waits_is_made_once() {
    thread::scope(|scope| {
        for asker in Asker::ALL {
            scope.spawn(move || {
                let mut faulty = Faulty::start();
                let catalog = faulty.declare();
                for form in BOTH.into_iter().filter(|form| asker.has(*form)) {
                    let mut hasty = pay();
                    hasty["limit"] = 5.into();
                    let steps = [list(), hasty, pay()];
                    faulty.open((asker, form, "slow"), &[], [&steps, &[]]);
                    let options = ["--catalog", &catalog];
                    faulty.open((asker, form, "slow, declared"), &options, [&steps, &[]]);
                }
                for seen in ask(asker, &mut [faulty]) {
                    assert_eq!(seen.payments, 1, "{seen:#?}");
                }
            });
        }
    });
}

/// The server asks the user, who confirms after 6 s; the client waits for 5 s, and the model asks again.
#[test]
fn a_payment_that_is_confirmed_after_the_client_gave_up_is_made_once_at_most() {
    thread::scope(|scope| {
        for asker in Asker::ALL {
            scope.spawn(move || {
                let mut faulty = Faulty::start();
                let catalog = faulty.declare();
                let mut hasty = pay();
                hasty["limit"] = 5.into();
                let steps = [list(), hasty, pay()];
                faulty.open((asker, Form::None, "asked"), &[], [&steps, &[]]);
                for form in BOTH.into_iter().filter(|form| asker.has(*form)) {
                    faulty.open((asker, form, "asked"), &[], [&steps, &[]]);
                    let options = ["--catalog", &catalog];
                    faulty.open((asker, form, "asked, declared"), &options, [&steps, &[]]);
                }
                for seen in ask(asker, &mut [faulty]) {
                    let [_, (_, again)] = &seen.asked[..] else { panic!("{seen:#?}") };
                    if seen.cell.contains("None") {
                        assert_eq!(seen.payments, 2, "{seen:#?}");
                    } else {
                        // A client that is refused may end its session before its user confirms.
                        assert!(seen.payments <= 1, "{seen:#?}");
                        let is_told = again.contains("may have run");
                        assert!(is_told || again.contains("number 1"), "{seen:#?}");
                    }
                }
            });
        }
    });
}

/// Its token is renewed in the session; then the model asks again.
#[test]
fn under_a_renewed_token_a_payment_is_made_once() {
    let renew = json!({ "do": "renew", "tool": "", "token": "Bearer new" });
    thread::scope(|scope| {
        for asker in Asker::ALL.into_iter().filter(|asker| asker.renews()) {
            let steps = [list(), pay(), renew.clone(), list(), pay()];
            scope.spawn(move || {
                let mut faulty = Faulty::start();
                let catalog = faulty.declare();
                let options: [&str; 2] = ["--catalog", &catalog];
                for (fault, options) in
                    [("drop", &[][..]), ("drop, declared", &options), ("none, declared", &options)]
                {
                    faulty.open((asker, Form::HttpToHttp, fault), options, [&steps, &[]]);
                    faulty.with_token("Bearer old");
                }
                for seen in ask(asker, &mut [faulty]) {
                    let is_paid = seen.cell.contains("none");
                    seen.assert_once(2, if is_paid { "receipt of" } else { "may have run" });
                }
            });
        }
    });
}
