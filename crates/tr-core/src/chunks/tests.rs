//! Channels of chunks: order, room, attempts, and what is gathered.
use super::*;
use crate::{Json, Params, Ran, ToolCall, ToolError, ToolOutcome};
use proptest::prelude::*;
use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Wakes {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

fn noop() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

fn call(chunks: Option<Chunks>) -> ToolCall {
    let mut call = ToolCall::new("tail", Params::empty_object());
    call.parts_mut().chunks = chunks;
    call
}

fn limits(buffered: usize, buffered_bytes: usize, kept_bytes: usize) -> ChunkLimits {
    ChunkLimits { buffered, buffered_bytes, kept_bytes }
}

/// Sends at once, or not at all.
fn send(sink: &mut ChunkSink, chunk: impl Into<ChunkContent>) -> Poll<Result<(), SinkClosed>> {
    pin!(sink.send(chunk)).poll(&mut noop())
}

fn is_sent(sink: &mut ChunkSink, chunk: impl Into<ChunkContent>) -> bool {
    matches!(send(sink, chunk), Poll::Ready(Ok(())))
}

fn json(text: &str) -> Json {
    Json::from_text(text).unwrap()
}

#[test]
fn a_full_channel_makes_the_tool_wait_and_a_dropped_send_sends_nothing() {
    for limits in [limits(2, 1000, 100), limits(100, 4, 100)] {
        let (chunks, mut receiver) = channel(limits);
        let mut sink = call(Some(chunks)).chunk_sink();
        assert!(is_sent(&mut sink, "a") && is_sent(&mut sink, "b"));
        let wakes = Arc::<Wakes>::default();
        {
            let mut waits = pin!(sink.send("c"));
            let waker = Waker::from(wakes.clone());
            assert!(waits.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
            assert!(waits.poll(&mut Context::from_waker(&waker)).is_pending());
        }
        assert_eq!(receiver.try_next(), Some(json(r#""a""#)));
        assert_eq!(wakes.count(), 1, "it asked twice, and is woken once");
        assert!(is_sent(&mut sink, "d"));
        let rest: Vec<_> = std::iter::from_fn(|| receiver.try_next()).collect();
        assert_eq!(rest, [json(r#""b""#), json(r#""d""#)]);
    }
}

#[test]
fn a_chunk_of_any_size_is_taken_if_none_waits() {
    let (chunks, mut receiver) = channel(limits(16, 4, 10));
    let mut sink = call(Some(chunks)).chunk_sink();
    assert!(is_sent(&mut sink, "x".repeat(1000)));
    assert!(send(&mut sink, "y").is_pending());
    assert_eq!(receiver.try_next().unwrap().get().len(), 1002);
    assert!(is_sent(&mut sink, "y"));
}

#[test]
fn the_consumer_is_woken_by_a_chunk_and_by_the_end() {
    let (chunks, mut receiver) = channel(ChunkLimits::default());
    let mut sink = call(Some(chunks)).chunk_sink();
    let wakes = Arc::<Wakes>::default();
    let waker = Waker::from(wakes.clone());
    let mut cx = Context::from_waker(&waker);
    assert!(receiver.poll_next(&mut cx).is_pending());
    assert!(is_sent(&mut sink, "a"));
    assert_eq!(wakes.count(), 1);
    assert_eq!(receiver.poll_next(&mut cx), Poll::Ready(Some(json(r#""a""#))));
    assert!(receiver.poll_next(&mut cx).is_pending());
    let outcome = sink.finish(ToolOutcome::default());
    assert_eq!(wakes.count(), 2);
    assert_eq!(receiver.poll_next(&mut cx), Poll::Ready(None));
    assert_eq!(outcome.content(), Some(&json(r#""a""#)));
}

#[test]
fn a_consumer_that_left_holds_nothing_up() {
    let (chunks, receiver) = channel(limits(1, 1, 100));
    let mut sink = call(Some(chunks)).chunk_sink();
    assert!(sink.has_consumer() && is_sent(&mut sink, "a"));
    let wakes = Arc::<Wakes>::default();
    let waker = Waker::from(wakes.clone());
    assert!(sink.poll_ready(&mut Context::from_waker(&waker)).is_pending());
    drop(receiver);
    assert_eq!(wakes.count(), 1);
    assert!(!sink.has_consumer());
    for text in ["b", "c", "d"] {
        assert!(is_sent(&mut sink, text));
    }
    let outcome = sink.finish(ToolOutcome::default());
    assert_eq!(outcome.content(), Some(&json(r#""abcd""#)));
}

#[test]
fn the_whole_answer_is_a_text_or_a_list_by_how_it_was_sent() {
    let gathered = |chunks: &[ChunkContent], closing: Option<&str>| {
        let mut sink = call(None).chunk_sink();
        for chunk in chunks {
            assert!(is_sent(&mut sink, chunk.clone()));
        }
        let outcome =
            closing.map_or_else(ToolOutcome::default, |it| ToolOutcome::success(json(it)));
        sink.finish(outcome)
    };
    let text = ChunkContent::text;
    let value = |text: &str| ChunkContent::value(json(text));
    for (chunks, closing, whole, closes) in [
        (vec![text("a\n"), text(""), text("é\"")], None, r#""a\né\"""#, false),
        (vec![value(r#""a""#), value("1.0")], None, r#"["a",1.0]"#, false),
        (vec![text("a"), value(r#"{"n" : 1}"#)], None, r#"["a",{"n" : 1}]"#, false),
        (vec![text("a")], Some(r#"{"lines": 1}"#), r#"["a",{"lines": 1}]"#, true),
    ] {
        let outcome = gathered(&chunks, closing);
        assert_eq!(outcome.content().unwrap().get(), whole);
        let split = outcome.split_content().unwrap();
        assert_eq!(split.len(), chunks.len() + usize::from(closes));
        let all = chunks.iter().map(|chunk| chunk.json().clone()).chain(closing.map(json));
        assert!(split.clone().eq(all), "{whole}");
        assert_eq!(split.closing(), closing.map(json));
    }
    let none = gathered(&[], Some("[1]"));
    assert!(none.pieces().is_none() && none.content() == Some(&json("[1]")), "it sent none");
}

#[test]
fn an_answer_that_is_too_long_is_not_kept_or_not_given() {
    let over = |chunks: Option<Chunks>| {
        let mut sink = call(chunks).chunk_sink().gather_up_to(20);
        assert!(is_sent(&mut sink, "0123456789") && is_sent(&mut sink, "0123456789"));
        sink.finish(ToolOutcome::default())
    };
    let (chunks, _receiver) = channel(limits(16, 1000, 20));
    let streamed = over(Some(chunks));
    assert!(streamed.error().is_none() && !streamed.can_be_kept() && streamed.content().is_none());
    let error = over(None).error().unwrap().clone();
    assert_eq!((&*error.code, error.ran), ("answer_too_large", Ran::Yes));
    assert!(error.message.contains("20 bytes"), "{error}");
}

#[test]
fn a_failure_stays_as_it_is() {
    let mut sink = call(None).chunk_sink();
    assert!(is_sent(&mut sink, "a"));
    let failed = sink.finish(ToolOutcome::failure(ToolError::new("eio", "broken")));
    assert!(failed.content().is_none() && failed.pieces().is_none());
}

#[test]
fn an_attempt_that_is_over_sends_nothing_more() {
    let (chunks, mut receiver) = channel(ChunkLimits::default());
    let mut call = call(Some(chunks.clone()));
    let mut first = call.chunk_sink();
    assert!(!chunks.end_attempt(0), "nothing was sent: another attempt may follow");
    call.set_attempt(1);
    let mut second = call.chunk_sink();
    assert!(matches!(send(&mut first, "late"), Poll::Ready(Err(_))));
    assert!(is_sent(&mut second, "a"));
    assert!(chunks.end_attempt(1), "a part was sent");
    assert!(!is_sent(&mut second, "b"));
    assert_eq!((receiver.try_next(), receiver.try_next()), (Some(json(r#""a""#)), None));
    assert!(second.finish(ToolOutcome::default()).pieces().is_none());
}

#[test]
fn what_is_sent_after_the_end_is_refused_so_records_have_what_was_given() {
    let (chunks, mut receiver) = channel(ChunkLimits::default());
    let mut sink = call(Some(chunks.clone())).chunk_sink();
    let mut other = sink.clone();
    assert!(is_sent(&mut sink, "a"));
    let outcome = chunks.finish(0, sink.finish(ToolOutcome::default()));
    assert!(!is_sent(&mut other, "b"));
    assert_eq!(outcome.content(), Some(&json(r#""a""#)));
    assert_eq!(receiver.poll_next(&mut noop()), Poll::Ready(Some(json(r#""a""#))));
    assert_eq!(receiver.poll_next(&mut noop()), Poll::Ready(None));
}

#[test]
fn a_watching_handle_ends_and_takes_nothing() {
    let (chunks, mut receiver) = channel(ChunkLimits::default());
    let mut sink = call(Some(chunks.clone())).chunk_sink();
    let beside = chunks.watching();
    assert!(!beside.end_attempt(0) && is_sent(&mut sink, "a"));
    assert!(beside.end_attempt(0) && beside.sent() == 1);
    assert!(beside.finish(0, ToolOutcome::default()).content().is_none());
    assert!(is_sent(&mut call(Some(beside)).chunk_sink(), "beside"));
    assert!(is_sent(&mut sink, "b"));
    let seen: Vec<_> = std::iter::from_fn(|| receiver.try_next()).collect();
    assert_eq!(seen, [json(r#""a""#), json(r#""b""#)]);
}

#[test]
fn a_tool_is_idle_only_while_the_consumer_waits_for_it() {
    let (chunks, mut receiver) = channel(ChunkLimits::default());
    let mut sink = call(Some(chunks.clone())).chunk_sink();
    assert!(!chunks.is_awaited(), "nobody has asked for a chunk");
    assert!(receiver.poll_next(&mut noop()).is_pending() && chunks.is_awaited());
    let wakes = Arc::<Wakes>::default();
    let waker = Waker::from(wakes.clone());
    let mut cx = Context::from_waker(&waker);
    assert_eq!(chunks.poll_signs(0, &mut cx), Poll::Ready(1));
    assert!(chunks.poll_signs(1, &mut cx).is_pending());
    assert!(receiver.poll_next(&mut noop()).is_pending());
    assert_eq!(wakes.count(), 0, "it only waits on");
    assert!(is_sent(&mut sink, "a") && chunks.is_awaited());
    assert_eq!((wakes.count(), chunks.poll_signs(1, &mut cx)), (1, Poll::Ready(2)));
    assert!(receiver.try_next().is_some() && !chunks.is_awaited());
    assert!(chunks.poll_signs(2, &mut cx).is_pending());
    assert!(receiver.poll_next(&mut noop()).is_pending());
    assert_eq!((wakes.count(), chunks.poll_signs(2, &mut cx)), (2, Poll::Ready(3)));
    assert!(receiver.poll_next(&mut noop()).is_pending());
    drop(receiver);
    assert!(chunks.is_awaited(), "nobody is slow");
}

fn contents() -> impl Strategy<Value = ChunkContent> {
    prop_oneof![
        ".{0,12}".prop_map(|text| ChunkContent::text(&text)),
        any::<f64>().prop_filter("JSON has none", |it| it.is_finite()).prop_map(|it| {
            ChunkContent::value(serde_json::json!({ "n": it, "[,": ["]", null, it] }))
        }),
        "[ ]{0,2}[0-9]{1,3}[ ]{0,2}".prop_filter_map("no number", |text| {
            Some(ChunkContent::value(Json::from_text(text).ok()?))
        }),
    ]
}

proptest! {
    /// Whatever was sent comes out of the channel, and of the whole answer, in order and byte for byte.
    #[test]
    fn what_was_sent_is_what_is_replayed(
        all in prop::collection::vec(contents(), 1..40),
        buffered in 1_usize..5,
        texts in any::<bool>(),
    ) {
        let all: Vec<_> = all
            .into_iter()
            .map(|it| if texts { ChunkContent::text(it.json().get()) } else { it })
            .collect();
        let (chunks, mut receiver) = channel(limits(buffered, 100, 1 << 20));
        let mut sink = call(Some(chunks)).chunk_sink();
        let mut seen = Vec::new();
        for chunk in &all {
            while send(&mut sink, chunk.clone()).is_pending() {
                seen.push(receiver.try_next().expect("it is full"));
            }
        }
        let outcome = sink.finish(ToolOutcome::default());
        seen.extend(std::iter::from_fn(|| receiver.try_next()));
        let sent: Vec<_> = all.iter().map(|chunk| chunk.json().clone()).collect();
        prop_assert_eq!(&seen, &sent);
        let split: Vec<_> = outcome.split_content().unwrap().collect();
        prop_assert_eq!(&split, &sent);
    }

    /// Pieces of some other content split nothing, and never panic.
    #[test]
    fn pieces_of_another_content_do_not_split_it(
        lengths in prop::collection::vec(0_u32..9, 0..6),
        joined in any::<bool>(),
        content in prop_oneof!["\"[a-zé\\\\\\\\u0061]{0,12}\"", "\\[[0-9,]{0,9}\\]"],
    ) {
        let Ok(content) = Json::from_text(content) else { return Ok(()) };
        let mut outcome = ToolOutcome::success(content.clone());
        outcome.set_pieces(crate::Pieces::new(lengths.clone(), joined, false));
        if let Some(split) = outcome.split_content() {
            let chunks: Vec<_> = split.collect();
            prop_assert_eq!(chunks.len(), lengths.len());
        }
    }
}
