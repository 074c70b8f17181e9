//! How answers end: a labelled corpus of bodies and event streams, cut in every way.
use proptest::{collection::vec, prelude::*};
use std::{
    fs,
    path::{Path, PathBuf},
    sync::LazyLock,
};
use tr_transcript::{AnswerScanner, Complaint, Head, ModelEnd};

/// Every answer of the corpus: its file, its bytes, and how it ended.
pub(crate) fn corpus() -> &'static [(String, Vec<u8>, ModelEnd)] {
    static CORPUS: LazyLock<Vec<(String, Vec<u8>, ModelEnd)>> = LazyLock::new(read);
    &CORPUS
}

fn read() -> Vec<(String, Vec<u8>, ModelEnd)> {
    let refused = |complaint, name| (format!("refused/{name}"), ModelEnd::Refused(complaint));
    let labels = [
        ("answered".to_owned(), ModelEnd::Answered),
        ("filtered".to_owned(), ModelEnd::Filtered),
        ("failed".to_owned(), ModelEnd::Failed),
        refused(Complaint::IncompleteUse, "incomplete_use"),
        refused(Complaint::OrphanedResult, "orphaned_result"),
        refused(Complaint::DuplicateId, "duplicate_id"),
        refused(Complaint::SeveralResults, "several_results"),
        refused(Complaint::Thinking, "thinking"),
        refused(Complaint::EmptyText, "empty_text"),
        refused(Complaint::Misplaced, "misplaced"),
    ];
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/answers");
    let mut all = Vec::new();
    for (folder, end) in labels {
        for path in files(&data.join(&folder)) {
            let name = format!("{folder}/{}", path.file_name().unwrap().display());
            all.push((name, fs::read(path).unwrap(), end));
        }
    }
    all
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

fn end<'p>(pieces: impl IntoIterator<Item = &'p [u8]>) -> ModelEnd {
    let mut scanner = AnswerScanner::new();
    pieces.into_iter().for_each(|piece| scanner.push(piece));
    scanner.end()
}

#[test]
fn every_answer_of_the_corpus_ends_as_its_folder_says() {
    let corpus = corpus();
    assert!(corpus.len() >= 110, "only {} files were found", corpus.len());
    for (name, bytes, expected) in corpus {
        assert_eq!(end([&bytes[..]]), *expected, "{name}");
        let text = std::str::from_utf8(bytes).unwrap();
        assert_eq!(ModelEnd::of_body(text), *expected, "{name}");
    }
}

#[test]
fn the_end_is_the_same_wherever_the_bytes_are_cut() {
    for (name, bytes, expected) in corpus() {
        let mut before = AnswerScanner::new();
        for at in 0..bytes.len() {
            let mut cut = before.clone();
            cut.push(&bytes[at..]);
            assert_eq!(cut.end(), *expected, "{name}, cut at {at}");
            before.push(&bytes[at..=at]);
        }
        assert_eq!(before.end(), *expected, "{name}, byte by byte");
    }
}

#[test]
fn lines_of_events_may_end_as_they_like() {
    for (name, bytes, expected) in corpus().iter().filter(|(name, ..)| name.ends_with(".sse")) {
        let text = std::str::from_utf8(bytes).unwrap();
        for ending in ["\r\n", "\r"] {
            let text = text.replace('\n', ending);
            assert_eq!(ModelEnd::of_body(&text), *expected, "{name} {ending:?}");
            assert_eq!(end(text.as_bytes().chunks(1)), *expected, "{name} {ending:?}");
        }
        // A byte order mark, no space after the colon, no last empty line, a comment in between.
        let text = format!("\u{feff}{}", text.replace(": ", ":").trim_end());
        assert_eq!(ModelEnd::of_body(&text.replace("\n\n", "\n\n:\n\n")), *expected, "{name}");
    }
}

/// Whatever is lost at its end, a good answer is never taken for a filtered one, and it counts
/// as answered only behind the provider's last word.
#[test]
fn a_good_answer_that_is_cut_off_has_failed() {
    for (name, bytes, expected) in corpus() {
        if *expected != ModelEnd::Answered || name.contains("unknown-provider.sse") {
            continue;
        }
        let mut scanner = AnswerScanner::new();
        let mut ends = Vec::new();
        for byte in bytes {
            ends.push((scanner.end(), scanner.is_over()));
            scanner.push(&[*byte]);
        }
        let first = ends.iter().position(|(end, _)| *end == ModelEnd::Answered);
        let first = first.unwrap_or(ends.len());
        assert!(first > bytes.len() / 2, "{name}: answered at {first} of {}", bytes.len());
        assert!(ends[..first].iter().all(|end| *end == (ModelEnd::Failed, false)), "{name}");
        assert!(scanner.is_over() && !scanner.is_cut(), "{name}");
    }
}

#[test]
fn what_broke_off_is_told_from_what_failed() {
    for (name, bytes, expected) in corpus() {
        let mut scanner = AnswerScanner::new();
        scanner.push(bytes);
        let is_cut = name.contains("cut")
            || ["only-pings", "only-comments", "nothing"].iter().any(|it| name.contains(it));
        assert_eq!(scanner.is_cut(), is_cut, "{name}");
        assert!(!is_cut || *expected == ModelEnd::Failed, "{name}");
    }
}

#[test]
fn a_head_that_says_failure_leaves_no_answer() {
    for (name, bytes, expected) in corpus() {
        let mut scanner = AnswerScanner::of_head(Head::Failure);
        scanner.push(bytes);
        let is_good = *expected == ModelEnd::Answered;
        let expected = if is_good { ModelEnd::Failed } else { *expected };
        assert_eq!((scanner.end(), scanner.is_cut()), (expected, false), "{name}");
    }
}

#[test]
fn what_is_no_text_is_not_judged() {
    for bytes in [&b"\x00\x00\x00\x8f\x00\x00\x00\x4b:message-type"[..], b"\x1f\x8b\x08\x00"] {
        assert_eq!(end(bytes.chunks(1)), ModelEnd::Answered);
    }
}

#[test]
fn depth_and_length_cost_no_memory() {
    assert!(size_of::<AnswerScanner>() <= 512, "{}", size_of::<AnswerScanner>());
    let deep = 100_000;
    let mut scanner = AnswerScanner::new();
    scanner.push(br#"{"content":"#);
    for piece in [&b"["[..], b"{\"error\":"] {
        (0..deep).for_each(|_| scanner.push(piece));
    }
    scanner.push(b"\"content_filter\"");
    for piece in [&b"}"[..], b"]"] {
        (0..deep).for_each(|_| scanner.push(piece));
    }
    assert_eq!(scanner.end(), ModelEnd::Failed);
    scanner.push(b"}");
    assert_eq!(scanner.end(), ModelEnd::Answered);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(
        u32::try_from(tr_testkit::rounds(400, 40_000)).unwrap()
    ) })]

    /// Broken answers too: bytes are lost, doubled and changed.
    #[test]
    fn any_bytes_end_the_same_however_they_are_cut(
        pick: prop::sample::Index,
        changes in vec((any::<prop::sample::Index>(), any::<u8>(), 0..4_u8), 0..6),
        cuts in vec(any::<prop::sample::Index>(), 0..12),
    ) {
        let (name, bytes, _) = pick.get(corpus());
        let mut bytes = bytes.clone();
        for (at, byte, kind) in changes {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match kind {
                0 => bytes[at] = byte,
                1 => drop(bytes.remove(at)),
                2 => bytes.insert(at, byte),
                _ => bytes.truncate(at),
            }
        }
        let whole = end([&bytes[..]]);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        prop_assert_eq!(end(cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]])), whole, "{}", name);
        prop_assert_eq!(end(bytes.chunks(1)), whole, "{}", name);
    }

    #[test]
    fn noise_ends_somehow(bytes in vec(any::<u8>(), 0..200), cut: prop::sample::Index) {
        let at = cut.index(bytes.len() + 1);
        prop_assert_eq!(end([&bytes[..at], &bytes[at..]]), end([&bytes[..]]));
    }
}
