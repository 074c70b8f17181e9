//! Faults of a server over HTTP, played to SDK clients after it has made the payment.
use crate::faulty::{Asker, Faulty, Form, ask, list, pay};
use serde_json::Value;
use std::thread;

const FAULTS: [&str; 7] = ["404", "400", "401", "503", "drop", "cut without id", "cut with id"];

/// No response, and one that begins a stream on which nothing comes.
const SILENT: [&str; 2] = ["hang", "silence"];

const BOTH: [Form; 2] = [Form::HttpToHttp, Form::StdioToHttp];

#[test]
fn behind_the_guard_a_payment_is_made_once_and_the_client_is_told() {
    thread::scope(|scope| {
        for asker in Asker::ALL {
            scope.spawn(move || {
                let mut faulty = Faulty::start();
                for form in BOTH.into_iter().filter(|form| asker.has(*form)) {
                    for fault in FAULTS {
                        faulty.open((asker, form, fault), &[], [&[list(), pay()], &[]]);
                    }
                }
                for seen in ask(asker, &mut [faulty]) {
                    let resumed = seen.cell.ends_with("with id");
                    seen.assert_once(1, if resumed { "receipt of" } else { "may have run" });
                }
            });
        }
    });
}

/// The server never answers. The model asks twice: after the guard's answer, or after the client's own limit.
#[test]
fn behind_the_guard_a_server_that_is_silent_is_paid_once() {
    thread::scope(|scope| {
        for asker in Asker::ALL {
            scope.spawn(move || {
                let mut faulty = Faulty::start();
                for form in BOTH.into_iter().filter(|form| asker.has(*form)) {
                    for fault in SILENT {
                        let steps = [list(), pay(), pay()];
                        faulty.open((asker, form, fault), &["--timeout", "2s"], [&steps, &[]]);
                        let cell = format!("{fault}, impatient");
                        // Only what has run for 4 s is joined by a call of a client that says nothing.
                        let steps = [list(), hasty(if asker.cancels() { 1 } else { 5 }), pay()];
                        faulty.open((asker, form, &cell), &[], [&steps, &[]]);
                    }
                }
                for mut seen in ask(asker, &mut [faulty]) {
                    if seen.cell.ends_with("impatient") {
                        let (_, own) = seen.asked.remove(0);
                        assert!(own.contains("time") || own.contains("aborted"), "{own}");
                        // Else it still runs, and its equal waits for its end.
                        let told = if asker.cancels() { "may have run" } else { "aborted" };
                        seen.assert_once(1, told);
                    } else {
                        seen.assert_once(2, "may have run");
                    }
                }
            });
        }
    });
}

/// What the guard is for.
#[test]
fn without_it_clients_that_repeat_pay_twice() {
    // In front of `mcp-remote`, which repeats the call behind it, it cannot help.
    for (asker, form) in [
        (Asker::Rmcp, Form::None),
        (Asker::McpRemote, Form::None),
        (Asker::McpRemote, Form::BeforeRemote),
    ] {
        let mut faulty = Faulty::start();
        faulty.open((asker, form, "404"), &[], [&[list(), pay()], &[]]);
        for seen in ask(asker, &mut [faulty]) {
            assert_eq!(seen.payments, 2, "{seen:#?}");
        }
    }
}

/// A model that gets no answer, and asks again.
#[test]
fn without_it_a_silent_server_is_paid_twice() {
    thread::scope(|scope| {
        for asker in Asker::ALL {
            scope.spawn(move || {
                let mut faulty = Faulty::start();
                for fault in SILENT {
                    let steps = [list(), hasty(1), pay()];
                    faulty.open((asker, Form::None, fault), &[], [&steps, &[]]);
                }
                for seen in ask(asker, &mut [faulty]) {
                    assert_eq!(seen.payments, 2, "{seen:#?}");
                }
            });
        }
    });
}

/// A payment by a client that waits for so many seconds.
fn hasty(limit: u64) -> Value {
    let mut step = pay();
    step["limit"] = limit.into();
    step
}
