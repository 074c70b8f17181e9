//! Streams by the rules of the HTML standard, cut anywhere.
use super::*;
use proptest::prelude::*;

const LIMIT: usize = 64;

fn pieces(limit: usize, chunks: &[&[u8]]) -> (Vec<Piece>, Bytes) {
    let mut splitter = Splitter::new(limit);
    let mut found = Vec::new();
    for chunk in chunks {
        splitter.feed(chunk);
        while let Some(piece) = splitter.next() {
            found.push(piece);
        }
    }
    (found, splitter.rest())
}

fn messages(stream: &str) -> Vec<String> {
    let (pieces, _) = pieces(1024, &[stream.as_bytes()]);
    let data = pieces.into_iter().filter_map(|piece| match piece.content {
        Content::Message(data) => Some(String::from_utf8(data.to_vec()).unwrap()),
        _ => None,
    });
    data.collect()
}

#[test]
fn lines_end_in_three_ways() {
    for end in ["\n", "\r", "\r\n"] {
        let stream = ["event: message", "id: 7", "data: {}", "", "data: []", "", ""].join(end);
        assert_eq!(messages(&stream), ["{}", "[]"], "{end:?}");
    }
}

#[test]
fn an_event_is_complete_with_its_last_byte() {
    for stream in ["data: x\n\n", "data: x\r\r", "data: x\r\n\r\n", "data: x\r\n\n"] {
        let bytes = stream.as_bytes();
        let singles: Vec<_> = bytes.chunks(1).collect();
        let (found, rest) = pieces(LIMIT, &singles);
        assert!(found.iter().any(|it| it.content == Content::Message("x".into())), "{stream:?}");
        let joined: Vec<u8> = found.iter().flat_map(|it| it.raw.to_vec()).chain(rest).collect();
        assert_eq!(joined, bytes);
    }
}

/// Readers of CRLF hold an event back until its LF has come.
#[test]
fn the_last_lf_is_not_held_back() {
    let (found, rest) = pieces(LIMIT, &[b"data: x\r\n\r\ndata: y\r\n\r", b"\n"]);
    let raw: Vec<_> = found.iter().map(|it| &it.raw[..]).collect();
    assert_eq!(raw, [&b"data: x\r\n\r"[..], b"\n", b"data: y\r\n\r", b"\n"]);
    assert!(rest.is_empty());
}

#[test]
fn what_is_no_message_is_passed() {
    assert_eq!(
        messages(": ping\n\nid: 1\ndata:\n\nevent: ping\ndata: x\n\nevent:\ndata:y\n\n"),
        ["y"]
    );
    assert_eq!(messages("\u{feff}data: a\ndata\ndata:  b\nnone\n\ndata: torn\n"), ["a\n\n b"]);
}

#[test]
fn ids_and_retry_are_read() {
    let (found, _) =
        pieces(LIMIT, &[b"id: a\nretry: 250\ndata:\n\nid: b\0c\nretry: x\ndata: 1\n\n"]);
    assert_eq!(
        (found[0].id.as_deref(), found[0].retry),
        (Some("a"), Some(Duration::from_millis(250)))
    );
    assert_eq!((found[1].id.as_deref(), found[1].retry), (None, None));
}

#[test]
fn a_message_over_the_limit_is_known_by_its_id() {
    let long = "x".repeat(100);
    let stream = format!(
        "event: message\r\nid: 9\r\ndata: {{\"id\":7,\r\ndata: \"result\":\"{long}\"}}\r\n\r\ndata: y\r\n\r\n"
    );
    for size in [1, 7, 1000] {
        let chunks: Vec<_> = stream.as_bytes().chunks(size).collect();
        let (found, _) = pieces(LIMIT, &chunks);
        let skipped = found.iter().find_map(|piece| match &piece.content {
            Content::Oversized(it) => Some((it.id.clone(), it.bytes, piece.id.clone())),
            _ => None,
        });
        let bytes = format!("{{\"id\":7,\n\"result\":\"{long}\"}}").len();
        assert_eq!(skipped, Some((Some("7".into()), bytes, Some("9".into()))), "{size}");
        assert!(found.iter().any(|piece| piece.content == Content::Message("y".into())));
    }
}

/// A stream of lines that mean something.
fn stream() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        Just("data: {}".to_owned()),
        "data:[ a-z:]{0,40}",
        Just("data".to_owned()),
        "(id|event|retry|x|): ?[0-9a-z]{0,4}",
        Just("event: message".to_owned()),
        Just("id".to_owned()),
        Just(String::new()),
        Just(String::new()),
    ];
    let end = prop_oneof![Just("\n"), Just("\r"), Just("\r\n")];
    let lines = prop::collection::vec((line, end), 0..30);
    (any::<bool>(), lines).prop_map(|(bom, lines)| {
        let text: String = lines.into_iter().flat_map(|(line, end)| [line, end.into()]).collect();
        [if bom { BOM } else { b"" }, text.as_bytes()].concat()
    })
}

/// The messages by the rules of the HTML standard, read from the whole text.
fn by_the_standard(stream: &[u8]) -> Vec<String> {
    let text = std::str::from_utf8(stream).unwrap();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let Some((complete, _)) = text.rsplit_once('\n') else { return Vec::new() };
    let (mut found, mut data, mut kind) = (Vec::new(), String::new(), "");
    for line in complete.split('\n') {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match name {
            "" if line.is_empty() => {
                if let Some(data) = data.strip_suffix('\n')
                    && !data.is_empty()
                    && matches!(kind, "" | "message")
                {
                    found.push(data.to_owned());
                }
                (data, kind) = (String::new(), "");
            }
            "data" => data = data + value + "\n",
            "event" => kind = value,
            _ => {}
        }
    }
    found
}

proptest! {
    #[test]
    fn all_bytes_come_out_and_all_messages_are_found(data in stream(), cuts: Vec<u8>) {
        let (mut chunks, mut rest) = (Vec::new(), &data[..]);
        for cut in cuts {
            let (head, tail) = rest.split_at(usize::from(cut % 23).min(rest.len()));
            chunks.push(head);
            rest = tail;
        }
        chunks.push(rest);
        let (found, rest) = pieces(4096, &chunks);
        let raw: Vec<u8> = found.iter().flat_map(|it| it.raw.to_vec()).chain(rest).collect();
        prop_assert_eq!(raw, &*data);
        let said = found.into_iter().filter_map(|piece| match piece.content {
            Content::Message(data) => Some(String::from_utf8(data.to_vec()).unwrap()),
            _ => None,
        });
        prop_assert_eq!(said.collect::<Vec<_>>(), by_the_standard(&data));
    }

    #[test]
    fn bytes_of_any_kind_come_out_however_they_arrive(
        data in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'\r'), Just(b':'), any::<u8>()], 0..200),
        size in 1usize..9,
    ) {
        let whole = pieces(4096, &[&data]);
        let chunks: Vec<_> = data.chunks(size).collect();
        prop_assert_eq!(&pieces(4096, &chunks).0, &whole.0);
        let raw = whole.0.iter().flat_map(|it| it.raw.to_vec()).chain(whole.1);
        prop_assert_eq!(raw.collect::<Vec<_>>(), data);
    }

    #[test]
    fn the_limit_holds_however_the_bytes_arrive(data in stream(), limit in 8usize..40, size in 1usize..9) {
        let chunks: Vec<_> = data.chunks(size).collect();
        let (found, _) = pieces(limit, &chunks);
        prop_assert_eq!(&found, &pieces(limit, &[&data]).0);
        let mut splitter = Splitter::new(limit);
        for chunk in chunks {
            splitter.feed(chunk);
            while splitter.next().is_some() {}
            prop_assert!(splitter.buffer.len() <= limit + 9);
        }
        let all = by_the_standard(&data).len();
        let told = found.iter().filter(|it| it.content != Content::None).count();
        prop_assert!(told >= all.min(told) && found.iter().all(|it| it.raw.len() <= limit + 5));
    }
}
