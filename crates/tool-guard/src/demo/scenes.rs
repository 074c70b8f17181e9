//! What the agent tries to do. Each scene is one script, played without the guard and with it.
use super::agent::{Agent, Figures, Guarding};
use serde_json::json;
use std::time::Duration;
use tokio::time::sleep;

/// A scene of the demonstration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene {
    /// For files and JSON.
    pub(crate) name: &'static str,
    /// What goes wrong.
    pub(crate) title: &'static str,
    /// What the guard does about it.
    pub(crate) moral: &'static str,
    script: Script,
}

#[derive(Clone, Copy, Debug)]
enum Script {
    FlakyRead,
    LostPayment,
    MalformedLoop,
    Outage,
}

/// The scenes, in order.
pub(crate) const SCENES: &[Scene] = &[
    Scene {
        name: "flaky_read",
        title: "Three files over a network that resets every first read",
        moral: "reads change nothing, so the guard retries them itself",
        script: Script::FlakyRead,
    },
    Scene {
        name: "lost_payment",
        title: "One payment whose answer comes too late",
        moral: "a payment is never repeated: its late answer settles the record, and the agent gets it",
        script: Script::LostPayment,
    },
    Scene {
        name: "malformed_loop",
        title: "A model that calls read_file({}) again and again",
        moral: "the second failure carries [LOOP DETECTED], the third call is not executed",
        script: Script::MalformedLoop,
    },
    Scene {
        name: "outage",
        title: "Five questions to a backend that is down",
        moral: "the breaker opens, and a broken backend is left in peace",
        script: Script::Outage,
    },
];

/// How often a blind agent tries again.
const BLIND_RETRIES: usize = 3;
/// How long it thinks before it does.
const PAUSE: Duration = Duration::from_millis(200);
/// How often a looping model repeats itself before its context is full.
const CONTEXT: usize = 12;

impl Scene {
    /// Plays the scene.
    pub(crate) async fn play(self, guarding: Guarding) -> anyhow::Result<Figures> {
        let mut agent = Agent::start(guarding, self.name).await?;
        match self.script {
            Script::FlakyRead => {
                for path in ["plan.md", "budget.csv", "notes.txt"] {
                    blindly(&mut agent, "read_file", &json!({ "path": path }), None).await?;
                }
            }
            Script::LostPayment => {
                let order = json!({ "order": "order-42", "then": "late" });
                blindly(&mut agent, "charge_card", &order, Some("order-42")).await?;
            }
            Script::MalformedLoop => {
                for _ in 0..CONTEXT {
                    if agent.call("read_file", json!({}), None).await?.says_stop() {
                        break;
                    }
                }
            }
            Script::Outage => {
                for pair in ["EUR/USD", "EUR/JPY", "EUR/GBP", "EUR/CHF", "USD/JPY"] {
                    blindly(&mut agent, "exchange_rate", &json!({ "pair": pair }), None).await?;
                }
            }
        }
        agent.leave().await
    }
}

/// Repeats a failed call after a while, whatever it was, as agents do.
async fn blindly(
    agent: &mut Agent,
    tool: &str,
    arguments: &serde_json::Value,
    key: Option<&str>,
) -> anyhow::Result<()> {
    for _ in 0..BLIND_RETRIES {
        let reply = agent.call(tool, arguments.clone(), key).await?;
        if !reply.failed || reply.says_stop() {
            break;
        }
        sleep(PAUSE).await;
    }
    Ok(())
}
