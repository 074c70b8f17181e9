//! Runs one operation of ours so often, for `cargo xtask gate` to count its instructions.
use benches::{
    gate::{CASES, find},
    run::Run,
};
use std::{env, process::ExitCode};

const USAGE: &str = "usage: gate list | gate run NAME TIMES";

fn main() -> ExitCode {
    let args: Vec<_> = env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list"] => CASES.iter().for_each(|case| println!("{}", case.name)),
        ["run", name, times] => {
            let (Some(case), Ok(times)) = (find(name), times.parse()) else {
                eprintln!("no case of this name, or no number; {USAGE}");
                return ExitCode::FAILURE;
            };
            measured(&mut (case.run)().warm(), times);
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// What callgrind counts: it knows it by its name.
#[inline(never)]
fn measured(run: &mut Run, times: u64) {
    run.times(times);
}
