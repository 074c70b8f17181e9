//! An agent that appends to its session while a command replaces the file: no line is lost.
use super::{folder::Folder, lines::OPENCLAW};
use std::{
    collections::HashSet,
    fs::File,
    io::Write as _,
    sync::atomic::{AtomicBool, Ordering},
    thread,
};
use tr_testkit::rounds;

/// Each line is opened for, written and closed, as agents do it.
#[test]
fn a_line_that_is_appended_at_any_moment_is_in_the_file() {
    let (mut refused, mut random) = (0, fastrand::Rng::with_seed(7));
    for round in 0..rounds(40, 2_000) {
        let folder = Folder::new();
        let path = folder.write("s.jsonl", OPENCLAW);
        let pause = random.u32(..200_000);
        let stop = AtomicBool::new(false);
        let (written, done) = thread::scope(|threads| {
            let agent = threads.spawn(|| {
                let mut written = Vec::new();
                while !stop.load(Ordering::Relaxed) {
                    let at = written.len();
                    let line = format!(r#"{{"type":"custom","id":"x{at}","parentId":"c"}}"#);
                    let mut file = File::options().append(true).open(&path).unwrap();
                    file.write_all(format!("{line}\n").as_bytes()).unwrap();
                    written.push(line);
                    (0..pause).for_each(|_| std::hint::spin_loop());
                }
                written
            });
            let done = folder.session(&["repair", "--write", "s.jsonl"]);
            stop.store(true, Ordering::Relaxed);
            (agent.join().unwrap(), done)
        });
        let text = folder.read("s.jsonl");
        let kept: HashSet<_> = text.lines().collect();
        let lost: Vec<_> = written.iter().filter(|line| !kept.contains(line.as_str())).collect();
        assert!(lost.is_empty(), "round {round}: {lost:?} of {}\n{}", written.len(), done.err);
        if done.code != 0 {
            assert!(text.starts_with(OPENCLAW), "round {round}: {}\n{text}", done.err);
            refused += 1;
        }
    }
    assert!(refused > 0, "the agent was never in the way");
}
