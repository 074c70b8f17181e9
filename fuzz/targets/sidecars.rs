//! Any bytes: what lies beside a session, or hangs on it, is read or told to be unreadable.
#![no_main]
#![expect(dead_code, reason = "the program uses more of its readers")]

#[path = "../../crates/tool-guard/src"]
mod guard {
    #[path = "session/sidecar/kept.rs"]
    pub(crate) mod kept;
    #[path = "files/nfs4.rs"]
    mod nfs4;

    pub(crate) fn lets_others_write(list: &[u8]) -> bool {
        nfs4::lets_others_write(list)
    }
}

use guard::{kept::Kept, lets_others_write};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    checkpoints(bytes);
    // One that is cut short may let anybody write.
    if !lets_others_write(bytes) {
        let entries = u32::from_be_bytes(*bytes.first_chunk().expect("it has a length"));
        assert!(entries as usize <= bytes.len() / 16);
        assert!(entries == 0 || lets_others_write(&bytes[..4]));
    }
});

fn checkpoints(bytes: &[u8]) {
    let kept = Kept::read(bytes);
    let lines = bytes.split(|byte| *byte == b'\n').count();
    assert!(kept.checkpoints.len() + kept.unreadable.len() <= lines);
    assert!(kept.unreadable.iter().all(|line| (1..=lines).contains(line)));
    let mut written = Vec::new();
    for checkpoint in &kept.checkpoints {
        let found = kept.get(&checkpoint.id).expect("it has this id");
        assert!(found.id == checkpoint.id || found.point.as_deref() == Some(&*checkpoint.id));
        serde_json::to_writer(&mut written, checkpoint).expect("it is JSON");
        written.push(b'\n');
    }
    let again = Kept::read(&written);
    assert_eq!((again.checkpoints, again.unreadable), (kept.checkpoints, Vec::new()));
}
