//! Makes a function of each block of Rust in `docs/migrating.md`, as `docs/build.rs` does of the other guides.
#[path = "../../docs/blocks.rs"]
mod blocks;
#[path = "../../docs/compiled.rs"]
mod compiled;

use std::{env, error::Error, fs, path::Path};

const GUIDE: &str = "../../docs/migrating.md";

/// What the guide takes as given.
const GIVEN: &str = "mut request: http::Request<bytes::Bytes>, hyper_client: HyperClient";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={GUIDE}");
    let mut code = String::new();
    compiled::append(&mut code, Path::new(GUIDE), GIVEN)?;
    fs::write(Path::new(&env::var("OUT_DIR")?).join("guide.rs"), code)?;
    Ok(())
}
