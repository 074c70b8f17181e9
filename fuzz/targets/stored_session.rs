//! Any bytes: a session that a store gives back is refused, or is one that can be checked and mended.
#![no_main]
use libfuzzer_sys::fuzz_target;
use std::{
    pin::pin,
    sync::LazyLock,
    task::{Context, Poll, Waker},
};
use tr_integrity::{
    Format, Repair, ResetOptions, Sessions, Validator,
    store::{Entry, Memory, Revision, SessionStore as _, StoreErrorKind},
};

const ID: &str = "s-1";
const AFTER: u64 = 1;

static STORE: LazyLock<Memory> = LazyLock::new(Memory::new);
static SESSIONS: LazyLock<Sessions> = LazyLock::new(|| {
    let sessions = Sessions::builder(Format::AnthropicMessages);
    sessions.store(STORE.clone()).build().expect("the defaults are valid")
});

fuzz_target!(|bytes: &[u8]| {
    now(STORE.delete(ID)).expect("memory can be written");
    let mut after = None;
    for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1..) {
        let revision = Revision { number, stamp: AFTER };
        let entry = Entry { revision, at: 0, body: sealed(revision, line) };
        now(STORE.append(ID, after, &entry)).expect("it is the next");
        after = Some(revision);
    }
    let session = match now(SESSIONS.stored(ID)) {
        Ok(session) => session.expect("there are entries"),
        Err(error) => return assert_eq!(error.kind(), StoreErrorKind::Unreadable, "{error}"),
    };
    let transcript = session.transcript();
    assert_eq!(session.validator().findings(), Validator::of(transcript).findings());
    for repair in [Repair::preserve(), Repair::remove()] {
        let mut mended = session.clone();
        let plan = mended.plan(repair);
        mended.apply(plan, 0).expect("it was planned for this session");
        assert!(mended.plan(repair).is_empty());
    }
    for checkpoint in session.checkpoints() {
        let mut back = session.clone();
        if back.rollback(&checkpoint.id, 0).is_ok() {
            assert_eq!(back.transcript().len(), checkpoint.message_index);
        }
    }
    let mut fresh = session.clone();
    fresh.truncate(transcript.len() / 2, 0);
    let _ = fresh.reset(ResetOptions { archive: true }, 0);
    assert!(fresh.validator().is_valid());
});

/// With the version and the checksum that an entry begins with.
fn sealed(revision: Revision, json: &[u8]) -> Vec<u8> {
    let mut hasher = blake3::Hasher::new();
    for part in [
        &(ID.len() as u64).to_le_bytes()[..],
        ID.as_bytes(),
        &revision.number.to_le_bytes(),
        &revision.stamp.to_le_bytes(),
        json,
    ] {
        hasher.update(part);
    }
    [b"trs1 ", hasher.finalize().to_hex().as_bytes(), b"\n", json].concat()
}

fn now<T>(work: impl Future<Output = T>) -> T {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => unreachable!("nothing in memory is waited for"),
    }
}
