//! `tool-guard demo`: the same agent with the same tools, without and with the guard.
mod agent;
mod report;
mod scenes;
mod server;

pub(crate) use self::server::serve;
use self::{
    agent::{Guarding, folder, ledger},
    scenes::SCENES,
};
use crate::{
    engine::{records::RecordsCommand, stores::Records},
    terminal::print,
    turn::{Client, Keys, Run, play},
};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use std::{env, ffi::OsString, fs, process::ExitCode};
use tool_reliability::config::Config;
use tr_config::ToolCatalog;
use tr_turn::Report;

/// Runs the demo; with `json`, the figures are printed as JSON.
pub(crate) async fn run(json: bool) -> anyhow::Result<ExitCode> {
    let is_shown = !json;
    if is_shown {
        report::show_head()?;
    }
    let mut figures = Vec::new();
    // Concurrently: each side of each scene has its own processes, and measures its own time.
    let plays = SCENES.iter().map(|scene| async move {
        let (without, with) =
            tokio::try_join!(scene.play(Guarding::Without), scene.play(Guarding::With))?;
        anyhow::Ok((scene, without, with))
    });
    // A scene is shown once it and those before it have ended.
    let mut played = stream::iter(plays).buffered(SCENES.len());
    let scenes = async {
        while let Some((scene, without, with)) = played.try_next().await? {
            if is_shown {
                report::show_scene(scene, &without, &with)?;
            } else {
                figures.push(json!({ "scene": scene.name, "without": without, "with": with }));
            }
        }
        Ok(())
    };
    let ((), turn) = tokio::try_join!(scenes, turn())?;
    if is_shown {
        report::show_turn(&turn)?;
    } else {
        figures.push(report::turn_json(&turn));
        print(tr_core::printable_json(&Value::from(figures).to_string()).into_owned() + "\n")?;
    }
    Ok(ExitCode::SUCCESS)
}

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

/// Runs a whole turn against the demo server: some of its calls fail, and the turn still ends.
async fn turn() -> anyhow::Result<Report> {
    let folder = folder("turn", "Guarded")?;
    let command: Vec<OsString> = vec![
        env::current_exe()?.into(),
        "__serve".into(),
        "--ledger".into(),
        ledger(&folder).into(),
    ];
    let (client, effects) = Client::connect(&command).await?;
    let keys = Keys::new("demo", None, RecordsCommand::default());
    let (config, catalog) = (Config::default(), ToolCatalog::default());
    let records = Records::default();
    let run = Run { plan: PLAN, config: &config, catalog: &catalog, keys, records };
    let report = play(&client, &effects, run).await;
    client.end().await;
    let _ = fs::remove_dir_all(folder);
    report
}
