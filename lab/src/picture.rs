//! `cargo lab picture`: runs `tool-guard demo` and draws what it prints, when it prints it, into `docs/demo.svg`.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::Stdio,
};

use anyhow::{Context as _, Result, ensure};

use self::svg::Printed;
use xtask::{repo::Repo, shell, test::release_guard};

mod styled;
mod svg;

const PICTURE: &str = "docs/demo.svg";

/// The largest picture, in bytes.
const SIZE: usize = 60_000;

/// Draws a run of the demo.
pub(crate) fn run(repo: &Repo) -> Result<()> {
    let mut demo = repo.command(release_guard(repo)?);
    let mut child = demo
        .arg("demo")
        .env("CLICOLOR_FORCE", "1")
        .stdout(Stdio::piped())
        .spawn()
        .context("tool-guard does not start")?;
    let begin = shell::now();
    let mut printed = Vec::new();
    for line in BufReader::new(child.stdout.take().context("it has no output")?).lines() {
        printed.push(Printed { time: begin.elapsed(), line: line? });
    }
    let status = child.wait()?;
    ensure!(status.success() && !printed.is_empty(), "`tool-guard demo` failed ({status})");
    let svg = svg::drawn("tool-guard demo", &printed);
    ensure!(svg.len() <= SIZE, "the picture has {} bytes, {SIZE} at most", svg.len());
    fs::write(repo.root.join(PICTURE), &svg)?;
    println!("{PICTURE}: {} lines, {} bytes", printed.len(), svg.len());
    Ok(())
}
