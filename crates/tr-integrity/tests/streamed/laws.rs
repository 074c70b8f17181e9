//! The contract of `Service`, for answers that come in pieces.
use crate::world::{Pieces, cut, pieces};
use futures_util::TryStreamExt;
use tower::{Layer, ServiceExt};
use tr_core::{BoxError, Standard};
use tr_integrity::{
    BodyOf, BodyWatch, Chunks, Format, ModelGuardLayer, Sessions, TranscriptOf, WatchedBody,
};
use tr_testkit::laws::Laws;

#[derive(Clone, Copy)]
struct Numbers;

impl TranscriptOf<u64> for Numbers {
    fn session_of<'r>(&self, _: &'r u64) -> Option<&'r str> {
        Some("s")
    }

    fn transcript_of<'r>(&self, _: &'r u64) -> Option<&'r str> {
        Some(r#"[{"role":"user","content":"hi"}]"#)
    }

    fn set_transcript(&self, _: &mut u64, _: String) {}
}

impl BodyOf<Chunks<Pieces>> for Numbers {
    type Watched = WatchedBody<Pieces>;

    fn watched(&self, response: Chunks<Pieces>, watch: BodyWatch) -> Self::Watched {
        Standard.watched(response, watch)
    }
}

/// An event stream of several pieces that answers with a number.
fn events(number: u64) -> Chunks<Pieces> {
    let text = format!(
        "data: {{\"choices\":[{{\"delta\":{{\"content\":\"{number}\"}}}}]}}\n\ndata: {{\"choices\":[{{\"finish_reason\":\"stop\"}}]}}\n\n"
    );
    Chunks(pieces(&cut(&text, 30)))
}

async fn number(body: WatchedBody<Pieces>) -> Result<u64, BoxError> {
    let read: Vec<u8> = body.map_ok(Vec::from).try_concat().await?;
    let text = String::from_utf8(read)?;
    let number = text.split("\"content\":\"").nth(1).and_then(|rest| rest.split('"').next());
    Ok(number.ok_or("no number")?.parse()?)
}

/// The body is read within the call, so that each law sees it too: readiness, cancelling at every
/// await of it, wakers, errors.
#[test]
fn the_guard_keeps_the_laws_while_answers_stream() {
    Laws::new(|n| n, |n: &u64| n * n).check(|model| {
        let layer = ModelGuardLayer::builder(Sessions::new(Format::OpenAiChat)).streamed();
        layer.answers(Numbers).build().layer(model.map_response(events)).and_then(number)
    });
}
