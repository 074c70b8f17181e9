//! The process that is killed.
use super::{
    Place,
    fuse::{Fuse, Fused, Point, Write},
};
use std::{
    env,
    path::PathBuf,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};
use tower::{Layer, ServiceExt, service_fn};
use tr_core::{BoxError, Json, Params, ToolCall, ToolOutcome};
use tr_integrity::{Format, IntegrityLayer, Message, Operation, Session, Sessions};
use tr_testkit::ledger::Ledger;

/// What the child is told, as one variable.
const ORDER: &str = "TR_INTEGRITY_TEST_ORDER";

pub(super) const FORMAT: Format = Format::AnthropicMessages;

/// Turns that a child takes, if it lives.
pub(super) const TURNS: usize = 3;

/// Calls of one turn, all at once.
pub(super) const CALLS: usize = 2;

/// What a child is to do.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    pub(super) place: String,
    pub(super) ledger: PathBuf,
    pub(super) session: String,
    /// Where to die; nowhere, it is killed from outside.
    pub(super) point: Option<Point>,
    /// At which coming by.
    pub(super) nth: u32,
    /// How long after something was sent.
    pub(super) lasts: Duration,
}

impl Order {
    /// What this process was told, if it is a child.
    pub(crate) fn given() -> Option<Self> {
        let order = env::var(ORDER).ok()?;
        let mut words = order.split('\n');
        let mut next = || words.next().unwrap();
        Some(Self {
            place: next().into(),
            ledger: next().into(),
            session: next().into(),
            point: Point::named(next()),
            nth: next().parse().unwrap(),
            lasts: Duration::from_micros(next().parse().unwrap()),
        })
    }

    /// The child, which runs the test of this name.
    pub(super) fn child(&self, test: &str) -> Command {
        let Self { place, ledger, session, point, nth, lasts } = self;
        let order = [
            place.clone(),
            ledger.to_str().unwrap().into(),
            session.clone(),
            point.map_or_else(String::new, |point| format!("{point:?}")),
            nth.to_string(),
            lasts.as_micros().to_string(),
        ];
        let mut child = Command::new(env::current_exe().unwrap());
        child
            .args([test, "--exact", "--nocapture"])
            .env(ORDER, order.join("\n"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        child
    }

    /// Does it. Says what was acknowledged before it dies.
    pub(crate) async fn obey<P: Place>(self) {
        let fuse = Fuse::new(self.point, self.nth, self.lasts);
        let store = Fused { store: P::open(&self.place).await, fuse: fuse.clone() };
        let sessions = Sessions::builder(FORMAT).store(store).build().unwrap();
        for turn in 0..TURNS {
            self.turn(turn, &sessions, &fuse).await;
        }
    }

    async fn turn(&self, turn: usize, sessions: &Sessions, fuse: &Arc<Fuse>) {
        let id = &*self.session;
        let writes = async |write, work: &mut (dyn FnMut(&mut Session, u64) + Send)| {
            fuse.writes(write);
            sessions.change(id, work).await.unwrap();
        };
        writes(Write::Message, &mut |session, _| session.push(says(&format!("said {turn};"))))
            .await;
        println!("\nkept said {turn};");
        let mut checkpoint = None;
        writes(Write::Checkpoint, &mut |session, now| {
            checkpoint = Some(session.checkpoint(Operation::ApiCall, now).id);
        })
        .await;
        let checkpoint = checkpoint.unwrap();
        fuse.writes(Write::Intent);
        let calls = (0..CALLS).map(|n| self.call(format!("t{turn}_{n}"), sessions, fuse));
        let mut calls: Vec<_> = calls.map(Box::pin).collect();
        for call in &mut calls {
            call.await;
        }
        writes(Write::Commit, &mut |session, now| session.commit(&checkpoint, now).unwrap()).await;

        let mut back = None;
        writes(Write::Message, &mut |session, now| {
            back = Some(session.checkpoint(Operation::Manual, now).id);
            session.push(says(&format!("gone {turn};")));
        })
        .await;
        println!("\nkept gone {turn};");
        let back = back.unwrap();
        // From here on it is open whether it is there.
        println!("\nopen gone {turn};");
        writes(Write::Rollback, &mut |session, now| {
            session.rollback(&back, now).unwrap();
        })
        .await;
        println!("\nrolled gone {turn};");
        fuse.writes(Write::Compaction);
        sessions.compact(id).await.unwrap();
    }

    async fn call(&self, id: String, sessions: &Sessions, fuse: &Arc<Fuse>) {
        let ledger = Ledger::at(&self.ledger);
        let (key, session) = (format!("{}.{id}", self.session), self.session.clone());
        let tool = IntegrityLayer::new(sessions.clone()).layer(service_fn(|_: ToolCall| {
            let (fuse, ledger, key, id) = (fuse.clone(), ledger.clone(), key.clone(), id.clone());
            async move {
                fuse.reach(Point::ToolStarted);
                ledger.append(&key)?;
                fuse.writes(Write::Record);
                fuse.reach(Point::ToolEnded);
                Ok::<_, BoxError>(ToolOutcome::success(Json::from_text(format!(
                    "\"answer {id};\""
                ))?))
            }
        }));
        let call = ToolCall::new("pay", Params::empty_object()).session(session).tool_call_id(&*id);
        fuse.writes(Write::Intent);
        let outcome = tool.oneshot(call).await.unwrap();
        assert!(outcome.recorded());
        println!("\nkept answer {id};");
    }
}

pub(super) fn says(text: &str) -> Message {
    FORMAT.read(format!(r#"{{"role":"user","content":"{text}"}}"#)).unwrap()
}
