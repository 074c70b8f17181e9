//! Writes the JSON Schemas of the catalog and the configuration into the folder that it is given.
//!
//! `cargo run -p tr-config --features schema --example config_schemas -- schemas`
use std::{env, error::Error, fs, path::PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = PathBuf::from(env::args_os().nth(1).ok_or("usage: config_schemas FOLDER")?);
    fs::create_dir_all(&folder)?;
    for (name, schema) in tr_config::schemas::all() {
        let text = serde_json::to_string_pretty(&schema)?;
        fs::write(folder.join(format!("{name}.schema.json")), text + "\n")?;
    }
    Ok(())
}
