//! `tool-guard demo`: the same agent with the same tools, without and with the guard.
mod agent;
mod report;
mod scenes;
mod server;

use self::scenes::SCENES;
pub(crate) use self::server::serve;
use crate::terminal::{TITLE, print, say};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Runs the demo; with `json`, the figures are printed as JSON.
pub(crate) async fn run(json: bool) -> anyhow::Result<ExitCode> {
    if !json {
        say(&format!(
            "{TITLE}The same agent, the same tools: without a guard, and behind `tool-guard mcp`{TITLE:#}\n"
        ))?;
    }
    let mut figures = Vec::new();
    // Concurrently: each side of each scene has its own processes, and measures its own time.
    let plays = SCENES.iter().map(|scene| async move {
        let (without, with) = tokio::try_join!(scene.play(false), scene.play(true))?;
        anyhow::Ok((scene, without, with))
    });
    // A scene is shown once it and those before it have ended.
    let mut played = stream::iter(plays).buffered(SCENES.len());
    while let Some((scene, without, with)) = played.try_next().await? {
        if !json {
            report::show_scene(scene, &without, &with)?;
        }
        figures.push(json!({ "scene": scene.script, "without": without, "with": with }));
    }
    if json {
        print(tr_core::printable_json(&Value::from(figures).to_string()).into_owned() + "\n")?;
    } else {
        print("\nPut it in front of your own server:  tool-guard mcp -- COMMAND…\n")?;
    }
    Ok(ExitCode::SUCCESS)
}
