//! The contract of `Service`, for answers that come in pieces.
use super::world::{Pieces, cut, pieces};
use futures_util::TryStreamExt;
use tower::{Layer, ServiceExt};
use tr_core::BoxError;
use tr_integrity::{Chunks, Format, ModelCall, ModelGuardLayer, Sessions, WatchedBody};
use tr_testkit::laws::Laws;

fn question(number: u64) -> ModelCall {
    ModelCall::new("s", format!(r#"[{{"role":"user","content":"{number}"}}]"#))
}

fn asked(call: &ModelCall) -> u64 {
    let digits: String = call.body.chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap()
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
    Laws::new(question, |call| asked(call) + 1).check(|model| {
        let layer = ModelGuardLayer::streamed(Sessions::new(Format::OpenAiChat));
        layer.layer(model.map_response(events)).and_then(number)
    });
}
