//! Tool outcomes as JSON. Content, metadata and details stay byte for byte what they were.
use super::verdict::ThisVerdict;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use std::{borrow::Cow, io::Write, ops::Not, time::Duration};
use tr_core::{
    BoxError, BreakerState, Json, OutcomeParts, Pieces, Ran, Retried, ToolError, ToolOutcome,
};

#[derive(Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct OutcomeForm<'b> {
    #[serde(borrow, deserialize_with = "there", skip_serializing_if = "Option::is_none")]
    content: Option<&'b RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    error: Option<ErrorForm<'b>>,
    #[serde(borrow, deserialize_with = "there", skip_serializing_if = "Option::is_none")]
    metadata: Option<&'b RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_version: Option<Cow<'b, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    span_id: Option<Cow<'b, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    emitted_spans: Vec<Cow<'b, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<Duration>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<Cow<'b, str>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    retried: Vec<RetriedForm<'b>>,
    /// The content is that of a stream. Readers that do not know this member give it as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pieces: Option<PiecesForm<'b>>,
    /// No normaliser has looked whether the content is an envelope.
    #[serde(skip_serializing_if = "Not::not")]
    unsearched: bool,
}

#[derive(Serialize, Deserialize)]
struct PiecesForm<'b> {
    lengths: Cow<'b, [u32]>,
    #[serde(default)]
    joined: bool,
    #[serde(default)]
    closes: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ErrorForm<'b> {
    code: Cow<'b, str>,
    message: Cow<'b, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retryable: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verdict: Option<ThisVerdict>,
    ran: Ran,
    #[serde(borrow, default, deserialize_with = "there", skip_serializing_if = "Option::is_none")]
    details: Option<&'b RawValue>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    breaker: Option<BreakerState>,
    #[serde(default)]
    exhausted: bool,
}

#[derive(Serialize, Deserialize)]
struct RetriedForm<'b> {
    attempt: u32,
    delay: Duration,
    reason: Cow<'b, str>,
    latency: Duration,
}

/// Keeps a JSON `null`, which differs from an absent member.
fn there<'de, D: Deserializer<'de>>(from: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(from).map(Some)
}

pub(super) fn write(outcome: &ToolOutcome, out: impl Write) -> Result<(), BoxError> {
    let parts = outcome.parts();
    let texts = |texts: &'_ [Box<str>]| texts.iter().map(|text| text.to_string().into()).collect();
    let form = OutcomeForm {
        content: parts.content.as_ref().map(Json::as_raw),
        error: parts.error.as_ref().map(|error| ErrorForm {
            code: (&*error.code).into(),
            message: (&*error.message).into(),
            retryable: error.retryable,
            verdict: error.verdict.map(ThisVerdict),
            ran: error.ran,
            details: error.details.as_ref().map(Json::as_raw),
            breaker: error.breaker,
            exhausted: error.exhausted,
        }),
        metadata: parts.metadata.as_ref().map(Json::as_raw),
        tool_version: parts.tool_version.as_deref().map(Into::into),
        span_id: parts.span_id.as_deref().map(Into::into),
        emitted_spans: texts(&parts.emitted_spans),
        duration: parts.duration,
        notes: texts(&parts.notes),
        retried: outcome
            .retried()
            .iter()
            .map(|it| RetriedForm {
                attempt: it.attempt,
                delay: it.delay,
                reason: (&*it.reason).into(),
                latency: it.latency,
            })
            .collect(),
        pieces: outcome.pieces().map(|pieces| PiecesForm {
            lengths: pieces.lengths().into(),
            joined: pieces.is_joined(),
            closes: pieces.closes(),
        }),
        unsearched: !outcome.is_unwrapped(),
    };
    Ok(serde_json::to_writer(out, &form)?)
}

pub(super) fn read(bytes: &[u8]) -> Result<ToolOutcome, BoxError> {
    let form: OutcomeForm<'_> = serde_json::from_slice(bytes)?;
    let json = |raw: Option<&RawValue>| raw.map(|raw| Json::from(raw.to_owned()));
    let text = |text: Cow<'_, str>| text.into_owned().into_boxed_str();
    let mut outcome = ToolOutcome::default();
    if !form.unsearched {
        outcome.set_unwrapped();
    }
    let parts: &mut OutcomeParts = outcome.parts_mut();
    parts.content = json(form.content);
    parts.error = form.error.map(|form| {
        let mut error = ToolError::new(text(form.code), text(form.message));
        error.retryable = form.retryable;
        error.verdict = form.verdict.map(|it| it.0);
        error.ran = form.ran;
        error.details = json(form.details);
        error.breaker = form.breaker;
        error.exhausted = form.exhausted;
        error
    });
    parts.metadata = json(form.metadata);
    parts.tool_version = form.tool_version.map(text);
    parts.span_id = form.span_id.map(text);
    parts.emitted_spans = form.emitted_spans.into_iter().map(text).collect();
    parts.duration = form.duration;
    parts.notes = form.notes.into_iter().map(text).collect();
    if !form.retried.is_empty() {
        let retried = |it: RetriedForm<'_>| Retried {
            attempt: it.attempt,
            delay: it.delay,
            reason: text(it.reason),
            latency: it.latency,
        };
        outcome.set_retried(form.retried.into_iter().map(retried).collect::<Vec<_>>());
    }
    if let Some(PiecesForm { lengths, joined, closes }) = form.pieces {
        outcome.set_pieces(Pieces::new(lengths.into_owned(), joined, closes));
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Persist as _;

    fn bytes(outcome: &ToolOutcome) -> Vec<u8> {
        outcome.to_bytes().unwrap()
    }
    use tr_core::Verdict;

    #[test]
    fn an_outcome_comes_back_with_everything_it_said() {
        let mut outcome = ToolOutcome::default();
        let json = |text: &str| Some(Json::from_text(text).unwrap());
        let parts = outcome.parts_mut();
        parts.content = json(r#"{ "id" : 12345678901234567890, "x": 1.0 }"#);
        parts.metadata = json("[1,  2]");
        let mut error = ToolError::new("http_503", "say \"later\" \u{0} é");
        error.retryable = Some(false);
        error.verdict = Some(Verdict::Transient { retry_after: Some(Duration::new(1, 5)) });
        (error.ran, error.exhausted) = (Ran::Yes, true);
        error.details = json("null");
        parts.error = Some(error);
        parts.tool_version = Some("1.2".into());
        parts.span_id = Some("s".into());
        parts.emitted_spans = vec!["a".into(), "b".into()];
        parts.duration = Some(Duration::from_nanos(1_234_567_891));
        parts.notes = vec!["note \\ \"x\"".into()];
        outcome.set_retried(vec![Retried {
            attempt: 1,
            delay: Duration::from_millis(7),
            reason: "timeout".into(),
            latency: Duration::from_secs(2),
        }]);
        for unwrapped in [false, true] {
            assert_eq!(read(&bytes(&outcome)).unwrap().is_unwrapped(), unwrapped);
            outcome.set_unwrapped();
        }
        let again = read(&bytes(&outcome)).unwrap();
        let debug = |outcome: &ToolOutcome| format!("{:?}", (outcome.parts(), outcome.retried()));
        assert_eq!(debug(&again), debug(&outcome));
        assert_eq!(again.content(), outcome.content(), "byte for byte");
        assert_eq!(again.error(), outcome.error());
        assert_eq!(again.pieces(), None);
        assert_eq!(read(b"{}").unwrap().parts().content, None);
        assert!(read(b"{").is_err());
    }

    #[test]
    fn a_streamed_answer_comes_back_in_its_chunks() {
        let list = |text: &str| ToolOutcome::success(Json::from_text(text).unwrap());
        for (content, pieces, chunks) in [
            (
                r#"[1.0,{"a" : 2},"x"]"#,
                Pieces::new([3, 9, 3], false, true),
                [r"1.0", r#"{"a" : 2}"#, r#""x""#],
            ),
            (
                r#""on\u0065, two""#,
                Pieces::new([8, 0, 5], true, false),
                [r#""on\u0065""#, r#""""#, r#"", two""#],
            ),
        ] {
            let mut outcome = list(content);
            outcome.set_pieces(pieces.clone());
            let again = read(&bytes(&outcome)).unwrap();
            assert_eq!((again.content(), again.pieces()), (outcome.content(), Some(&pieces)));
            let split = again.split_content().expect("they fit");
            assert_eq!(split.map(|chunk| chunk.get().to_owned()).collect::<Vec<_>>(), chunks);
        }
        // Lengths of something else: the content is whole.
        let bytes = br#"{"content":[1,2],"pieces":{"lengths":[1,7]}}"#;
        let other = read(bytes).unwrap();
        assert!(other.split_content().is_none() && other.content().is_some());
    }
}
