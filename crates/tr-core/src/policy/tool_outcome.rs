//! [`DefaultPolicy`] for the outcomes of tool calls.
use super::{
    store::StoreResponse,
    transcript::{Answer, CycleRef, TranscriptPolicy},
};
use crate::{
    Classification, DefaultPolicy, End, Ran, Replay, ResponsePolicy, Retried, ToolCall,
    ToolOutcome, classify,
};
use std::borrow::Cow;

/// What a transcript says of a streamed answer that is too long for it.
const NOT_KEPT: &str = "[the tool succeeded, and its answer is too long to be kept]";

/// What it says if the outcome has an end of such an answer.
const END_ONLY: &str = "[the tool succeeded, and only the end of its answer is kept]\n";

impl ResponsePolicy<ToolOutcome> for DefaultPolicy {
    #[inline]
    fn classify<'r>(&self, end: End<'r, ToolOutcome>) -> Classification<'r> {
        match end {
            Ok(outcome) => match outcome.error() {
                None => Classification::SUCCESS,
                Some(error) => {
                    let mut end = classify::tool_error(error).end;
                    // Earlier chunks were sent already.
                    end.exhausted |= outcome.parts().chunk.is_some_and(|chunk| chunk.index > 0);
                    end
                }
            },
            Err(error) => classify::error(error).end,
        }
    }

    fn note_retries(&self, outcome: &mut ToolOutcome, retried: Vec<Retried>) {
        outcome.set_retried(retried);
    }

    fn note_attempts(&self, outcome: &mut ToolOutcome, ran: Ran, exhausted: bool) {
        if let Some(error) = &mut outcome.parts_mut().error {
            (error.ran, error.exhausted) = (ran, exhausted);
        }
    }

    fn note_unrecorded(&self, outcome: &mut ToolOutcome) {
        outcome.set_unrecorded();
    }

    fn set_span(&self, outcome: &mut ToolOutcome, span: &str) {
        outcome.parts_mut().span_id = Some(span.into());
    }

    fn add_span(&self, outcome: &mut ToolOutcome, span: &str) {
        outcome.parts_mut().emitted_spans.push(span.into());
    }

    fn content<'r>(&self, outcome: &'r ToolOutcome) -> Option<&'r str> {
        outcome.content().map(crate::Json::get)
    }

    fn message<'r>(&self, end: End<'r, ToolOutcome>) -> Option<Cow<'r, str>> {
        match end {
            Ok(outcome) => outcome.error().map(|error| Cow::Borrowed(&*error.message)),
            Err(error) => Some(error.to_string().into()),
        }
    }

    fn is_from_cache(&self, outcome: &ToolOutcome) -> bool {
        outcome.from_cache()
    }
}

impl StoreResponse<ToolOutcome> for DefaultPolicy {
    type Stored = ToolOutcome;

    #[inline]
    fn store(&self, outcome: &ToolOutcome) -> Option<ToolOutcome> {
        outcome.can_be_kept().then(|| outcome.clone())
    }

    #[inline]
    fn size_of(&self, stored: &ToolOutcome) -> usize {
        stored.size()
    }

    fn shorten(&self, stored: &ToolOutcome) -> Option<ToolOutcome> {
        stored.shortened()
    }

    #[inline]
    fn load(&self, stored: ToolOutcome, replay: Replay) -> ToolOutcome {
        stored.replayed(replay)
    }
}

impl TranscriptPolicy<ToolCall, ToolOutcome> for DefaultPolicy {
    /// A call with a session and with an id from the model.
    fn cycle<'r>(&self, call: &'r ToolCall) -> Option<CycleRef<'r>> {
        let parts = call.parts();
        Some(CycleRef {
            session: parts.context.session.as_deref()?,
            tool_use_id: parts.tool_call_id.as_deref()?,
            name: parts.tool.label(),
            input: parts.params.get(),
        })
    }

    /// The content (a JSON string without its quotes) or the error's message, then the notes.
    fn answer<'r>(&self, end: End<'r, ToolOutcome>) -> Answer<'r> {
        let ran = self.classify(end).ran;
        let outcome = match end {
            Ok(outcome) => outcome,
            Err(error) => return Answer { content: error.to_string().into(), is_error: true, ran },
        };
        let mut content = match (outcome.error(), outcome.content()) {
            (Some(error), _) => Cow::Borrowed(&*error.message),
            (None, Some(content)) => {
                content.parse::<String>().map_or_else(|_| Cow::Borrowed(content.get()), Cow::Owned)
            }
            (None, None) if outcome.is_unkept() => Cow::Borrowed(NOT_KEPT),
            (None, None) => Cow::Borrowed(""),
        };
        if outcome.content().is_some() && outcome.is_unkept() {
            content.to_mut().insert_str(0, END_ONLY);
        }
        for note in &outcome.parts().notes {
            if !content.is_empty() {
                content.to_mut().push('\n');
            }
            content.to_mut().push_str(note);
        }
        Answer { content, is_error: outcome.error().is_some(), ran }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Json, Params, ToolError};

    #[test]
    fn a_call_is_a_cycle_if_it_names_session_and_use() {
        let call = ToolCall::new("read", Params::empty_object()).session("s");
        assert_eq!(DefaultPolicy.cycle(&call), None);
        let call = call.tool_call_id("toolu_1");
        let cycle = CycleRef { session: "s", tool_use_id: "toolu_1", name: "read", input: "{}" };
        assert_eq!(DefaultPolicy.cycle(&call), Some(cycle));
    }

    #[test]
    fn the_model_sees_content_error_and_notes() {
        let content = |json: &str| {
            let mut outcome = ToolOutcome::success(Json::from_text(json).unwrap());
            outcome.parts_mut().notes.push("[LOOP DETECTED]".into());
            DefaultPolicy.answer(Ok(&outcome)).content.into_owned()
        };
        assert_eq!(content(r#""a\nb""#), "a\nb\n[LOOP DETECTED]");
        assert_eq!(content(r#"{"n": 1}"#), "{\"n\": 1}\n[LOOP DETECTED]");

        let failure = ToolOutcome::failure(ToolError::new("enoent", "no such file"));
        let answer = DefaultPolicy.answer(Ok(&failure));
        assert_eq!((&*answer.content, answer.is_error), ("no such file", true));
        assert_eq!(DefaultPolicy.answer(Ok(&ToolOutcome::default())).content, "");

        let answer = |outcome: ToolOutcome| {
            let mut outcome = outcome;
            outcome.set_not_kept();
            DefaultPolicy.answer(Ok(&outcome)).content.into_owned()
        };
        assert_eq!(answer(ToolOutcome::default()), NOT_KEPT);
        let end = answer(ToolOutcome::success(Json::from_text("2").unwrap()));
        assert_eq!(end, "[the tool succeeded, and only the end of its answer is kept]\n2");
    }
}
