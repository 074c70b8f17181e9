//! A large session file is repaired in bounded memory.
use std::io::Read;
use tr_testkit::{
    alloc, rounds,
    sessions::{Form, SessionLines},
};
use tr_transcript::{FileCheck, FilePlanner, Repair};

const FORMS: [Form; 3] = [Form::ClaudeCode, Form::OpenClaw, Form::Anthropic];
const MIB: u64 = 1 << 20;

/// Damage at the beginning, in the middle and at the end: only what is around it is held.
#[test]
fn a_large_file_is_repaired_in_twice_its_size() {
    let size = rounds(24, 256) * MIB;
    for form in FORMS {
        let mut whole = String::new();
        SessionLines::new(form, size).read_to_string(&mut whole).unwrap();
        let lines: Vec<&str> = whole.lines().collect();
        let mut file = Vec::with_capacity(whole.len());
        let last = lines.len() / 12 * 12;
        let lost = [14, last / 24 * 12 + 14, last - 22];
        for (at, line) in lines.iter().enumerate() {
            // A result goes, and another line is torn.
            let at = at - usize::from(form == Form::OpenClaw && at > 0);
            if lost.contains(&at) {
                continue;
            }
            let torn = at == last / 2 + 3;
            file.extend_from_slice(if torn { &line.as_bytes()[..99] } else { line.as_bytes() });
            file.push(b'\n');
        }
        let len = file.len() as u64;
        drop(lines);
        drop(whole);
        let plan = || FilePlanner::new(Repair::preserve()).plan(&file, |_| {});
        let (plan, peak) = alloc::peak(plan);
        let acts = plan.actions.len();
        println!("{form:?}: {} MiB, {acts} actions, peak {} KiB", len / MIB, peak >> 10);
        assert!(acts >= 4, "{:?}", plan.actions);
        let after = FileCheck::new().run(&**plan.after.as_ref().unwrap(), |_| {}).unwrap();
        assert!(after.is_clean(), "{:?}", after.findings);
        // The new file, and what is known of each record. The old one is held beside it.
        assert!(peak <= 2 * len, "{form:?} took {peak} bytes for {len}");
    }
}
