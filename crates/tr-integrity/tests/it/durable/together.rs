//! Several processes and many tasks in one session, in any order: no acknowledged answer is lost.
use super::{Shaky, call, found, process, shaky::Fate, text, tool};
use crate::common::{message, user};
use proptest::{collection::vec, prelude::*};
use std::sync::{Arc, Mutex};
use tokio::{
    runtime::Builder,
    task::{JoinSet, yield_now},
};
use tower::ServiceExt;
use tr_integrity::Sessions;

/// What one task does, one after the other.
#[derive(Clone, Debug)]
enum Deed {
    Call {
        takes: usize,
    },
    Say,
    /// Made by hand, and written by whoever writes next.
    SayAndGo,
    Flush,
    Load,
    Compact,
    Wait(usize),
}

fn deed() -> impl Strategy<Value = Deed> {
    use Deed::*;
    prop_oneof![
        6 => (0..6_usize).prop_map(|takes| Call { takes }),
        3 => Just(Say),
        1 => Just(SayAndGo),
        2 => Just(Flush),
        2 => Just(Load),
        1 => Just(Compact),
        2 => (0..6_usize).prop_map(Wait),
    ]
}

fn fate() -> impl Strategy<Value = Fate> {
    prop_oneof![
        8 => Just(Fate::Kept), 1 => Just(Fate::Lost),
        1 => Just(Fate::Unanswered), 1 => Just(Fate::Refused),
    ]
}

#[derive(Default)]
struct Promises {
    /// What must be there: it was said to be.
    kept: Mutex<Vec<String>>,
    /// What may be there.
    made: Mutex<Vec<String>>,
}

async fn does(deed: &Deed, name: String, sessions: &Sessions, promises: &Promises) {
    match *deed {
        Deed::Call { takes } => {
            let tool = tool(sessions, move || async move {
                for _ in 0..takes {
                    yield_now().await;
                }
            });
            promises.made.lock().unwrap().push(name.clone());
            if let Ok(outcome) = tool.oneshot(call(&name)).await
                && outcome.recorded()
            {
                promises.kept.lock().unwrap().push(format!("answer {name};"));
            }
        }
        Deed::Say => {
            let said = message(super::FORMAT, user(&format!("said {name};")));
            if sessions.change("s", |session, _| session.push(said)).await.is_ok() {
                promises.kept.lock().unwrap().push(format!("said {name};"));
            }
        }
        Deed::SayAndGo => {
            let said = message(super::FORMAT, user(&format!("by hand {name};")));
            sessions.with("s", |session, _| session.push(said));
        }
        Deed::Flush => drop(sessions.flush("s").await),
        Deed::Load => drop(sessions.load("s").await),
        Deed::Compact => drop(sessions.compact("s").await),
        Deed::Wait(times) => {
            for _ in 0..times {
                yield_now().await;
            }
        }
    }
}

async fn live(tasks: Vec<(usize, Vec<Deed>)>, fates: Vec<Fate>) {
    let store = Shaky::default();
    store.next(&fates);
    let processes: Vec<Sessions> = (0..3).map(|_| process(store.clone())).collect();
    let promises = Arc::new(Promises::default());
    let mut running = JoinSet::new();
    for (task, (of, deeds)) in tasks.into_iter().enumerate() {
        let (sessions, promises) = (processes[of].clone(), promises.clone());
        running.spawn(async move {
            for (n, deed) in deeds.iter().enumerate() {
                does(deed, format!("t{task}_{n}"), &sessions, &promises).await;
            }
        });
    }
    while let Some(end) = running.join_next().await {
        end.unwrap();
    }
    let after = found(&store).await;
    for kept in &*promises.kept.lock().unwrap() {
        assert_eq!(after.matches(kept.as_str()).count(), 1, "{kept}: {after}");
    }
    // Each use is there once, with one result.
    for made in &*promises.made.lock().unwrap() {
        let used = after.matches(&format!("\"id\":\"{made}\"")).count();
        let answered = after.matches(&format!("\"tool_use_id\":\"{made}\"")).count();
        assert!(used <= 1 && answered == used, "{made}: {used}, {answered}: {after}");
    }
    for sessions in &processes {
        drop(sessions.flush("s").await);
        sessions.load("s").await.unwrap();
        text(sessions);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn no_acknowledged_answer_is_lost(
        tasks in vec((0..3_usize, vec(deed(), 1..6)), 1..6),
        fates in vec(fate(), 0..30),
    ) {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(live(tasks, fates));
    }
}

/// What was written without an answer is not written again, although another process and a compaction came between.
#[test]
fn what_was_written_unanswered_is_there_once() {
    let call = || vec![Deed::Call { takes: 0 }];
    for at in 0..5 {
        let mut tasks = vec![(2, call()), (2, call()), (2, call()), (2, vec![Deed::Compact])];
        tasks.insert(at, (0, call()));
        for fates in [
            vec![Fate::Kept, Fate::Kept, Fate::Unanswered, Fate::Kept],
            vec![Fate::Kept, Fate::Unanswered, Fate::Kept],
        ] {
            let runtime = Builder::new_current_thread().build().unwrap();
            runtime.block_on(live(tasks.clone(), fates));
        }
    }
}
