//! Three processes over one store whose leases are short, whose replies get lost and come late, and
//! which is away now and then; their callers leave when they like. Whatever comes of that: no
//! mutating call runs twice, no recorded answer is lost, every caller is told something of a known
//! type, and no key is stuck.
use crate::{
    faults::{Fault, Faulty},
    support::*,
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::task::JoinHandle;
use tr_core::{BoxError, Ran, ToolCall, ToolOutcome, Verdict};
use tr_idempotency::{
    Counts, Handle, IdempotencyLayer,
    store::{Memory, Query, RecordStore, StateFilter},
};
use tr_testkit::{
    rounds,
    tool::{Scripted, Step},
};

const PROCESSES: usize = 3;
const KEYS: usize = 4;

/// Tools take longer, and what is away stays away for longer.
const LEASE: Duration = Duration::from_millis(100);

/// The errors that callers may get instead of a response.
const CODES: [&str; 6] = [
    "store_unavailable",
    "outcome_unknown",
    "idempotency_in_flight",
    "timeout",
    "circuit_open",
    "cancelled",
];

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

struct Process {
    store: Faulty,
    service: Guarded,
    front: Handle<ToolOutcome>,
}

type Runs = Arc<Mutex<HashMap<String, Vec<usize>>>>;

/// A tool that takes its time, and is not reached now and then. It writes down what it answers.
fn tool(runs: &Runs, seed: u64) -> Tool {
    let (runs, rng) = (runs.clone(), Mutex::new(fastrand::Rng::with_seed(seed)));
    let tool = Scripted::by(move |_, call: &ToolCall| {
        let mut rng = rng.lock().unwrap();
        if rng.u8(..8) == 0 {
            return Step::after(
                ms(rng.u64(..30)),
                fails("circuit_open", Ran::No, Verdict::TRANSIENT),
            );
        }
        let answer = rng.usize(..1_000_000);
        let key = call.parts().idempotency.key.as_deref().unwrap().to_owned();
        runs.lock().unwrap().entry(key).or_default().push(answer);
        Step::after(ms(rng.u64(..400)), Step::Ok(number(answer)))
    });
    tool.unlogged()
}

impl Process {
    fn new(records: &Memory, runs: &Runs, seed: u64) -> Self {
        let store = Faulty::slow(records.clone());
        let layer = IdempotencyLayer::builder()
            .store(store.clone())
            .inflight_ttl(LEASE)
            .store_timeout(ms(20))
            .build()
            .unwrap();
        let (service, front, _) = guarded_by(&layer, tool(runs, seed));
        Self { store, service, front }
    }

    /// Something goes wrong between it and the store.
    fn trouble(&self, rng: &mut fastrand::Rng) {
        use Fault::{Hangs, ReplyLost, Silent, Unreachable};
        match rng.u8(..8) {
            0 => self.store.down(),
            1 | 2 => self.store.up(),
            _ => {
                let operation = ["claim", "renew", "release", "finalize", "watch"];
                let fault = [Unreachable, ReplyLost, Hangs, Silent];
                let (operation, fault) = (rng.choice(operation), rng.choice(fault));
                self.store.fail(operation.unwrap(), fault.unwrap(), rng.usize(1..8));
            }
        }
    }
}

/// An answer and whether it was recorded; `None` for what is no answer.
fn told(end: Result<ToolOutcome, BoxError>) -> Option<(usize, bool)> {
    match end {
        Ok(outcome) => {
            let recorded = outcome.recorded();
            Some((usize::try_from(answer(Ok(outcome))).unwrap(), recorded))
        }
        Err(error) => {
            let (code, ..) = refusal(Err(error));
            assert!(CODES.contains(&&*code), "{code}");
            None
        }
    }
}

#[derive(Default)]
struct Tally {
    answers: usize,
    recorded: usize,
    refused: usize,
    lapsed: usize,
}

async fn round(seed: u64, tally: &mut Tally) {
    let mut rng = fastrand::Rng::with_seed(seed);
    let (records, runs) = (Memory::new(), Runs::default());
    let processes: Vec<_> =
        (0..PROCESSES).map(|n| Process::new(&records, &runs, rng.u64(..) + n as u64)).collect();
    let mut callers: Vec<(String, JoinHandle<_>)> = Vec::new();
    for _ in 0..60 {
        let process = &processes[rng.usize(..PROCESSES)];
        match rng.u8(..10) {
            0..4 => {
                let key = format!("k{}", rng.usize(..KEYS));
                let mut asked = pay(&key);
                if rng.u8(..4) == 0 {
                    asked = best_effort(asked);
                }
                if rng.u8(..4) == 0 {
                    let deadline = tokio::time::Instant::now() + ms(rng.u64(..300));
                    asked = asked.deadline(deadline.into_std());
                }
                let service = process.service.clone();
                callers.push((key, tokio::spawn(async move { call(&service, asked).await })));
            }
            4 => {
                if !callers.is_empty() {
                    callers[rng.usize(..callers.len())].1.abort();
                }
            }
            5..8 => process.trouble(&mut rng),
            _ => pass(ms(rng.u64(..120))).await,
        }
        let lapsed = Query { state: StateFilter::Unknown, ..Query::ALL };
        tally.lapsed += usize::try_from(records.count(&lapsed).await.unwrap()).unwrap();
    }
    processes.iter().for_each(|process| process.store.up());
    let mut known = HashMap::<_, usize>::new();
    for (key, caller) in callers {
        let Ok(end) = caller.await else { continue }; // It left.
        match told(end) {
            Some((answer, recorded)) => {
                tally.answers += 1;
                assert!(runs.lock().unwrap()[&key].contains(&answer), "{seed}: nobody's answer");
                if recorded {
                    tally.recorded += 1;
                    assert_eq!(*known.entry(key).or_insert(answer), answer, "{seed}: two answers");
                }
            }
            None => tally.refused += 1,
        }
    }
    // What is recorded later, or given back, is so by now.
    pass(11 * MINUTE).await;
    for key in (0..KEYS).map(|n| format!("k{n}")) {
        for process in &processes {
            let end = call(&process.service, pay(&key)).await;
            if let Some((answer, recorded)) = told(end)
                && recorded
            {
                assert_eq!(*known.entry(key.clone()).or_insert(answer), answer, "{seed}: {key}");
            } else {
                assert!(!known.contains_key(&key), "{seed}: the answer to {key} is lost");
            }
        }
    }
    for (key, runs) in &*runs.lock().unwrap() {
        assert_eq!(runs.len(), 1, "{seed}: {key} ran again");
    }
    pass(MINUTE).await;
    for process in &processes {
        let Counts { inflight, waiters, .. } = process.front.counts();
        assert_eq!((inflight, waiters), (0, 0), "{seed}");
    }
    let open = Query { state: StateFilter::Inflight { at_least: 0 }, ..Query::ALL };
    assert_eq!(records.count(&open).await.unwrap(), 0, "{seed}: a key is stuck");
}

#[tokio::test(start_paused = true)]
async fn whatever_goes_wrong_nothing_runs_twice_and_no_recorded_answer_is_lost() {
    let mut tally = Tally::default();
    for seed in 0..rounds(400, 20_000) {
        round(seed, &mut tally).await;
    }
    let Tally { answers, recorded, refused, lapsed } = tally;
    println!("{answers} answers, {recorded} of them recorded; {refused} refused; {lapsed} lapsed");
    assert!(recorded > 0 && answers > recorded && refused > 0 && lapsed > 0, "all of it happens");
}
