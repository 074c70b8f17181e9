//! Writes the JSON Schemas of what `tool-guard session --json` prints, and of what `tool-guard decide` reads and
//! writes, into the folder that it is given.
//!
//! `cargo run -p tool-guard --example guard_schemas -- schemas`
mod decide;
mod members;
mod session;

use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::args_os().nth(1).ok_or("usage: schemas FOLDER")?);
    fs::create_dir_all(&folder)?;
    for (name, schema) in [
        ("session-report", session::report()),
        ("decide-event", decide::event_schema()),
        ("decide-answer", decide::answer_schema()),
    ] {
        let text = serde_json::to_string_pretty(&schema)?;
        fs::write(folder.join(format!("{name}.schema.json")), text + "\n")?;
    }
    Ok(())
}
