//! What happens in each scenario.
use super::{CallResult, Circuit, Fault, Work};
use crate::{
    cell::Cell,
    tasks::{end, settle, start},
};
use std::{future::pending, sync::atomic::Ordering::Relaxed, time::Duration};
use tokio::{
    sync::oneshot,
    time::{advance, sleep, timeout},
};

/// Longer than a busy machine halts a task between two lines.
pub(super) const COOLDOWN: Duration = Duration::from_millis(500);
const MOMENT: Duration = Duration::from_millis(10);
/// As `COOLDOWN`, by a clock that stands still.
pub(super) const LONG: Duration = Duration::from_secs(30);

fn good() -> Work {
    Work::new(async { Ok(()) })
}

fn bad() -> Work {
    Work::new(async { Err(Fault::Down) })
}

/// A tool that ends on command.
fn told() -> (oneshot::Sender<Result<(), Fault>>, Work) {
    let (tell, told) = oneshot::channel();
    (tell, Work::new(async { told.await.unwrap_or(Err(Fault::Down)) }))
}

/// Fails until it is open; whether it opened.
async fn open(circuit: &Circuit) -> bool {
    for _ in 0..20 {
        if circuit.call(bad()).await == CallResult::Refused {
            return true;
        }
    }
    false
}

/// Fails until it is open, and waits until it lets a probe through.
async fn opened(circuit: &Circuit) -> bool {
    let is_open = open(circuit).await;
    sleep(COOLDOWN + MOMENT).await;
    is_open
}

fn never_opened() -> Cell {
    Cell::Failed("never opens".into())
}

pub(super) async fn after_many_successes(circuit: Circuit) -> Cell {
    for _ in 0..100_000 {
        circuit.call(good()).await;
    }
    for failures in 0..=200_000 {
        if circuit.call(bad()).await == CallResult::Refused {
            return Cell::judge(failures <= 200, format!("opens after {}", number(failures)));
        }
    }
    never_opened()
}

pub(super) async fn hanging(circuit: Circuit) -> Cell {
    for calls in 0..20 {
        let work = async { timeout(MOMENT, pending()).await.unwrap_or(Err(Fault::Down)) };
        if circuit.call(Work::new(work)).await == CallResult::Refused {
            return Cell::Passed(format!("opens after {calls}"));
        }
    }
    never_opened()
}

pub(super) async fn given_up(circuit: Circuit) -> Cell {
    for _ in 0..20 {
        let _ = timeout(MOMENT, circuit.call(Work::new(pending()))).await;
    }
    let still = circuit.call(good()).await == CallResult::Succeeded;
    Cell::judge(still, if still { "stays closed after 20" } else { "open after 20" })
}

pub(super) async fn crowd(circuit: Circuit) -> Cell {
    if !opened(&circuit).await {
        return never_opened();
    }
    let mut crowd = Vec::new();
    for _ in 0..100 {
        let (tell, work) = told();
        crowd.push((tell, tokio::spawn(circuit.call(work))));
    }
    settle().await;
    let through = crowd.iter().filter(|(_, task)| !task.is_finished()).count();
    Cell::judge(through == 1, format!("lets {through} through"))
}

pub(super) async fn cancelled_probes(circuit: Circuit) -> Cell {
    if !opened(&circuit).await {
        return never_opened();
    }
    for _ in 0..20 {
        let _ = timeout(MOMENT, circuit.call(Work::new(pending()))).await;
    }
    let closed = all_through(&circuit).await;
    Cell::judge(closed, if closed { "closes after 20" } else { "refuses after 20" })
}

/// Whether it lets each of ten good calls through.
async fn all_through(circuit: &Circuit) -> bool {
    for _ in 0..10 {
        if circuit.call(good()).await == CallResult::Refused {
            return false;
        }
    }
    true
}

pub(super) async fn hung_probe(circuit: Circuit) -> Cell {
    if !opened(&circuit).await {
        return never_opened();
    }
    let hung = start(circuit.call(Work::new(pending()))).await;
    for cooldowns in 1..=5 {
        sleep(COOLDOWN + MOMENT).await;
        if circuit.call(good()).await == CallResult::Succeeded {
            hung.abort();
            return Cell::Passed(match cooldowns {
                1 => "admits the next".into(),
                _ => format!("reopens, admits the next after {cooldowns} cooldowns"),
            });
        }
    }
    hung.abort();
    Cell::Failed("refuses all, 5 cooldowns later".into())
}

/// Half open, with a probe in flight, and a call from before.
async fn probe_and_stale(circuit: &Circuit, stale: Result<(), Fault>) -> Option<Probing> {
    let (tell_old, work) = told();
    let old = start(circuit.call(work)).await;
    if !opened(circuit).await {
        return None;
    }
    let (tell, work) = told();
    let probe = start(circuit.call(work)).await;
    tell_old.send(stale).ok()?;
    end(old).await?;
    Some(Probing { tell, probe })
}

struct Probing {
    tell: oneshot::Sender<Result<(), Fault>>,
    probe: tokio::task::JoinHandle<CallResult>,
}

impl Probing {
    async fn ends(self, how: Result<(), Fault>) -> Option<CallResult> {
        self.tell.send(how).ok()?;
        end(self.probe).await
    }
}

pub(super) async fn stale_failure(circuit: Circuit) -> Cell {
    let Some(probing) = probe_and_stale(&circuit, Err(Fault::Down)).await else {
        return never_opened();
    };
    probing.ends(Ok(())).await;
    let closed = all_through(&circuit).await;
    Cell::judge(closed, if closed { "its probe closes it" } else { "reopens" })
}

pub(super) async fn stale_success(circuit: Circuit) -> Cell {
    let Some(probing) = probe_and_stale(&circuit, Ok(())).await else {
        return never_opened();
    };
    probing.ends(Err(Fault::Down)).await;
    let reopened = circuit.call(good()).await == CallResult::Refused;
    Cell::judge(reopened, if reopened { "its probe reopens it" } else { "closes" })
}

pub(super) async fn probes_apart(circuit: Circuit) -> Cell {
    if !opened(&circuit).await {
        return never_opened();
    }
    circuit.call(good()).await;
    sleep(Duration::from_millis(500)).await;
    circuit.call(good()).await;
    let mut refused = 0;
    for _ in 0..10 {
        sleep(Duration::from_millis(100)).await;
        refused += u32::from(circuit.call(good()).await == CallResult::Refused);
    }
    Cell::judge(refused == 0, format!("then refuses {refused} of 10"))
}

/// The tool is up again, and says no to whatever it is asked.
pub(super) async fn answered(circuit: Circuit) -> Cell {
    if !opened(&circuit).await {
        return never_opened();
    }
    let mut answered = 0;
    for _ in 0..10 {
        let no = Work::new(async { Err(Fault::No) });
        answered += u32::from(circuit.call(no).await == CallResult::Failed);
    }
    let closed = all_through(&circuit).await;
    Cell::judge(
        answered == 10 && closed,
        format!("answers {answered} of 10, then {}", if closed { "is closed" } else { "refuses" }),
    )
}

pub(super) async fn not_ready(circuit: Circuit) -> Cell {
    let Some(busy) = circuit.busy.clone() else {
        return Cell::Without("no readiness");
    };
    if !open(&circuit).await {
        return never_opened();
    }
    busy.store(true, Relaxed);
    let end = timeout(10 * MOMENT, circuit.call(good())).await;
    match end {
        Ok(CallResult::Refused) => Cell::Passed("refuses at once".into()),
        Ok(_) => Cell::Failed("lets it through".into()),
        Err(_) => Cell::Failed("waits for the tool".into()),
    }
}

pub(super) async fn applied_twice(circuit: Circuit) -> Cell {
    let Some(again) = &circuit.again else {
        return Cell::Without("no layer");
    };
    if !open(&circuit).await {
        return never_opened();
    }
    let one = again.call(good()).await == CallResult::Refused;
    Cell::judge(one, if one { "one" } else { "two" })
}

pub(super) async fn by_paused_time(circuit: Circuit) -> Cell {
    if !open(&circuit).await {
        return never_opened();
    }
    advance(LONG + MOMENT).await;
    let probed = circuit.call(good()).await == CallResult::Succeeded;
    Cell::judge(probed, if probed { "half open after 30 s" } else { "open after 30 s" })
}

/// With commas between thousands.
fn number(n: u32) -> String {
    if n < 1000 { n.to_string() } else { format!("{},{:03}", n / 1000, n % 1000) }
}
