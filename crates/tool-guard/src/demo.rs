//! `tool-guard demo`: the same agent with the same tools, without and with the guard.
mod agent;
mod report;
mod scenes;
mod server;
mod turn;

use self::scenes::SCENES;
pub(crate) use self::server::{Options as ServerOptions, serve};
use crate::terminal::print;
use agent::Guarding;
use clap::Args;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::Value;
use std::process::ExitCode;

/// Shows the same agent without and with the guard, against a demo server whose tools fail.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// Runs the demo.
pub(crate) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    let is_shown = !options.json;
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
                figures.push(report::scene_json(scene, &without, &with));
            }
        }
        Ok(())
    };
    let ((), turn) = tokio::try_join!(scenes, turn::run())?;
    if is_shown {
        report::show_turn(&turn)?;
    } else {
        figures.push(report::turn_json(&turn));
        print(tr_core::printable_json(&Value::from(figures).to_string()).into_owned() + "\n")?;
    }
    Ok(ExitCode::SUCCESS)
}
