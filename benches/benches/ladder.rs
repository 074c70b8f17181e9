//! Measures the stack, one layer more at each rung, and prints what each layer adds; `-- --docs docs` writes the table and
//! the picture into the guide, `-- --test` measures a little of everything.
use benches::{
    ladder::{Calls, RUNGS, plot, table},
    measure::{Effort, turns},
};
use std::{env, error::Error, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    // Options of criterion's, which measures the other file, mean nothing here.
    let args: Vec<_> = env::args().skip(1).collect();
    let value = |option| args.iter().skip_while(|arg| **arg != option).nth(1).map(Path::new);
    let effort = if args.iter().any(|arg| arg == "--test") { Effort::QUICK } else { Effort::FULL };
    let rungs = Calls::ALL.map(|calls| {
        let times = turns(RUNGS.map(|rung| (rung.run)(calls)), effort).map(undisturbed);
        (calls.name(), times)
    });
    let layers = RUNGS.map(|rung| rung.layer);
    let table = table::markdown(&layers, &rungs);
    print!("{table}");
    if let Some(docs) = value("--docs") {
        // Cargo starts it in the folder of its package.
        let docs = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(docs);
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
