//! What the integrity layer reads of a tool cycle: the model's use of a tool, and its result.
use super::{Classify, DefaultPolicy, End};
use crate::{Ran, ToolCall, ToolOutcome};
use std::borrow::Cow;

/// Which tool cycle of which session a request is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not define the tool cycle of a `{Req}`",
    label = "no `CycleOf<{Req}>` here",
    note = "write `impl tr_core::CycleOf<{Req}> for {Self}` beside your request type, or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait CycleOf<Req> {
    /// The cycle; `None` for a request that belongs to no session or that no model made.
    fn cycle_of<'r>(&self, req: &'r Req) -> Option<CycleRef<'r>>;
}

/// A model's use of a tool, as a transcript records it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CycleRef<'r> {
    /// The session.
    pub session: &'r str,
    /// The id that the model gave to the use.
    pub tool_use_id: &'r str,
    /// The tool, as the model names it.
    pub name: &'r str,
    /// The input, as JSON text.
    pub input: &'r str,
}

/// What a transcript records of a call's end.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not define the transcript entry of a `{Res}`",
    label = "no `AnswerOf<{Res}>` here",
    note = "write `impl tr_core::AnswerOf<{Res}> for {Self}` beside your response type, or give the layer a policy of your own with `.policy(MyPolicy)`"
)]
pub trait AnswerOf<Res> {
    /// What the model sees, and whether the tool ran.
    fn answer_of<'r>(&self, end: End<'r, Res>) -> Answer<'r>;

    /// Notes on the answer that it could not be recorded.
    fn note_unrecorded(&self, _: &mut Res) {}
}

/// What a transcript records of a call's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer<'r> {
    /// What the model sees.
    pub content: Cow<'r, str>,
    /// Whether it is a failure.
    pub is_error: bool,
    /// Whether the tool ran.
    pub ran: Ran,
}

/// A call with a session and with an id from the model.
impl CycleOf<ToolCall> for DefaultPolicy {
    fn cycle_of<'r>(&self, call: &'r ToolCall) -> Option<CycleRef<'r>> {
        let parts = call.parts();
        Some(CycleRef {
            session: parts.context.session.as_deref()?,
            tool_use_id: parts.tool_call_id.as_deref()?,
            name: parts.tool.label(),
            input: parts.params.get(),
        })
    }
}

/// The content (a JSON string without its quotes) or the error's message, then the notes.
impl AnswerOf<ToolOutcome> for DefaultPolicy {
    fn answer_of<'r>(&self, end: End<'r, ToolOutcome>) -> Answer<'r> {
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
            (None, None) => Cow::Borrowed(""),
        };
        for note in &outcome.parts().notes {
            if !content.is_empty() {
                content.to_mut().push('\n');
            }
            content.to_mut().push_str(note);
        }
        Answer { content, is_error: outcome.error().is_some(), ran }
    }

    fn note_unrecorded(&self, outcome: &mut ToolOutcome) {
        outcome.set_unrecorded();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Json, Params, ToolError};

    #[test]
    fn a_call_is_a_cycle_if_it_names_session_and_use() {
        let call = ToolCall::new("read", Params::empty_object()).session("s");
        assert_eq!(DefaultPolicy.cycle_of(&call), None);
        let call = call.tool_call_id("toolu_1");
        let cycle = CycleRef { session: "s", tool_use_id: "toolu_1", name: "read", input: "{}" };
        assert_eq!(DefaultPolicy.cycle_of(&call), Some(cycle));
    }

    #[test]
    fn the_model_sees_content_error_and_notes() {
        let content = |json: &str| {
            let mut outcome = ToolOutcome::success(Json::from_text(json).unwrap());
            outcome.parts_mut().notes.push("[LOOP DETECTED]".into());
            DefaultPolicy.answer_of(Ok(&outcome)).content.into_owned()
        };
        assert_eq!(content(r#""a\nb""#), "a\nb\n[LOOP DETECTED]");
        assert_eq!(content(r#"{"n": 1}"#), "{\"n\": 1}\n[LOOP DETECTED]");

        let failure = ToolOutcome::failure(ToolError::new("enoent", "no such file"));
        let answer = DefaultPolicy.answer_of(Ok(&failure));
        assert_eq!((&*answer.content, answer.is_error), ("no such file", true));
        assert_eq!(DefaultPolicy.answer_of(Ok(&ToolOutcome::default())).content, "");
    }
}
