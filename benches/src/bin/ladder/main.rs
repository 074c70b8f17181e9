//! Measures the ladder of the stack, prints it, and writes it into the guide: `ladder [--docs FOLDER]`.
//!
//! `cargo xtask ladder` calls it.
mod plot;
mod table;

use benches::{
    ladder::{Calls, RUNGS},
    measure::{Effort, turns},
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
    let rungs = Calls::ALL.map(|calls| {
        let times = turns(RUNGS.map(|rung| (rung.run)(calls)), Effort::FULL).map(undisturbed);
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

/// The time that one batch in ten stays below: other programs empty the caches of the rest, and a rung that seems faster than the
/// one below it would show nothing but that.
fn undisturbed(mut taken: Vec<f64>) -> f64 {
    taken.sort_by(f64::total_cmp);
    taken[taken.len() / 10]
}
