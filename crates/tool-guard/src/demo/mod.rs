//! `tool-guard demo`: the same agent with the same tools, without and with the guard.
mod agent;
mod report;
mod scenes;
mod server;
mod turn;

pub(crate) use self::server::{Options as ServerOptions, serve};
use self::{report::Report, scenes::SCENES};
use agent::Guarding;
use clap::Args;
use futures_util::future::try_join_all;
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
    let mut report = Report::default();
    // Concurrently: each side of each scene has its own processes, and measures its own time.
    let plays = SCENES.iter().map(|scene| async move {
        tokio::try_join!(scene.play(Guarding::Without), scene.play(Guarding::With))
    });
    let (plays, turn) = tokio::try_join!(try_join_all(plays), turn::run())?;
    for (scene, (without, with)) in SCENES.iter().zip(plays) {
        report.add(scene, without, with);
    }
    report.set_turn(turn);
    if options.json {
        println!("{}", tr_core::printable_json(&report.to_json().to_string()));
    } else {
        report.print();
    }
    Ok(ExitCode::SUCCESS)
}
