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
    while let Some((scene, [without, with], is_shown)) = played.try_next().await? {
        let (number, title) = (figures.len() + 1, scene.title());
        let [left, right] = [&without, &with].map(|side| scene.figure(side));
        let but = if is_shown { "" } else { "   (the machine may be too busy)\n" };
        summary +=
            &format!("{number} {title:<48}{BAD}{left:>12}{BAD:#}{GOOD}{right:>14}{GOOD:#}\n{but}");
        all_shown &= is_shown;
        if !json {
            say(&format!("{number} {title}\n{DIM}  → {}{DIM:#}\n", scene.moral()))?;
        }
        figures.push(json!({ "scene": scene, "without": without, "with": with }));
    }
    if json {
        print(tr_core::printable_json(&Value::from(figures).to_string()).into_owned() + "\n")?;
    } else {
        say(&format!("\n{DIM}{:>62}{:>14}{DIM:#}\n{summary}", "without", "guarded"))?;
        print("\nPut it in front of your own servers: tool-guard install claude-code\n")?;
    }
    Ok(if all_shown { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Plays a scene on both sides until it shows what it is to show, or a payment is made twice behind the guard; says whether
/// it does.
async fn shown(scene: Scene) -> anyhow::Result<(Scene, [Figures; 2], bool)> {
    let mut tries = 1;
    loop {
        let (without, with) = tokio::try_join!(scene.play(false), scene.play(true))?;
        let is_shown = scene.is_shown(&without, &with);
        if is_shown || with.duplicates > 0 || tries == TRIES {
            return Ok((scene, [without, with], is_shown));
        }
        tries += 1;
    }
}
