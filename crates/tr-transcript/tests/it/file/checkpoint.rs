//! Checkpoints of files, rollbacks and resets.
use super::make::{Act, KINDS, Kind, file};
use tr_transcript::{CheckpointError, FileCheckpoint, SessionFile};

const ACTS: [Act; 6] = [
    Act::Step { calls: 2, order: 2 },
    Act::Say,
    Act::Turn,
    Act::Note,
    Act::Step { calls: 1, order: 0 },
    Act::Say,
];

fn checkpoints(session: &SessionFile) -> Vec<FileCheckpoint> {
    session.checkpoints().collect()
}

#[test]
fn a_file_is_rolled_back_to_a_turn_and_to_its_first_byte() {
    for kind in KINDS {
        let text = file(kind, &ACTS);
        let session = SessionFile::read(text.as_bytes());
        let points = checkpoints(&session);
        // The end, the second turn, the first.
        assert_eq!(points.len(), 3, "{kind:?} {points:?}");
        assert_eq!(points[0].length, text.len() as u64);
        for point in &points {
            let mut back = session.clone();
            back.rollback(&point.id).unwrap();
            assert_eq!(back.to_bytes(), text.as_bytes()[..point.length as usize]);
            assert_eq!((back.end().records, back.end().messages), (point.records, point.messages));
            assert!(back.check().is_clean());
            // What is before a checkpoint is the same in the shorter file.
            let newest = back.checkpoints().next();
            assert_eq!(newest.as_ref().unwrap_or(point), point);
            assert!(newest.is_some() || back.end().records == 0);
        }
    }
}

#[test]
fn the_end_is_a_point_whatever_is_wrong_there() {
    let text = file(Kind::OpenClaw(3), &[Act::Turn, Act::Step { calls: 1, order: 0 }, Act::Say]);
    let whole = SessionFile::read(text.as_bytes());
    assert_eq!(Some(whole.end()), whole.checkpoints().next());

    // In the middle of the step: a call waits. And a torn line behind it.
    let call = text.find("\"toolCall\"").unwrap();
    let end = call + text[call..].find('\n').unwrap() + 1;
    let cut = SessionFile::read(format!("{}{{\"to", &text[..end]).as_bytes());
    let point = cut.end();
    let before = text[..end].lines().count();
    assert_eq!((point.length, point.records), (end as u64, before));
    assert!(cut.checkpoints().all(|other| other != point));
    let mut back = whole.clone();
    back.rollback(&point.id).unwrap();
    assert_eq!(back.to_bytes(), text.as_bytes()[..end]);
    assert_eq!(SessionFile::read(&b""[..]).end().records, 0);
}

#[test]
fn a_rollback_over_changed_records_is_refused_and_nothing_goes() {
    let text = file(Kind::OpenClaw(3), &ACTS);
    let point = checkpoints(&SessionFile::read(text.as_bytes()))[1].clone();
    let mut changed = SessionFile::read(text.replacen("turn 0", "turn X", 1).as_bytes());
    let before = changed.to_bytes();
    assert_eq!(changed.rollback(&point.id), Err(CheckpointError::Mismatch));
    for id in ["", "7", "999-aaaaaaaaaaaa", "x-aaaaaaaaaaaa"] {
        assert_eq!(changed.rollback(id), Err(CheckpointError::NotFound(id.into())));
    }
    assert_eq!(changed.rollback("1-"), Err(CheckpointError::Mismatch));
    assert_eq!(changed.to_bytes(), before);
}

#[test]
fn no_checkpoint_lies_in_a_step_or_behind_an_error() {
    let text = file(
        Kind::OpenClaw(3),
        &[Act::Say, Act::Turn, Act::Step { calls: 2, order: 0 }, Act::Turn],
    );
    let lines: Vec<_> = text.lines().collect();
    // The second result of the step is lost.
    let torn: String = lines
        .iter()
        .enumerate()
        .filter(|(at, _)| *at != 6)
        .map(|(_, line)| format!("{line}\n"))
        .collect();
    let points = checkpoints(&SessionFile::read(torn.as_bytes()));
    let lines: Vec<_> = points.iter().map(|point| point.line).collect();
    assert_eq!(lines, [3, 1]);
}

#[test]
fn a_reset_keeps_the_header_and_the_systems_prompt() {
    let mut session = SessionFile::read(file(Kind::OpenClaw(3), &ACTS).as_bytes());
    session.reset();
    assert_eq!((session.end().records, session.end().messages), (1, 0));
    assert!(session.to_bytes().starts_with(b"{\"cwd\""));

    let plain =
        "{\"role\":\"system\",\"content\":\"be kind\"}\n{\"role\":\"user\",\"content\":\"hi\"}\n";
    let mut session = SessionFile::read(plain.as_bytes());
    session.reset();
    assert_eq!((session.end().records, session.end().messages), (1, 1));
    assert_eq!(session.to_bytes(), b"{\"role\":\"system\",\"content\":\"be kind\"}\n");
}
