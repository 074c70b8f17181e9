//! Ids that come again: a result never lands at the use of another call.
use crate::common::{message, user};
use proptest::{collection::vec, prelude::*};
use serde_json::Value;
use std::collections::HashMap;
use tr_core::{Answer, CycleRef, Ran};
use tr_integrity::{
    CycleId, CycleMode, Format, Layer0Config, ModelEnd, Operation, Repair, Role, Session, Sessions,
};

const FORMATS: [Format; 2] = [Format::OpenAiChat, Format::OpenAiResponses];

#[derive(Clone, Debug)]
enum Act {
    /// The model's step with these of the ids, called before it is pushed or behind it.
    Step(Vec<bool>, bool),
    Say,
    Finish(usize),
    Fail(usize, Ran),
    Abandon(usize),
    Recover,
    Checkpoint(Operation),
    Rollback(usize),
    Restore(usize),
    Error(ModelEnd),
    Repair,
}

fn act() -> impl Strategy<Value = Act> {
    use Act::*;
    let n = || 0..9_usize;
    let ran = prop_oneof![Just(Ran::No), Just(Ran::Yes), Just(Ran::Unknown)];
    let end = prop_oneof![Just(ModelEnd::Filtered), Just(ModelEnd::Failed)];
    let operation = prop_oneof![Just(Operation::ApiCall), Just(Operation::Manual)];
    prop_oneof![
        6 => (vec(any::<bool>(), 2), any::<bool>()).prop_map(|(ids, early)| Step(ids, early)),
        4 => Just(Say),
        7 => n().prop_map(Finish),
        2 => (n(), ran).prop_map(|(at, ran)| Fail(at, ran)),
        1 => n().prop_map(Abandon),
        1 => Just(Recover),
        3 => operation.prop_map(Checkpoint),
        3 => n().prop_map(Rollback),
        1 => n().prop_map(Restore),
        2 => end.prop_map(Error),
        1 => Just(Repair),
    ]
}

/// A call: its number is in the use's arguments and in the result.
struct Call {
    cycle: CycleId,
    number: usize,
}

struct Life<'s> {
    session: &'s mut Session,
    calls: Vec<Call>,
    made: usize,
}

fn id(n: usize) -> String {
    format!("functions.read:{n}")
}

impl Life<'_> {
    fn format(&self) -> Format {
        self.session.transcript().format()
    }

    fn push_step(&mut self, uses: &[(usize, usize)]) {
        let (format, mut calls) = (self.format(), Vec::new());
        for &(n, number) in uses {
            let (id, input) = (id(n), format!(r#""{{\"n\":{number}}}""#));
            calls.push(match format {
                Format::OpenAiChat => format!(
                    r#"{{"id":"{id}","type":"function","function":{{"name":"read","arguments":{input}}}}}"#
                ),
                _ => format!(
                    r#"{{"type":"function_call","call_id":"{id}","name":"read","arguments":{input}}}"#
                ),
            });
        }
        if format == Format::OpenAiChat {
            calls = vec![format!(r#"{{"role":"assistant","tool_calls":[{}]}}"#, calls.join(","))];
        }
        calls.into_iter().for_each(|raw| self.session.push(message(format, raw)));
    }

    fn begin(&mut self, uses: &[(usize, usize)]) {
        for &(n, number) in uses {
            let (id, input) = (id(n), format!(r#"{{"n":{number}}}"#));
            let cycle = CycleRef { session: "s", tool_use_id: &id, name: "read", input: &input };
            let cycle = self.session.begin_cycle(&cycle, 0);
            self.session.start_cycle(cycle);
            self.calls.push(Call { cycle, number });
        }
    }

    fn take(&mut self, n: usize) -> Option<Call> {
        let len = self.calls.len();
        (len > 0).then(|| self.calls.remove(n % len))
    }

    fn does(&mut self, act: &Act) {
        match act {
            Act::Step(ids, early) => {
                let ids = (0..ids.len()).filter(|&n| ids[n]);
                let uses: Vec<_> = ids.map(|n| (n, self.made + n)).collect();
                self.made += 2;
                if uses.is_empty() {
                    return;
                }
                // Else it were the same step, in a form of items.
                let last = self.session.transcript().messages().last();
                if last.is_some_and(|last| last.role() == Role::Assistant) {
                    self.does(&Act::Say);
                }
                if *early {
                    self.begin(&uses);
                    self.push_step(&uses);
                } else {
                    self.push_step(&uses);
                    self.begin(&uses);
                }
            }
            Act::Say => self.session.push(message(self.format(), user("go on"))),
            Act::Finish(at) => {
                let Some(Call { cycle, number }) = self.take(*at) else { return };
                let content = format!("answer {number};").into();
                let answer = Answer { content, is_error: false, ran: Ran::Yes };
                self.session.finish_cycle(cycle, &answer, 0);
            }
            Act::Fail(at, ran) => {
                let Some(Call { cycle, number }) = self.take(*at) else { return };
                let content = format!("answer {number};").into();
                self.session.fail_cycle(cycle, &Answer { content, is_error: true, ran: *ran }, 0);
            }
            Act::Abandon(at) => {
                if let Some(call) = self.take(*at) {
                    self.session.abandon_cycle(call.cycle, 0);
                }
            }
            Act::Recover => drop(self.session.recover(0)),
            Act::Checkpoint(operation) => drop(self.session.checkpoint(*operation, 0)),
            Act::Rollback(at) | Act::Restore(at) => {
                let all = self.session.checkpoints();
                let Some(at) = at.checked_rem(all.len()) else { return };
                let id = all[at].id.clone();
                if matches!(act, Act::Restore(_)) {
                    let _ = self.session.restore(&id, 0);
                } else {
                    let _ = self.session.rollback(&id, 0);
                }
            }
            Act::Error(end) => drop(self.session.handle_error(*end, None, 0)),
            Act::Repair => {
                let plan = self.session.plan(Repair::preserve());
                drop(self.session.apply(plan, 0));
            }
        }
    }

    /// Each result of a tool's own stands at the use with its number.
    fn check(&self) -> Result<(), TestCaseError> {
        let json = self.session.transcript().to_json();
        let messages: Vec<Value> = serde_json::from_str(&json).unwrap();
        let mut open: HashMap<String, Vec<String>> = HashMap::new();
        for message in &messages {
            let calls = message["tool_calls"].as_array().cloned().unwrap_or_default();
            let calls = calls.iter().map(|call| (&call["id"], &call["function"]["arguments"]));
            let item = (message["type"] == "function_call")
                .then(|| (&message["call_id"], &message["arguments"]));
            for (id, input) in calls.chain(item) {
                let id = id.as_str().unwrap().to_owned();
                let number = serde_json::from_str::<Value>(input.as_str().unwrap()).unwrap();
                open.entry(id).or_default().push(number["n"].to_string());
            }
            let result = [("tool_call_id", "content"), ("call_id", "output")];
            let result = result.into_iter().find(|(_, said)| message[said].is_string());
            let Some((id, said)) = result.filter(|(id, _)| message[id].is_string()) else {
                continue;
            };
            let uses = open.get_mut(message[id].as_str().unwrap());
            let number = uses.and_then(Vec::pop);
            prop_assert!(number.is_some(), "no use: {}", json);
            let said = message[said].as_str().unwrap();
            if said.starts_with("answer") {
                let expected = format!("answer {};", number.unwrap());
                prop_assert!(said.starts_with(&expected), "{} at {}: {}", said, expected, json);
            }
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(tr_testkit::rounds(200, 20_000) as u32)
    })]

    #[test]
    fn a_result_never_lands_at_another_use(acts in vec(act(), 0..40), rollback: bool) {
        let mode = if rollback { CycleMode::Rollback } else { CycleMode::Preserve };
        for format in FORMATS {
            let mut config = Layer0Config::default();
            config.snapshot_messages = true;
            let sessions = Sessions::builder(format).mode(mode).config(config).build().unwrap();
            sessions.with("s", |session, _| {
                session.push(message(format, user("go")));
                let mut life = Life { session, calls: Vec::new(), made: 0 };
                for act in &acts {
                    life.does(act);
                    life.check()?;
                }
                Ok::<_, TestCaseError>(())
            })?;
        }
    }
}

/// The use of a later turn goes with its model's call; its late result is no answer to the earlier.
#[test]
fn a_late_result_of_a_use_that_went_is_no_other_uses() {
    for format in FORMATS {
        let sessions = Sessions::new(format);
        sessions.with("s", |session, _| {
            session.push(message(format, user("go")));
            let mut life = Life { session, calls: Vec::new(), made: 0 };
            life.does(&Act::Step(vec![true], false));
            life.does(&Act::Say);
            life.does(&Act::Checkpoint(Operation::ApiCall));
            life.does(&Act::Step(vec![true], false));
            life.does(&Act::Error(ModelEnd::Failed));
            life.does(&Act::Finish(1));
            life.check().unwrap();
            let json = life.session.transcript().to_json();
            assert!(json.contains("answer 2;") && json.contains("outcome unknown"), "{json}");
            life.does(&Act::Finish(0));
            life.check().unwrap();
            let json = life.session.transcript().to_json();
            assert!(json.contains("answer 0;") && !json.contains("outcome unknown"), "{json}");
            assert!(life.session.validate().valid);
        });
    }
}

#[test]
fn an_unanswered_use_before_takes_no_result() {
    let sessions = Sessions::new(Format::OpenAiResponses);
    sessions.with("s", |session, _| {
        session.push(message(Format::OpenAiResponses, user("go")));
        let mut life = Life { session, calls: Vec::new(), made: 0 };
        for act in [
            Act::Step(vec![true, false], false),
            Act::Finish(0),
            Act::Rollback(0),
            Act::Step(vec![true, true], false),
            Act::Step(vec![true, false], false),
            Act::Fail(0, Ran::No),
            Act::Finish(2),
        ] {
            life.does(&act);
            life.check().unwrap();
        }
    });
}
