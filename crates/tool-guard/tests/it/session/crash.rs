//! Killed at any moment, the command leaves the old file or the new one, whole.
use super::folder::{Folder, ORPHANED};
use std::{fs, os::unix::fs::MetadataExt as _, process::Stdio, time::Duration};
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

/// When it is killed.
#[derive(Clone, Copy, Debug)]
enum Moment {
    After(Duration),
    /// As soon as the old file has its second name: the exchange is next.
    BackedUp,
    /// As soon as another file is in the place of the old one.
    Exchanged,
}

#[test]
fn killed_at_any_moment_it_leaves_the_old_file_or_the_new_one() {
    let old = large();
    let folder = Folder::with("s.json", &old);
    let start = Instant::now();
    assert_eq!(folder.session(&["repair", "--write", "s.json"]).code, 0);
    let takes = start.elapsed();
    let new = folder.read("s.json");

    let mut random = fastrand::Rng::with_seed(7);
    let (mut olds, mut news) = (0, 0);
    for round in 0..rounds(30, 1_000) {
        let moment = match round % 3 {
            // Mostly early: the machine may have been busier when it was measured.
            0 => Moment::After(takes.mul_f64(random.f64() * random.f64())),
            1 => Moment::BackedUp,
            _ => Moment::Exchanged,
        };
        let folder = Folder::with("s.json", &old);
        kill(&folder, moment);

        let left = folder.read("s.json");
        assert!(left == old || left == new, "{moment:?}: {} bytes are left", left.len());
        *if left == old { &mut olds } else { &mut news } += 1;
        for name in folder.names().iter().filter(|name| name.starts_with("s.json.bak-")) {
            assert!(folder.read(name) == old, "{moment:?}: {name}");
        }
        // What is left can be mended as if nothing had been.
        assert_eq!(folder.session(&["repair", "--write", "s.json"]).code, 0);
        assert!(folder.read("s.json") == new);
    }
    assert!(olds > 0 && news > 0, "killed before and after the exchange: {olds} and {news}");
}

/// Mends the file in `folder`, and kills the command at `moment`, if it has not ended by then.
fn kill(folder: &Folder, moment: Moment) {
    let file = folder.path("s.json");
    let inode = fs::metadata(&file).unwrap().ino();
    let mut command = folder.command(&["repair", "--write", "s.json"]);
    let mut child = command.stdout(Stdio::null()).spawn().unwrap();
    let start = Instant::now();
    let is_here = || match moment {
        Moment::After(time) => start.elapsed() >= time,
        Moment::BackedUp => folder.names().iter().any(|name| name.starts_with("s.json.bak-")),
        Moment::Exchanged => fs::metadata(&file).unwrap().ino() != inode,
    };
    while !is_here() && child.try_wait().unwrap().is_none() {
        std::hint::spin_loop();
    }
    child.kill().unwrap();
    child.wait().unwrap();
}
