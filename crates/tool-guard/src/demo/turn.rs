//! A whole turn: some of its calls fail, and the turn still ends.
use super::agent::{folder, ledger};
use crate::{
    mcp::stores::Records,
    turn::{Client, Keys, Run, play},
};
use std::{env, ffi::OsString, fs};
use tool_reliability::config::Config;
use tr_config::ToolCatalog;
use tr_turn::Report;

/// A plan of a trip.
const PLAN: &str = r#"{
    "turn": "trip",
    "limits": {"timeout_ms": 10000},
    "calls": [
        {"name": "itinerary", "tool": "read_file", "params": {"path": "plan.md"}},
        {"name": "hotels", "tool": "slow", "params": {"ms": 600}},
        {"name": "rates", "tool": "exchange_rate", "default_value": {"EUR/USD": 1.1}},
        {"name": "quote", "tool": "echo", "depends_on": ["hotels"],
         "params": {"text": {"$from": "itinerary", "at": "/content/0/text"}, "rates": {"$from": "rates"}}},
        {"name": "booking", "tool": "charge_card", "params": {"order": "order-7", "then": "hang"},
         "required": true, "timeout_ms": 1000, "alternatives": ["echo"]},
        {"name": "receipt", "tool": "echo", "depends_on": ["booking"], "required": true}
    ]
}"#;

/// Runs it against the demo server.
pub(crate) async fn run() -> anyhow::Result<Report> {
    let folder = folder("turn", "Guarded")?;
    let command: Vec<OsString> = vec![
        env::current_exe()?.into(),
        "__serve".into(),
        "--ledger".into(),
        ledger(&folder).into(),
    ];
    let (mut client, effects) = Client::connect(&command).await?;
    let keys = Keys::new("demo", None);
    let (config, catalog) = (Config::default(), ToolCatalog::default());
    let records = Records::default();
    let run = Run { plan: PLAN, config: &config, catalog: &catalog, keys, records };
    let report = play(&mut client, &effects, run).await;
    client.end().await;
    let _ = fs::remove_dir_all(folder);
    report
}
