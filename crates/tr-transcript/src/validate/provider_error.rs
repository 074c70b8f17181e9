//! The provider's error text for a finding.
use super::{Fault, Finding, Severity};
use crate::format::Format;

impl Finding {
    /// The provider's error text; `None` for a warning, unless some of the provider's models refuse
    /// it.
    #[must_use]
    pub fn provider_error(&self) -> Option<String> {
        if self.severity == Severity::Warning && self.fault != Fault::MissingSignature {
            return None;
        }
        let Some(asked) = self.asked.filter(|asked| *asked != self.format) else {
            return Some(self.format.form().error(self));
        };
        let (message_index, block_index) = match asked {
            Format::AnthropicMessages | Format::Gemini => self.sent_position,
            _ => (self.message_index, self.block_index),
        };
        // OpenAI names the kind of call.
        let about = if self.about.is_empty() { "function call".into() } else { self.about.clone() };
        Some(asked.form().error(&Self { message_index, block_index, about, ..self.clone() }))
    }
}
