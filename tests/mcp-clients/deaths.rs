//! Servers and guards that are killed between a payment and its answer, and started again.
use crate::faulty::{Asker, BOUND, Faulty, Form, Paid, ask, list, pay};
use serde_json::{Value, json};
use std::thread;

/// What is killed is a server at an address, or the guard's command: a new one for the next session, or the same
/// started again.
#[test]
fn behind_the_guard_a_killed_server_is_paid_once() {
    let cells = [
        (Form::HttpToHttp, "die"),
        (Form::StdioToHttp, "die"),
        (Form::HttpToCommand, "die"),
        (Form::StdioToCommand, "die"),
        (Form::StdioToCommand, "die, restart"),
    ];
    thread::scope(|scope| {
        for asker in Asker::ALL {
            scope.spawn(move || {
                let of_asker = cells.iter().filter(|(form, _)| asker.has(*form));
                let open = |(form, fault): &(Form, &str)| {
                    let mut faulty = Faulty::start();
                    let is_back = json!({ "do": "wait", "file": faulty.again() });
                    // Where its session goes on, the model asks once more.
                    let (options, steps) = match form {
                        Form::HttpToHttp if asker.forgets() => (&[][..], vec![list(), pay()]),
                        Form::HttpToHttp | Form::StdioToHttp => {
                            (&[][..], vec![list(), pay(), is_back, pay()])
                        }
                        _ if fault.ends_with("restart") => {
                            (&["--restart", "crash"][..], vec![list(), pay(), pay()])
                        }
                        _ => (&[][..], vec![list(), pay()]),
                    };
                    faulty.open((asker, *form, fault), options, [&steps, &[]]);
                    faulty
                };
                let mut all: Vec<_> = of_asker.map(open).collect();
                for seen in ask(asker, &mut all) {
                    let is_over = seen.cell.contains("Command die")
                        && !seen.cell.contains("restart")
                        || seen.cell.contains("HttpToHttp") && asker.forgets();
                    seen.assert_once(if is_over { 1 } else { 2 }, "may have run");
                }
            });
        }
    });
}

/// Clients that begin another session by themselves when the model asks again.
#[test]
fn without_it_a_killed_server_is_paid_twice() {
    for asker in [Asker::Rmcp, Asker::McpRemote] {
        let mut faulty = Faulty::start();
        let is_back = json!({ "do": "wait", "file": faulty.again() });
        let steps = [list(), pay(), is_back, pay()];
        faulty.open((asker, Form::None, "die"), &[], [&steps, &[]]);
        for seen in ask(asker, &mut [faulty]) {
            assert_eq!(seen.payments, 2, "{seen:#?}");
        }
    }
}

const ALL: [Form; 4] =
    [Form::HttpToHttp, Form::StdioToHttp, Form::HttpToCommand, Form::StdioToCommand];

/// The next client, or the same, asks for the payment under the same key.
#[test]
fn a_guard_that_is_killed_knows_a_payment_that_has_a_key() {
    let keyed = |asker: Asker, form: Form| {
        let mut step = pay();
        step["meta"] = json!({ "idempotencyKey": format!("{asker:?} {form:?}") });
        step
    };
    assert_once_in_the_end(&|asker, form| {
        let mut first = keyed(asker, form);
        // Some wait for the rest of a stream that no guard has any more.
        first["limit"] = 3.into();
        asker.has_keys().then(|| [vec![list(), first], vec![list(), keyed(asker, form)]])
    });
}

/// Without a key, in the same session.
#[test]
fn a_guard_that_is_killed_knows_the_payments_of_a_session() {
    assert_once_in_the_end(&|asker, form| {
        // PyPI's client ends with its connection.
        let has_session = form == Form::HttpToHttp && asker != Asker::Mcp;
        has_session.then(|| [vec![list(), pay(), json!({ "do": "wait" }), pay()], vec![]])
    });
}

/// Kills the guard between the payment and its answer. The last answer of these scripts says that it may have run.
fn assert_once_in_the_end(scripts: &(dyn Fn(Asker, Form) -> Option<[Vec<Value>; 2]> + Sync)) {
    thread::scope(|scope| {
        for asker in Asker::ALL {
            scope.spawn(move || {
                let open = |form: Form| {
                    let [mut first, next] = scripts(asker, form)?;
                    let mut faulty = Faulty::start();
                    for step in first.iter_mut().filter(|step| step["do"] == "wait") {
                        step["file"] = faulty.again().to_str().into();
                    }
                    faulty.open((asker, form, "kill"), &[], [&first, &next]);
                    Some(faulty)
                };
                let forms = ALL.into_iter().filter(|form| asker.has(*form));
                let mut all: Vec<_> = forms.filter_map(open).collect();
                if all.is_empty() {
                    return;
                }
                for mut seen in ask(asker, &mut all) {
                    let last = seen.asked.split_off(seen.asked.len() - 1);
                    for (took, answer) in &seen.asked {
                        assert!(*took < BOUND && !answer.contains("receipt"), "{seen:#?}");
                    }
                    Paid { asked: last, ..seen }.assert_once(1, "may have run");
                }
            });
        }
    });
}
