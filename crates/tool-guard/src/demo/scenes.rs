//! The demo's scenes. Each is one script, played without the guard and with it.
use super::agent::{Agent, Figures};
use serde::Serialize;
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

/// A scene of the demo.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    /// What goes wrong.
    pub(crate) title: &'static str,
    /// What the guard does about it.
    pub(crate) moral: &'static str,
    pub(super) script: Script,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Script {
    KilledGuard,
    LostPayment,
    FlakyRead,
    MalformedLoop,
    Outage,
}

/// The scenes, in order.
pub(crate) const SCENES: &[Scene] = &[
    Scene {
        title: "Two payments; kill -9 hits between the second one and its answer, and the agent asks again",
        moral: "records outlive the guard: the first payment gets its answer again, the second is not repeated",
        script: Script::KilledGuard,
    },
    Scene {
        title: "One payment whose answer comes too late",
        moral: "a payment is never repeated: its late answer settles the record, and the agent gets it",
        script: Script::LostPayment,
    },
    Scene {
        title: "Three files over a network that resets every first read",
        moral: "reads change nothing, so the guard retries them itself",
        script: Script::FlakyRead,
    },
    Scene {
        title: "A model that calls read_file({}) again and again",
        moral: "the second failure carries [LOOP DETECTED], the third call is not executed",
        script: Script::MalformedLoop,
    },
    Scene {
        title: "Forty questions to a backend that is down",
        moral: "the breaker opens: the agent is answered at once, and the backend is left alone",
        script: Script::Outage,
    },
];

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
    /// Plays the scene.
    pub(crate) async fn play(self, is_guarded: bool) -> anyhow::Result<Figures> {
        let mut agent = Agent::start(is_guarded, &format!("{:?}", self.script)).await?;
        match self.script {
            Script::KilledGuard => {
                let first = json!({ "order": "order-41" });
                let second = json!({ "order": "order-42", "then": "soon" });
                agent.call("charge_card", first.clone(), Some("order-41")).await?;
                agent.pay_and_be_cut_off(second.clone(), "order-42").await?;
                agent.call("charge_card", first, Some("order-41")).await?;
                agent.call("charge_card", second, Some("order-42")).await?;
            }
            Script::FlakyRead => {
                for path in ["plan.md", "budget.csv", "notes.txt"] {
                    blindly(&mut agent, "read_file", &json!({ "path": path }), None, PAUSE).await?;
                }
            }
            Script::LostPayment => {
                let order = json!({ "order": "order-42", "then": "late" });
                blindly(&mut agent, "charge_card", &order, Some("order-42"), LONG_PAUSE).await?;
            }
            Script::MalformedLoop => {
                for _ in 0..CONTEXT {
                    if agent.call("read_file", json!({}), None).await?.says_stop() {
                        break;
                    }
                }
            }
            Script::Outage => {
                for question in 1..=QUESTIONS {
                    let pair = format!("EUR to currency {question}");
                    agent.call("exchange_rate", json!({ "pair": pair }), None).await?;
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
    arguments: &serde_json::Value,
    key: Option<&str>,
    pause: Duration,
) -> anyhow::Result<()> {
    for _ in 0..BLIND_RETRIES {
        let reply = agent.call(tool, arguments.clone(), key).await?;
        if !reply.failed || reply.says_stop() {
            break;
        }
        sleep(pause).await;
    }
    Ok(())
}
