//! Writes the JSON Schema of plans into the folder that it is given.
//!
//! `cargo run -p tr-turn --example turn_schemas -- schemas`
use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::args_os().nth(1).ok_or("usage: schemas FOLDER")?);
    fs::create_dir_all(&folder)?;
    let text = serde_json::to_string_pretty(&tr_turn::plan::json_schema())?;
    fs::write(folder.join("turn-plan.schema.json"), text + "\n")?;
    Ok(())
}
