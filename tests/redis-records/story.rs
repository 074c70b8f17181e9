//! The example of a payment whose process is killed, as its reader sees it.
use std::{env, process::Command};

/// The variable that says where the example's binary is.
const EXAMPLE: &str = "TR_KILLED_PAYMENT";

/// The guide that shows what it prints.
const GUIDE: &str = include_str!("../../docs/redis-records.md");

#[test]
fn the_example_charges_once_and_prints_what_the_guide_shows() {
    let example = env::var_os(EXAMPLE);
    let example = example.unwrap_or_else(|| panic!("{EXAMPLE} is not set: run cargo xtask test"));
    let run = Command::new(example).output().unwrap();
    let printed = String::from_utf8(run.stdout).unwrap();
    let errors = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{}\n{printed}{errors}", run.status);

    assert_eq!(printed.lines().last(), Some("charges in the ledger: 1"), "{printed}");
    // How long the second one waits differs from run to run.
    let unhurried = |text: &str| -> String {
        let (start, rest) = text.split_once("second: after ").expect("the second one is answered");
        let (_, rest) = rest.split_once(" s ").expect("seconds");
        format!("{start}second: after … s {rest}")
    };
    let (printed, guide) = (unhurried(&printed), unhurried(GUIDE));
    assert!(guide.contains(&printed), "docs/redis-records.md does not show this:\n{printed}");
}
