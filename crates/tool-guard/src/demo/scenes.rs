//! The demo's scenes. Each is one script, played without the guard and with it.
use super::agent::{Agent, Figures};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::sleep;

/// A scene of the demo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scene {
    KilledGuard,
    LostPayment,
    FlakyRead,
    MalformedLoop,
    Outage,
}

/// How often an agent retries blindly.
const BLIND_RETRIES: usize = 3;
/// How long it waits before a retry.
const PAUSE: Duration = Duration::from_millis(200);
/// The same where the answer comes too late: it is there after this pause, on a busy machine too.
const LONG_PAUSE: Duration = Duration::from_millis(700);
/// How many questions an agent asks a backend.
const QUESTIONS: usize = 40;
/// How often a looping model repeats itself before its context is full.
const CONTEXT: usize = 12;

impl Scene {
    /// All of them, in order.
    pub(crate) const ALL: [Self; 5] =
        [Self::KilledGuard, Self::LostPayment, Self::FlakyRead, Self::MalformedLoop, Self::Outage];

    /// What goes wrong.
    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::KilledGuard => "Claude Code pays, kill -9 hits, it asks again",
            Self::LostPayment => "A client without ids; the receipt is late",
            Self::FlakyRead => "Three files, and each first read is reset",
            Self::MalformedLoop => "A model calls read_file({}) again and again",
            Self::Outage => "Forty questions to a backend that is down",
        }
    }

    /// What the guard does about it.
    pub(super) const fn moral(self) -> &'static str {
        match self {
            Self::KilledGuard => {
                "its records outlive it: the repeat is refused, the model asked to check"
            }
            Self::LostPayment => "the late receipt settles the record, and the repeat gets it",
            Self::FlakyRead => "reads change nothing, so it repeats them itself",
            Self::MalformedLoop => {
                "the second failure says [LOOP DETECTED]; the third call is not made"
            }
            Self::Outage => {
                "its breaker opens: the agent is answered at once, the backend left alone"
            }
        }
    }

    /// The figure that matters.
    pub(super) fn figure(self, figures: &Figures) -> String {
        match self {
            Self::KilledGuard | Self::LostPayment => match figures.executions {
                1 => "paid once".to_owned(),
                times => format!("paid {times} times"),
            },
            Self::FlakyRead => format!("{} failures", figures.failures),
            Self::MalformedLoop | Self::Outage => format!("{} calls", figures.executions),
        }
    }

    /// Whether the figures are what the scene is to show: a busy machine has others.
    pub(super) fn is_shown(self, without: &Figures, with: &Figures) -> bool {
        match self {
            Self::KilledGuard => {
                without.executions == 2
                    && with.executions == 1
                    && with.told.contains("do not repeat it")
            }
            Self::LostPayment => {
                without.executions == 3 && with.executions == 1 && with.told.contains("charged")
            }
            Self::FlakyRead => without.failures == 3 && with.failures == 0,
            Self::MalformedLoop => without.executions == CONTEXT && with.executions == 2,
            Self::Outage => without.executions == QUESTIONS && with.executions <= QUESTIONS / 4,
        }
    }

    /// Plays the scene.
    pub(crate) async fn play(self, is_guarded: bool) -> anyhow::Result<Figures> {
        let has_ids = self != Self::LostPayment;
        let mut agent = Agent::start(is_guarded, &format!("{self:?}"), has_ids).await?;
        match self {
            Self::KilledGuard => {
                let order = json!({ "order": "order-41", "then": "hang" });
                agent.pay_and_be_cut_off(order.clone()).await?;
                agent.call("charge_card", order).await?;
            }
            Self::FlakyRead => {
                for path in ["plan.md", "budget.csv", "notes.txt"] {
                    blindly(&mut agent, "read_file", &json!({ "path": path }), PAUSE).await?;
                }
            }
            Self::LostPayment => {
                let order = json!({ "order": "order-42", "then": "late" });
                blindly(&mut agent, "charge_card", &order, LONG_PAUSE).await?;
            }
            Self::MalformedLoop => {
                for _ in 0..CONTEXT {
                    if agent.call("read_file", json!({})).await?.says_stop() {
                        break;
                    }
                }
            }
            Self::Outage => {
                for question in 1..=QUESTIONS {
                    let pair = format!("EUR to currency {question}");
                    agent.call("exchange_rate", json!({ "pair": pair })).await?;
                }
            }
        }
        agent.leave().await
    }
}

/// Repeats a failed call after a pause, as agents do.
async fn blindly(
    agent: &mut Agent,
    tool: &str,
    arguments: &Value,
    pause: Duration,
) -> anyhow::Result<()> {
    for _ in 0..BLIND_RETRIES {
        let reply = agent.call(tool, arguments.clone()).await?;
        if !reply.failed || reply.says_stop() {
            break;
        }
        sleep(pause).await;
    }
    Ok(())
}
