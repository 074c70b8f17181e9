//! Integrity: tool cycles that are recorded in a session in memory, and what is done with whole transcripts.
use crate::{
    call,
    run::{Comes, Run},
};
use std::io::Read as _;
use tower::Layer;
use tr_integrity::{Format, IntegrityLayer, Repair, Sessions, Transcript, Validator};
use tr_testkit::sessions::{Form, SessionLines};

const FORMAT: Format = Format::AnthropicMessages;

/// Calls after which a session begins again, so that it does not outgrow the memory.
const CYCLES: u64 = 64;

/// A call that no model made: it passes.
#[must_use]
pub fn passed() -> Run {
    let layer = IntegrityLayer::new(Sessions::new(FORMAT));
    Run::service(Comes::Through, layer.layer(call::Leaf), call::same())
}

/// A call whose use and result are recorded.
#[must_use]
pub fn cycle() -> Run {
    let sessions = Sessions::new(FORMAT);
    let layer = IntegrityLayer::new(sessions.clone());
    let calls: Vec<_> =
        (0..CYCLES).map(|n| call::plain().tool_call_id(format!("toolu_{n}"))).collect();
    let mut n = 0;
    Run::service(Comes::Through, layer.layer(call::Leaf), move || {
        n = (n + 1) % calls.len();
        if n == 0 {
            drop(sessions.remove("s-1"));
        }
        calls[n].clone()
    })
}

/// Validation of 1,000 messages that are parsed already.
#[must_use]
pub fn validate() -> Run {
    let transcript = transcript();
    Run::function(move || Validator::of(&transcript))
}

/// The plan of a repair of 1,000 messages.
#[must_use]
pub fn plan() -> Run {
    let transcript = transcript();
    Run::function(move || Repair::preserve().plan(&transcript))
}

/// 1,000 messages with tool cycles.
fn transcript() -> Transcript {
    let mut file = String::new();
    SessionLines::new(Form::Anthropic, 1_200 * 650).read_to_string(&mut file).expect("text");
    let lines: Vec<_> = file.lines().take(1_000).collect();
    assert_eq!(lines.len(), 1_000);
    Transcript::read_as(FORMAT, &format!("[{}]", lines.join(","))).expect("messages")
}
