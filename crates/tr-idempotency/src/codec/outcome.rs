//! Tool outcomes as JSON. Content, metadata and details stay byte for byte what they were.
use serde::{Deserialize, Serialize};
use std::{borrow::Cow, io::Write, ops::Not};
use tr_core::{BoxError, OutcomeParts, Pieces, Retried, ToolOutcome};

/// All members.
#[derive(Serialize)]
struct OutcomeForm<'o> {
    #[serde(flatten)]
    parts: &'o OutcomeParts,
    #[serde(flatten)]
    beside: BesideParts<'o>,
}

/// Those that are not of the parts.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct BesideParts<'o> {
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    retried: Cow<'o, [Retried]>,
    /// The content is that of a stream. Readers that do not know this member give it as a whole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pieces: Option<Cow<'o, Pieces>>,
    /// No normaliser has looked whether the content is an envelope.
    #[serde(skip_serializing_if = "Not::not")]
    unsearched: bool,
}

pub(super) fn write(outcome: &ToolOutcome, out: impl Write) -> Result<(), BoxError> {
    let beside = BesideParts {
        retried: outcome.retried().into(),
        pieces: outcome.pieces().map(Cow::Borrowed),
        unsearched: !outcome.is_unwrapped(),
    };
    Ok(serde_json::to_writer(out, &OutcomeForm { parts: outcome.parts(), beside })?)
}

pub(super) fn read(bytes: &[u8]) -> Result<ToolOutcome, BoxError> {
    // Twice: a flattened struct cannot read raw JSON.
    let mut outcome = ToolOutcome::from(serde_json::from_slice::<OutcomeParts>(bytes)?);
    let BesideParts { retried, pieces, unsearched } = serde_json::from_slice(bytes)?;
    if !retried.is_empty() {
        outcome.set_retried(retried.into_owned());
    }
    if let Some(pieces) = pieces {
        outcome.set_pieces(pieces.into_owned());
    }
    if !unsearched {
        outcome.set_unwrapped();
    }
    Ok(outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn bytes(outcome: &ToolOutcome) -> Vec<u8> {
        let mut bytes = Vec::new();
        write(outcome, &mut bytes).unwrap();
        bytes
    }
    use tr_core::{Json, Ran, ToolError, Verdict};

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
        // As records of earlier versions have it.
        let kept = r#"{"content":{ "id" : 12345678901234567890, "x": 1.0 },"error":{"code":"http_503","message":"say \"later\" \u0000 é","retryable":false,"verdict":{"transient":{"retry_after":{"secs":1,"nanos":5}}},"ran":"yes","details":null,"exhausted":true},"metadata":[1,  2],"toolVersion":"1.2","spanId":"s","emittedSpans":["a","b"],"duration":{"secs":1,"nanos":234567891},"notes":["note \\ \"x\""],"retried":[{"attempt":1,"delay":{"secs":0,"nanos":7000000},"reason":"timeout","latency":{"secs":2,"nanos":0}}]}"#;
        assert_eq!(String::from_utf8(bytes(&outcome)).unwrap(), kept);
        let again = read(kept.as_bytes()).unwrap();
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
