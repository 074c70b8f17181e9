//! Measures the ladder of the stack, prints it, and writes it into the guide: `ladder [--docs FOLDER]`.
//!
//! `cargo xtask ladder` calls it.
mod plot;
mod table;

use benches::{
    ladder::{Calls, RUNGS},
    measure::{Effort, side_by_side},
};
use std::{env, error::Error, fs, path::Path};

const USAGE: &str = "usage: ladder [--docs FOLDER]";

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<_> = env::args().skip(1).collect();
    let docs = match &args[..] {
        [] => None,
        [option, folder] if option == "--docs" => Some(Path::new(folder)),
        _ => return Err(USAGE.into()),
    };
    // All rungs take turns, so that whatever slows the machine slows all of them.
    let rungs = Calls::ALL.map(|calls| {
        let times = side_by_side(RUNGS.map(|rung| (rung.run)(calls)), Effort::FULL);
        (calls.name(), times)
    });
    let layers = RUNGS.map(|rung| rung.layer);
    let table = table::markdown(&layers, &rungs);
    print!("{table}");
    if let Some(docs) = docs {
        let guide = docs.join("performance.md");
        let text = fs::read_to_string(&guide)?;
        fs::write(&guide, table::into_guide(&text, &table)?)?;
        fs::write(docs.join("ladder.svg"), plot::svg(&layers, &rungs[0].1))?;
    }
    Ok(())
}
