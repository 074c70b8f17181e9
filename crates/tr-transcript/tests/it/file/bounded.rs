//! What is no session is not read to its end, and one that is, is.
use tr_transcript::{FileCheck, FileReport};

const OWN: &str = "{\"type\":\"user\",\"uuid\":\"u\",\"parentUuid\":null,\"message\":{\"role\":\"user\",\
                   \"content\":\"go\"}}\n";

fn check(file: &str, bounded: bool) -> FileReport {
    let check = FileCheck::new();
    let check = if bounded { check.bounded(file.len() as u64) } else { check };
    check.run(file.as_bytes(), |_| {}).unwrap()
}

#[test]
fn what_can_be_no_session_any_more_is_not_read_to_its_end() {
    for line in ["1\n", "x\n", "{}\n", "{\n", "[1]\n", "{\"a\":{\"type\":\"b\"}}\n"] {
        let file = OWN.to_owned() + &line.repeat(100_000);
        let (whole, part) = (check(&file, false), check(&file, true));
        assert!(whole.is_whole && !whole.is_session(), "{line}");
        assert!(!part.is_whole && !part.is_session(), "{line}");
        assert!(part.bytes.total < whole.bytes.total / 4 * 3, "{line}: {:?}", part.bytes);
        let told = part.bytes.records + part.bytes.skipped + part.bytes.separators;
        assert_eq!(part.bytes.total, told, "{line}");
    }
}

/// However much of something else stands first: the shortest records may still outweigh it.
#[test]
fn what_may_still_be_a_session_is_read_to_its_end() {
    let own = "{\"type\":\"\"}";
    for other in ["1\n", "x\n", "{}\n"] {
        for (others, owns, between) in
            [(10_000, 10_001, "\n"), (10_000, 9_990, "\n"), (10_000, 10_001, "")]
        {
            let records = [own, between].concat().repeat(owns);
            let file = OWN.to_owned() + &other.repeat(others) + &records + "\n";
            let (whole, part) = (check(&file, false), check(&file, true));
            assert_eq!(whole.is_session(), part.is_session(), "{other} {others} {owns}");
            assert!(part.is_whole || !whole.is_session(), "{other} {others} {owns}");
            if part.is_whole {
                let counts = |it: &FileReport| (it.own_records, it.other_records, it.torn_lines);
                assert_eq!(counts(&whole), counts(&part), "{other} {others} {owns}");
            }
        }
    }
}

#[test]
fn empty_lines_are_counted() {
    for file in ["\n\n\n", "\n\n{}\n\n\n{}", "{}\n\n", "\u{feff}\n\n{}", "\n \n\r\n\n1\n"] {
        let report = check(file, false);
        assert_eq!(report.bytes.total as usize, file.len(), "{file:?}");
    }
    let file = "\n\n\n".to_owned() + OWN + "\n\n" + "x\n";
    assert_eq!(check(&file, false).findings[0].line, 7);
}
