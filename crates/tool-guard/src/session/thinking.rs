//! Thinking blocks after the changes of a repair: the provider may refuse them.
use super::{content::Content, form::Form, report::Act, target::Target};
use serde::Serialize;
use serde_json::Value;
use tr_integrity::{ActionKind, FileForm, Format};

/// The first thinking block after the first change.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Thinking {
    /// The line at which its message begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    what: &'static str,
}

const WHAT: &str = "the model's thinking behind the first change: Anthropic may drop it, or refuse \
                    the request (`thinking` or `redacted_thinking` blocks in the latest assistant \
                    message cannot be modified)";

impl Thinking {
    /// For a session with these planned changes.
    pub(crate) fn behind(acts: &[Act], before: &Content) -> Option<Self> {
        let of_pi = match before.about().form {
            Form::Lines(FileForm::OpenClaw { .. }) => true,
            form if form.messages() == Some(Format::AnthropicMessages) => false,
            _ => return None,
        };
        let is_lines = matches!(before, Content::JsonLines(_));
        let place = |act: &Act| {
            let (line, action) = act.in_messages()?;
            let at = if is_lines { line } else { Some(action.message_index as u64) };
            // An added result comes after the call.
            at.map(|at| at + u64::from(action.action == ActionKind::AddUnknown))
        };
        let first = acts.iter().filter_map(place).min()?;
        let records = before.numbered().into_iter().filter(|(at, _)| *at >= first);
        let mut thoughts = records.filter(|(_, record)| {
            memchr::memmem::find(record, b"thinking").is_some() && has_thought(record, of_pi)
        });
        let (at, _) = thoughts.next()?;
        Some(Self { line: before.line_of(at), what: WHAT })
    }

    /// For display.
    pub(crate) fn show(&self, target: &Target) -> String {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{target}{line}  {}", self.what)
    }
}

/// Whether a message, or a line with one, has a thinking block with Anthropic's signature.
fn has_thought(record: &[u8], of_pi: bool) -> bool {
    let Ok(record) = serde_json::from_slice::<Value>(record) else { return false };
    let message = record.get("message").unwrap_or(&record);
    let is_thought =
        |block: &Value| matches!(block["type"].as_str(), Some("thinking" | "redacted_thinking"));
    let blocks = message["content"].as_array();
    (!of_pi || message["api"] == "anthropic-messages")
        && blocks.is_some_and(|blocks| blocks.iter().any(is_thought))
}
