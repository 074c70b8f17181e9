//! Whatever happens to a session and its cycles, in any order, it stays valid.
use crate::common::{FORMATS, message, push_step, user};
use proptest::{collection::vec, prelude::*};
use std::sync::Arc;
use tr_core::{Answer, CycleRef, Ran, SetClock};
use tr_integrity::{
    CycleId, CycleMode, Format, Message, ModelEnd, Operation, Role, Session, Sessions, Validator,
};

#[derive(Clone, Debug)]
enum Event {
    Say,
    /// The agent records a step itself, and calls its tools.
    Step(usize),
    /// A tool is called whose use the agent has not recorded.
    Call,
    Finish(usize),
    Fail(usize, Ran),
    Abandon(usize),
    Recover,
    Checkpoint,
    Rollback,
    Filter,
}

fn event() -> impl Strategy<Value = Event> {
    use Event::*;
    let ran = prop_oneof![Just(Ran::No), Just(Ran::Yes), Just(Ran::Unknown)];
    prop_oneof![
        2 => Just(Say),
        3 => (1..4_usize).prop_map(Step),
        2 => Just(Call),
        6 => (0..9_usize).prop_map(Finish),
        2 => (0..9_usize, ran).prop_map(|(n, ran)| Fail(n, ran)),
        1 => (0..9_usize).prop_map(Abandon),
        1 => Just(Recover),
        2 => Just(Checkpoint),
        1 => Just(Rollback),
        1 => Just(Filter),
    ]
}

#[derive(Default)]
struct Life {
    open: Vec<CycleId>,
    begun: usize,
    answers: usize,
}

impl Life {
    fn begin(&mut self, session: &mut Session, id: &str) {
        let cycle = CycleRef { session: "s", tool_use_id: id, name: "x", input: "{}" };
        let id = session.begin_cycle(&cycle, 0);
        session.start_cycle(id);
        self.open.push(id);
    }

    fn pick(&mut self, n: usize) -> Option<CycleId> {
        let len = self.open.len();
        (len > 0).then(|| self.open.remove(n % len))
    }

    fn happens(&mut self, event: &Event, session: &mut Session) {
        let format = session.transcript().format();
        match *event {
            Event::Say | Event::Step(_) if waits_for_the_agent(session) => {}
            Event::Say => session.push(message(format, user("hm"))),
            Event::Step(count) => {
                // Where a step must follow the user, the user speaks.
                let last = session.transcript().messages().last().map(Message::role);
                let waits = session.validator().pending().next().is_some();
                if format == Format::Gemini && last != Some(Role::User) && !waits {
                    session.push(message(format, user("go")));
                }
                let ids: Vec<_> = (0..count).map(|n| format!("s{}_{n}", self.begun)).collect();
                self.begun += 1;
                let refs: Vec<_> = ids.iter().map(String::as_str).collect();
                push_step(session, &refs);
                ids.iter().for_each(|id| self.begin(session, id));
            }
            Event::Call => {
                self.begun += 1;
                self.begin(session, &format!("c{}", self.begun));
            }
            Event::Finish(n) => {
                let Some(id) = self.pick(n) else { return };
                self.answers += 1;
                let content = format!("answer {};", self.answers).into();
                session.finish_cycle(id, &Answer { content, is_error: false, ran: Ran::Yes }, 0);
            }
            Event::Fail(n, ran) => {
                let Some(id) = self.pick(n) else { return };
                session.fail_cycle(id, &Answer { content: "no".into(), is_error: true, ran }, 0);
            }
            Event::Abandon(n) => {
                let Some(id) = self.pick(n) else { return };
                session.abandon_cycle(id, 0);
            }
            Event::Recover => drop(session.recover(0)),
            Event::Checkpoint => drop(session.checkpoint(Operation::ApiCall, 0)),
            Event::Rollback => {
                let Some(id) = session.latest().map(|latest| latest.id.clone()) else { return };
                session.rollback(&id, 0).unwrap();
            }
            Event::Filter => drop(session.handle_error(ModelEnd::Filtered, None, 0)),
        }
    }
}

/// A rollback, also one by a content filter, may leave uses that no cycle answers any more: that is the agent's to do.
fn waits_for_the_agent(session: &Session) -> bool {
    let cycles = session.cycles();
    session.validator().pending().any(|id| cycles.iter().all(|c| &*c.tool_use.id != id))
}

fn check(session: &Session, event: &Event) -> Result<(), TestCaseError> {
    let json = session.transcript().to_json();
    let fresh = Validator::of(session.transcript());
    prop_assert!(session.validate().valid, "{event:?}: {:?}\n{json}", session.validate());
    for n in 0..40 {
        prop_assert!(json.matches(&format!("answer {n};")).count() <= 1, "{event:?}: {n}\n{json}");
    }
    prop_assert_eq!(session.validator().findings(), fresh.findings());
    prop_assert!(session.validator().pending().eq(fresh.pending()), "{event:?}\n{json}");
    // The chain of hashes is that of a session which is loaded with these messages.
    let mut loaded = Session::load("s", session.transcript().clone());
    let mut same = session.clone();
    let hashes = [&mut loaded, &mut same].map(|s| s.checkpoint(Operation::Manual, 0).content_hash);
    prop_assert_eq!(&hashes[0], &hashes[1]);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(tr_testkit::rounds(100, 8_000) as u32) })]

    #[test]
    fn a_session_is_valid_at_every_moment(events in vec(event(), 0..40), rollback: bool) {
        let mode = if rollback { CycleMode::Rollback } else { CycleMode::Preserve };
        for format in FORMATS {
            live(format, mode, &events)?;
        }
    }
}

fn live(format: Format, mode: CycleMode, events: &[Event]) -> Result<(), TestCaseError> {
    let sessions =
        Sessions::builder(format).mode(mode).clock(Arc::new(SetClock::at(0))).build().unwrap();
    sessions.with("s", |session, _| {
        let mut life = Life::default();
        for event in events {
            life.happens(event, session);
            check(session, event)?;
        }
        let rolled_back = events.iter().any(|event| matches!(event, Event::Rollback));
        while let Some(id) = life.pick(0) {
            session.abandon_cycle(id, 0);
        }
        session.recover(0);
        check(session, &Event::Recover)?;
        // Only a rollback by hand, or the mode that is named so, takes an answer away.
        if !rolled_back && mode == CycleMode::Preserve && !waits_for_the_agent(session) {
            prop_assert_eq!(session.cycles().len(), 0);
            let json = session.transcript().to_json();
            for n in 1..=life.answers {
                prop_assert!(json.contains(&format!("answer {n};")), "answer {n}: {json}");
            }
        }
        Ok(())
    })
}

/// The filter brings back a step of which one use was answered elsewhere meanwhile.
#[test]
fn a_filter_can_leave_a_use_to_the_agent() {
    use Event::*;
    let events = [Call, Call, Finish(0), Step(2), Checkpoint, Step(2), Step(2), Recover]
        .into_iter()
        .chain([Finish(0), Finish(6), Filter]);
    for format in FORMATS {
        live(format, CycleMode::Preserve, &events.clone().collect::<Vec<_>>()).unwrap();
    }
}
