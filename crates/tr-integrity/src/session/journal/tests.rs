//! Whatever is done to a session, in any order: its log makes the same session again.
use super::{Change, SessionJournal, decode, encode};
use crate::{
    config::Layer0Config,
    session::{CycleId, CycleMode, Operation, ResetOptions, Session},
    store::Revision,
};
use proptest::{collection::vec, prelude::*};
use std::{collections::VecDeque, sync::Arc};
use tr_core::{Answer, CycleRef, Ran};
use tr_testkit::rounds;
use tr_transcript::{
    Complaint, Format, ModelEnd, Repair, Validator,
    internal::{self, NewResult},
};

#[derive(Clone, Debug)]
enum Act {
    Say(&'static str),
    /// The agent records a step itself; its tools are called, or not.
    Step(usize, bool),
    /// A result that nobody asked for.
    Orphan,
    Begin,
    Start(usize),
    Finish(usize),
    Fail(usize, Ran),
    Abandon(usize),
    Recover,
    Checkpoint(Operation),
    Commit(usize),
    Rollback(usize),
    Restore(usize),
    Prune(usize),
    Error(ModelEnd),
    Repair,
    Reset(bool),
    /// What has happened is written.
    Write,
    /// The log is compacted.
    Compact,
}

fn act() -> impl Strategy<Value = Act> {
    use Act::*;
    let n = || 0..9_usize;
    let ran = prop_oneof![Just(Ran::No), Just(Ran::Yes), Just(Ran::Unknown)];
    let end = prop_oneof![
        Just(ModelEnd::Filtered),
        Just(ModelEnd::Failed),
        Just(ModelEnd::Refused(Complaint::IncompleteUse)),
    ];
    let operation = prop_oneof![Just(Operation::ApiCall), Just(Operation::Manual)];
    prop_oneof![
        3 => prop_oneof![Just("hm"), Just(" "), Just("\u{1f980}")].prop_map(Say),
        3 => (1..4_usize, any::<bool>()).prop_map(|(count, called)| Step(count, called)),
        1 => Just(Orphan),
        2 => Just(Begin),
        2 => n().prop_map(Start),
        6 => n().prop_map(Finish),
        2 => (n(), ran).prop_map(|(at, ran)| Fail(at, ran)),
        1 => n().prop_map(Abandon),
        1 => Just(Recover),
        3 => operation.prop_map(Checkpoint),
        2 => n().prop_map(Commit),
        2 => n().prop_map(Rollback),
        1 => n().prop_map(Restore),
        1 => n().prop_map(Prune),
        1 => end.prop_map(Error),
        1 => Just(Repair),
        1 => any::<bool>().prop_map(Reset),
        4 => Just(Write),
        1 => Just(Compact),
    ]
}

/// A session, and what its log says.
struct Life {
    session: Session,
    open: Vec<CycleId>,
    uses: usize,
    now: u64,
    log: Vec<(Revision, Vec<u8>)>,
}

impl Life {
    fn new(format: Format, mode: CycleMode, snapshots: bool) -> Self {
        let mut config = Layer0Config::default();
        (config.snapshot_messages, config.verbose) = (snapshots, snapshots);
        config.checkpoint_retention = 2;
        config.auto_repair = snapshots;
        let mut session = Session::new("s", format).configured(&Arc::new(config), mode, 7);
        session.keep_changes(false);
        Self { session, open: Vec::new(), uses: 0, now: 0, log: Vec::new() }
    }

    fn begin(&mut self, id: &str) {
        let cycle = CycleRef { session: "s", tool_use_id: id, name: "x", input: "{\"a\": 1}" };
        let id = self.session.begin_cycle(&cycle, self.now);
        self.open.push(id);
    }

    fn open(&self, n: usize) -> Option<CycleId> {
        let len = self.open.len();
        (len > 0).then(|| self.open[n % len])
    }

    fn close(&mut self, n: usize) -> Option<CycleId> {
        let id = self.open(n)?;
        self.open.retain(|open| *open != id);
        Some(id)
    }

    fn checkpoint(&self, n: usize) -> Option<Box<str>> {
        let all = self.session.checkpoints();
        (!all.is_empty()).then(|| all[n % all.len()].id.clone())
    }

    fn answer(&self, ran: Ran) -> Answer<'static> {
        let content = format!("answer \"{}\"", self.now).into();
        Answer { content, is_error: ran != Ran::Yes, ran }
    }

    fn read(&self, raw: &str) -> crate::Message {
        self.session.transcript().format().read(raw).unwrap()
    }

    fn write(&mut self) {
        let changes = self.session.take_changes().map_or_else(Vec::new, |batch| batch.changes);
        if !changes.is_empty() {
            let number = self.log.last().map_or(1, |(last, _)| last.number + 1);
            self.keep(Revision { number, stamp: 1 }, &changes);
        }
    }

    fn keep(&mut self, revision: Revision, changes: &[Change]) {
        self.log.push((revision, encode("s", revision, changes)));
    }

    fn does(&mut self, act: &Act) {
        self.now += 1;
        let now = self.now;
        let format = self.session.transcript().format();
        match *act {
            Act::Say(text) => {
                // White space of its own stays, too.
                let raw = format!(" {{\"role\":\"user\", \"content\":{:?}}}\n", text);
                self.session.push(self.read(&raw));
            }
            Act::Step(count, called) => {
                self.uses += 1;
                let ids: Vec<_> = (0..count).map(|n| format!("s{}_{n}", self.uses)).collect();
                let uses: Vec<_> = ids.iter().map(|id| (&**id, "x", "{}")).collect();
                let step = format.write_uses(&uses);
                step.into_iter().for_each(|message| self.session.push(message));
                ids.iter().filter(|_| called).for_each(|id| self.begin(id));
            }
            Act::Orphan => {
                let result =
                    NewResult { id: "nobody", name: "x", content: "said", is_error: false };
                let result = internal::write_result(format, None, result);
                let results = format.hold_results(&[result]);
                results.into_iter().for_each(|message| self.session.push(message));
            }
            Act::Begin => {
                self.uses += 1;
                self.begin(&format!("c{}", self.uses));
            }
            Act::Start(n) => self.open(n).into_iter().for_each(|id| self.session.start_cycle(id)),
            Act::Finish(n) => {
                let Some(id) = self.close(n) else { return };
                let answer = self.answer(Ran::Yes);
                self.session.finish_cycle(id, &answer, now);
            }
            Act::Fail(n, ran) => {
                let Some(id) = self.close(n) else { return };
                let answer = self.answer(ran);
                self.session.fail_cycle(id, &answer, now);
            }
            Act::Abandon(n) => {
                let Some(id) = self.close(n) else { return };
                self.session.abandon_cycle(id, now);
            }
            Act::Recover => drop(self.session.recover(now)),
            Act::Checkpoint(operation) => drop(self.session.checkpoint(operation, now)),
            Act::Commit(n) => {
                let Some(id) = self.checkpoint(n) else { return };
                self.session.commit(&id, now).unwrap();
            }
            Act::Rollback(n) => {
                let Some(id) = self.checkpoint(n) else { return };
                drop(self.session.rollback(&id, now));
            }
            Act::Restore(n) => {
                let Some(id) = self.checkpoint(n) else { return };
                drop(self.session.restore(&id, now));
            }
            Act::Prune(keep) => drop(self.session.prune(keep)),
            Act::Error(end) => drop(self.session.handle_error(end, None, now)),
            Act::Repair => {
                let plan = self.session.plan(Repair::preserve());
                self.session.apply(plan, now).unwrap();
            }
            Act::Reset(archive) => drop(self.session.reset(ResetOptions { archive }, now)),
            Act::Write => self.write(),
            Act::Compact => {
                self.write();
                let Some((last, _)) = self.log.pop() else { return };
                self.log.clear();
                self.keep(last, &self.session.base());
            }
        }
    }

    /// The session that the log makes.
    fn again(&self) -> Session {
        let decoded =
            |(revision, body): &(Revision, Vec<u8>)| decode("s", *revision, body).unwrap();
        let changes: Vec<Change> = self.log.iter().flat_map(decoded).collect();
        let Session { config, mode, driver, .. } = &self.session;
        Session::replay("s", changes).unwrap().configured(config, *mode, *driver)
    }
}

/// All of a session that can be seen, and all that its log would say.
fn all_of(session: &Session) -> [String; 4] {
    let mut seen = session.clone();
    seen.journal = SessionJournal::default();
    seen.validator = Validator::new(session.transcript().format());
    (seen.turns, seen.ended) = (0, VecDeque::new());
    let found = (session.validator.findings(), session.validator.pending().collect::<Vec<_>>());
    let base = serde_json::to_string(&session.base()).unwrap();
    [session.transcript().to_json(), base, format!("{seen:?}"), format!("{found:?}")]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(rounds(120, 4_000) as u32) })]

    #[test]
    fn a_log_makes_its_session_again(
        acts in vec(act(), 0..60),
        later in vec(act(), 0..10),
        rollback: bool,
        snapshots: bool,
    ) {
        let mode = if rollback { CycleMode::Rollback } else { CycleMode::Preserve };
        for format in Format::ALL {
            let mut life = Life::new(format, mode, snapshots);
            for act in &acts {
                life.does(act);
                if matches!(act, Act::Write | Act::Compact) {
                    prop_assert!(!life.session.has_changes());
                    prop_assert_eq!(all_of(&life.again()), all_of(&life.session));
                }
            }
            life.write();
            let again = life.again();
            prop_assert_eq!(all_of(&again), all_of(&life.session));
            // And both do the same from then on.
            let mut other = Life { session: again, log: Vec::new(), open: life.open.clone(), ..life };
            other.session.keep_changes(true);
            life.log.clear();
            for act in &later {
                life.does(act);
                other.does(act);
                prop_assert_eq!(all_of(&other.session), all_of(&life.session));
            }
            life.write();
            other.write();
            prop_assert_eq!(other.log, life.log);
        }
    }
}

fn written() -> (Revision, Vec<u8>) {
    let mut life = Life::new(Format::OpenAiChat, CycleMode::Preserve, false);
    life.does(&Act::Say("hm"));
    life.write();
    life.log.remove(0)
}

#[test]
fn damage_is_found_wherever_it_is() {
    let (revision, body) = written();
    for at in 0..body.len() {
        let mut damaged = body.clone();
        damaged[at] ^= 1;
        assert!(decode("s", revision, &damaged).is_err(), "at {at}");
        assert!(decode("s", revision, &body[..at]).is_err(), "cut at {at}");
    }
    assert!(decode("s", revision, &body).is_ok());
    assert!(decode("t", revision, &body).is_err(), "of another session");
    assert!(decode("s", Revision { number: 9, ..revision }, &body).is_err(), "of another place");
    assert!(decode("s", Revision { stamp: 9, ..revision }, &body).is_err(), "of another writer");
}

#[test]
fn a_newer_version_is_named_so() {
    let (revision, body) = written();
    let newer = [b"trs2", &body[4..]].concat();
    let error = decode("s", revision, &newer).unwrap_err();
    assert_eq!(error, "a newer version wrote it");
    let error = decode("s", revision, b"other").unwrap_err();
    assert_eq!(error, "it is damaged: the checksum is another");
}

#[test]
fn what_came_and_went_in_between_is_not_written() {
    let mut life = Life::new(Format::AnthropicMessages, CycleMode::Preserve, false);
    life.write();
    for act in [Act::Begin, Act::Start(0), Act::Finish(0)] {
        life.does(&act);
    }
    let changes = life.session.take_changes().map_or_else(Vec::new, |batch| batch.changes);
    let kinds: Vec<_> = changes
        .iter()
        .map(|change| match change {
            Change::Message(_) => "message",
            Change::Checkpoint(_) => "checkpoint",
            Change::Counted { cycles: 1, .. } => "counted",
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(kinds, ["message", "message", "checkpoint", "counted"]);
    life.does(&Act::Say("gone"));
    life.session.cut(2);
    assert!(!life.session.has_changes());
}

#[test]
fn changes_that_do_not_fit_are_refused() {
    let opened =
        || Change::Opened { format: Format::OpenAiChat, head: "[".into(), tail: "]".into() };
    for (wrong, why) in [
        (vec![], "the log does not begin with the session's form"),
        (vec![Change::Cut(0)], "the log does not begin with the session's form"),
        (vec![opened(), opened()], "the session's form is there twice"),
        (vec![opened(), Change::Cut(1)], "more messages are kept than there are"),
        (vec![opened(), Change::Committed(vec![1])], "there is no checkpoint of this number"),
        (vec![opened(), Change::Pruned(vec![1])], "there is no checkpoint of this number"),
        (vec![opened(), Change::Over(vec![1])], "there is no cycle of this number"),
        (vec![opened(), Change::DoneWith(vec![1])], "a cycle was not recorded"),
    ] {
        assert_eq!(Session::replay("s", wrong).unwrap_err(), why);
    }
}

/// Who can write in a store can have a log say anything.
#[test]
fn a_log_whose_numbers_lead_nowhere_is_refused() {
    let replayed = |changes: &str| {
        let opened = r#"{"opened":{"format":"anthropic_messages","head":"[","tail":"]"}}"#;
        let message = r#"{"message":{"json":{"role":"user","content":"go"}}}"#;
        let text = format!("[{opened},{message},{changes}]");
        Session::replay("s", serde_json::from_str::<Vec<Change>>(&text).unwrap())
    };
    let cycle = |used: u64| {
        format!(
            r#"{{"cycle":{{"checkpoint":"s#1","tool_use":{{"id":"t","name":"a","input":"{{}}"}},"driver":1,"id":1,"state":"pending","used":{used}}}}}"#
        )
    };
    assert!(replayed(&cycle(0)).is_ok());
    for changes in [
        cycle(1),
        format!(r#"{},{{"moved":{{"id":1,"state":"executing","used":9}}}}"#, cycle(0)),
        format!(r#"{},{{"cut":0}}"#, cycle(0)),
        r#"{"done":{"id":1,"at":0,"used":7,"tool_use":{"id":"t","name":"a","input":"{}"},"result":{"tool_use_id":"t","content":"","is_error":false}}}"#.to_owned(),
        r#"{"counted":{"checkpoints":18446744073709551615,"cycles":0}}"#.to_owned(),
        r#"{"counted":{"checkpoints":0,"cycles":18446744073709551615}}"#.to_owned(),
    ] {
        assert!(replayed(&changes).is_err(), "{changes}");
    }
}
