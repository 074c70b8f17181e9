//! Frames come back, and no changed bit passes.
use super::*;
use crate::store::StoredState;

const KEY: Key = Key::from_bytes([7; 32]);

fn place() -> Place {
    let digest = Digest::of_bytes(b"params");
    Place { key: KEY, digest, mutating: true, epoch: 1, by_hand: false }
}

fn unwrap(frames: &Frames, bytes: &[u8]) -> Result<Vec<u8>, Unreadable> {
    let digest = Digest::of_bytes(b"params");
    let state = StoredState::Done(bytes.to_vec());
    frames.unwrap(&Found::before(&KEY, &digest, &state), bytes)
}

#[test]
fn bytes_come_back_and_every_flipped_bit_shows() {
    let frames = Frames::default();
    for payload in [&b""[..], b"x", &[0; 300]] {
        let bytes = frames.wrap(&KEY, &place().end(Phase::Done, 1), payload.to_vec());
        assert_eq!(unwrap(&frames, &bytes).as_deref(), Ok(payload));
        for bit in 0..bytes.len() * 8 {
            let mut bytes = bytes.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(unwrap(&frames, &bytes).is_err(), "bit {bit}");
        }
        for cut in 0..bytes.len() {
            assert!(unwrap(&frames, &bytes[..cut]).is_err(), "cut at {cut}");
        }
    }
}

#[test]
fn a_newer_format_is_told_from_a_corrupt_one() {
    let frames = Frames::default();
    let mut bytes = frames.wrap(&KEY, &place().end(Phase::Done, 1), b"x".to_vec());
    bytes[0] = VERSION + 1;
    assert_eq!(unwrap(&frames, &bytes), Err(Unreadable::Newer(VERSION + 1)));
    assert!(Unreadable::Newer(2).to_string().ends_with("update this program"));
}
