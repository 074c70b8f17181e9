//! `tool-guard demo`: the same agent with the same tools, without and with the guard.
mod agent;
mod scenes;
mod server;

pub(crate) use self::server::serve;
use self::{agent::Figures, scenes::Scene};
use crate::terminal::{BAD, DIM, GOOD, TITLE, print, say};
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};
use std::process::ExitCode;

/// How often a scene is played at most, if it does not show what it is to show: a busy machine is slow.
const TRIES: u32 = 3;

/// Runs the demo; with `json`, the figures are printed as JSON. Fails if a scene cannot be shown.
pub(crate) async fn run(json: bool) -> anyhow::Result<ExitCode> {
    if !json {
        say(&format!(
            "{TITLE}The same agent and tools: without a guard, and behind `tool-guard mcp`{TITLE:#}\n\n"
        ))?;
    }
    // Concurrently: each side of each scene has its own processes.
    let plays = Scene::ALL.into_iter().map(shown);
    // A scene is shown once it and those before it have ended.
    let mut played = stream::iter(plays).buffered(Scene::ALL.len());
    let (mut summary, mut figures, mut all_shown) = (String::new(), Vec::new(), true);
    while let Some((scene, sides)) = played.try_next().await? {
        let (number, title) = (figures.len() + 1, scene.title());
        let cells = match &sides {
            Some([without, with]) => {
                let [without, with] = [without, with].map(|side| scene.figure(side));
                format!("{BAD}{without:>12}{BAD:#}{GOOD}{with:>14}{GOOD:#}")
            }
            None => format!("{:>26}", "the machine is too busy"),
        };
        all_shown &= sides.is_some();
        summary += &format!("{number} {title:<48}{cells}\n");
        if !json {
            say(&format!("{number} {title}\n{DIM}  → {}{DIM:#}\n", scene.moral()))?;
        }
        let [without, with] = sides.map_or([None, None], |sides| sides.map(Some));
        figures.push(json!({ "scene": scene, "without": without, "with": with }));
    }
    if json {
        print(tr_core::printable_json(&Value::from(figures).to_string()).into_owned() + "\n")?;
    } else {
        say(&format!("\n{DIM}{:>62}{:>14}{DIM:#}\n{summary}", "without", "guarded"))?;
        print("\nPut it in front of your own servers: tool-guard install\n")?;
    }
    Ok(if all_shown { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays a scene on both sides until it shows what it is to show; without figures if it does not.
async fn shown(scene: Scene) -> anyhow::Result<(Scene, Option<[Figures; 2]>)> {
    for _ in 0..TRIES {
        let (without, with) = tokio::try_join!(scene.play(false), scene.play(true))?;
        if scene.is_shown(&without, &with) {
            return Ok((scene, Some([without, with])));
        }
    }
    Ok((scene, None))
}
