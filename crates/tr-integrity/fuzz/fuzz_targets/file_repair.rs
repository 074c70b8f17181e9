//! Any bytes: a session file comes out as it was, what a repair writes is what it says, and a rollback leaves its beginning.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tr_integrity::{Repair, SessionFile};

fuzz_target!(|bytes: &[u8]| {
    let session = SessionFile::read(bytes);
    assert_eq!(session.to_bytes(), bytes);
    for repair in [Repair::preserve(), Repair::preserve().close_tail(), Repair::remove()] {
        let mut repaired = session.clone();
        let plan = repaired.plan(repair);
        repaired.apply(plan).expect("it was planned for this file");
        // What is left, if anything, is told: a check finds the same in what is written.
        let written = SessionFile::read(&*repaired.to_bytes());
        assert_eq!(written.check().findings, repaired.check().findings);
    }
    if let Some(point) = session.checkpoints().next() {
        let mut back = session.clone();
        back.rollback(&point.id).expect("it is a checkpoint of this file");
        // It takes away, and mends nothing of what stays.
        assert!(bytes.starts_with(back.as_bytes()));
    }
});
