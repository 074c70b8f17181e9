//! What a stream that was cut gets again.
use super::*;
use proptest::prelude::*;

fn read(replay: &Replay, mut number: u64) -> (Vec<String>, Next) {
    let mut all = Vec::new();
    loop {
        match replay.after(number) {
            Next::Event(bytes) => all.push(String::from_utf8(bytes.to_vec()).unwrap()),
            end => return (all, end),
        }
        number += 1;
    }
}

#[test]
fn what_follows_an_event_is_replayed_and_goes_on() {
    let (mut replay, now) = (Replay::new(7), tokio::time::Instant::now().into_std());
    assert_eq!(replay.after(0), Next::Nothing);
    for event in [b"data: a\n\n", b"data: b\n\n"] {
        replay.push(event, None, now);
    }
    let (a, b) = ("id: 7-1\ndata: a\n\n".to_owned(), "id: 7-2\ndata: b\n\n".to_owned());
    assert_eq!(read(&replay, 0), (vec![a, b.clone()], Next::Nothing));
    replay.ended = true;
    assert_eq!(read(&replay, 1), (vec![b], Next::End));
    assert_eq!(replay.after(2), Next::End);
    assert_eq!(replay.after(3), Next::Lost, "it was never sent");
}

#[test]
fn old_events_and_those_beyond_the_bound_are_forgotten() {
    let (mut replay, now) = (Replay::new(1), tokio::time::Instant::now().into_std());
    let big = vec![b'x'; MAX_BYTES / 2];
    replay.push(b"first", None, now);
    replay.push(&big, None, now);
    assert!(matches!(replay.after(0), Next::Event(_)));
    replay.push(&big, None, now);
    assert_eq!(replay.after(0), Next::Lost);
    replay.trim(None, now + PATIENCE);
    assert_eq!(read(&replay, 2).0.len(), 1);
    replay.trim(None, now + PATIENCE * 2);
    assert_eq!(replay.after(2), Next::Lost);
    assert_eq!(replay.after(3), Next::Nothing);
}

#[test]
fn what_a_client_is_about_to_read_is_not_forgotten() {
    let (mut replay, now) = (Replay::new(1), tokio::time::Instant::now().into_std());
    let big = vec![b'x'; MAX_BYTES + 1];
    for _ in 0..3 {
        replay.push(&big, Some(1), now);
    }
    assert_eq!(replay.after(0), Next::Lost);
    assert_eq!(read(&replay, 1).0.len(), 2);
    assert!(replay.unread(1) > 2 * MAX_BYTES && replay.unread(3) == 0);
}

#[test]
fn ids_name_the_stream_and_the_event() {
    assert_eq!(EventId::read("3-14"), Some(EventId { stream: 3, number: 14 }));
    for other in ["", "3", "3-", "-3-1", "a-1", "3-1-1", "99999999999999999999-1"] {
        assert_eq!(EventId::read(other), None, "{other}");
    }
}

proptest! {
    /// A client that resumes gets every event once and in order, or learns that some are lost.
    #[test]
    fn nothing_is_lost_unnoticed(
        sizes in prop::collection::vec(1..MAX_BYTES / 3, 1..12), from: prop::sample::Index,
    ) {
        let (mut replay, now) = (Replay::new(1), tokio::time::Instant::now().into_std());
        for size in &sizes {
            replay.push(&vec![b'x'; *size], None, now);
        }
        let from = from.index(sizes.len() + 1);
        let (all, end) = read(&replay, from as u64);
        if end == Next::Lost {
            prop_assert!(all.is_empty());
        } else {
            let got: Vec<_> = all.iter().map(|it| it.matches('x').count()).collect();
            prop_assert_eq!(&got[..], &sizes[from..]);
        }
        prop_assert!(replay.bytes <= MAX_BYTES);
    }
}
