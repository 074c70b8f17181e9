//! `cargo bench -p tool-reliability --bench overhead`: what guarding a call costs in time and log,
//! and how often errors are classified rightly. Prints the report and writes it as JSON.
#[path = "overhead/measure.rs"]
mod measure;

use std::{env, error::Error, fs, path::PathBuf};
use tokio::time::Instant;

/// Calls without the stack and as many with it.
const CALLS: usize = 20_000;

fn main() -> Result<(), Box<dyn Error>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let report = runtime.block_on(async {
        let began = Instant::now();
        measure::measure(CALLS, || began.elapsed()).await
    });
    print!("{report}");
    let target = env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target
        .unwrap_or_else(|| PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../target")));
    let folder = target.join("bench");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("overhead.json"), format!("{:#}\n", report.to_json()))?;
    if report.is_ok() { Ok(()) } else { Err("the targets are missed".into()) }
}
