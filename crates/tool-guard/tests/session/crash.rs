//! Killed at any moment, the command leaves the old file or the new one, whole.
use crate::folder::{Folder, ORPHANED};
use std::process::Stdio;
use tokio::time::Instant;
use tr_testkit::rounds;

/// A session of some size, so that there is something to interrupt.
fn large() -> String {
    let (head, rest) = ORPHANED.split_at(ORPHANED.find("  {\"role\":\"assistant\"").unwrap());
    let filler = "x".repeat(1_000);
    let pair = format!(
        "  {{\"role\":\"assistant\",\"content\":\"{filler}\"}},\n  {{\"role\":\"user\",\"content\":\"{filler}\"}},\n"
    );
    format!("{head}{}{rest}", pair.repeat(100))
}

#[test]
fn killed_at_any_moment_it_leaves_the_old_file_or_the_new_one() {
    let old = large();
    let folder = Folder::new();
    folder.write("s.json", &old);
    let start = Instant::now();
    assert_eq!(folder.session(&["repair", "--write", "s.json"]).code, 0);
    let mut takes = start.elapsed();
    let new = folder.read("s.json");

    let mut random = fastrand::Rng::with_seed(7);
    let (mut olds, mut news) = (0, 0);
    for round in 0..rounds(40, 1_000) {
        let folder = Folder::new();
        folder.write("s.json", &old);
        let mut command = folder.command(&["repair", "--write", "s.json"]);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        let start = Instant::now();
        let after = takes.mul_f64(random.f64() * 1.2);
        while start.elapsed() < after {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();

        let left = folder.read("s.json");
        assert!(left == old || left == new, "round {round}: {} bytes are left", left.len());
        // The machine may be busier than it was: kill around the moment of the exchange.
        if left == old {
            olds += 1;
            takes = takes.max(after.mul_f64(1.1));
        } else {
            news += 1;
            takes = takes.mul_f64(0.95);
        }
        for name in folder.names().iter().filter(|name| name.starts_with("s.json.bak-")) {
            assert!(folder.read(name) == old, "round {round}: {name}");
        }
        // What is left can be mended as if nothing had been.
        assert_eq!(folder.session(&["repair", "--write", "s.json"]).code, 0);
        assert!(folder.read("s.json") == new);
    }
    assert!(olds > 0 && news > 0, "killed before and after the exchange: {olds} and {news}");
}
