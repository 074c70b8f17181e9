//! What forms of sessions, actions of a repair and damaged bytes are called.
use serde::{Serialize, Serializer, ser::SerializeStruct as _};
use serde_json::Value;
use std::fmt;
use tr_transcript::{ActionKind, Fault, FileForm, Format};

/// The form of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// As one JSON text.
    Json(Format),
    /// As JSON lines.
    Lines(FileForm),
    /// As a log in a database.
    Stored(Format),
}

impl Form {
    /// The form of its messages.
    pub(crate) fn messages(self) -> Option<Format> {
        match self {
            Self::Json(format) | Self::Stored(format) => Some(format),
            Self::Lines(form) => form.messages(),
        }
    }

    /// The kind of its file, for JSON.
    fn key(self) -> &'static str {
        match self {
            Self::Json(_) => "json",
            Self::Lines(FileForm::ClaudeCode | FileForm::ClaudeSubagent) => "claude_code",
            Self::Lines(FileForm::Codex) => "codex",
            Self::Lines(FileForm::OpenClaw { .. }) => "openclaw",
            Self::Lines(_) => "lines",
            Self::Stored(_) => "stored",
        }
    }
}

/// For a person.
impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Json(format) | Self::Stored(format) => match format {
                Format::AnthropicMessages => f.write_str("Anthropic Messages"),
                Format::OpenAiChat => f.write_str("OpenAI Chat Completions"),
                Format::OpenAiResponses => f.write_str("OpenAI Responses"),
                Format::Gemini => f.write_str("Gemini"),
                format => FileForm::Messages(*format).fmt(f),
            },
            Self::Lines(form) => form.fmt(f),
        }
    }
}

/// Serializes `form`, and `format` for its messages.
impl Serialize for Form {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Form", 2)?;
        fields.serialize_field("form", self.key())?;
        fields.serialize_field("format", &self.messages())?;
        fields.end()
    }
}

/// The provider that refuses messages of this form.
pub(crate) fn provider(format: Option<Format>) -> &'static str {
    match format {
        Some(Format::AnthropicMessages) => "Anthropic",
        Some(Format::OpenAiChat | Format::OpenAiResponses) => "OpenAI",
        Some(Format::Gemini) => "Google",
        _ => "the provider",
    }
}

/// What an agent makes of a fault when it resumes a session, so that the provider accepts the session: then the
/// provider never answers with its error.
pub(crate) const fn on_resume(form: FileForm, fault: &Fault) -> Option<&'static str> {
    use Fault::{EmptyText, IncompleteUse, OrphanedResult, ResultWithoutAssistant, SeveralResults};
    Some(match (form, fault) {
        (FileForm::ClaudeCode, IncompleteUse) => {
            "Claude Code drops this call on resume, silently: the model forgets that it ran; until then it shows \
             \"API Error: 400 due to tool use concurrency issues\""
        }
        (FileForm::ClaudeCode, OrphanedResult | ResultWithoutAssistant | SeveralResults) => {
            "Claude Code drops this result on resume, silently: the model never reads it"
        }
        (FileForm::ClaudeCode, EmptyText) => "Claude Code drops this text on resume, silently",
        (FileForm::Codex, IncompleteUse) => {
            "Codex answers this call \"aborted\" on resume: the model is not told that it may have run"
        }
        (FileForm::Codex, OrphanedResult | ResultWithoutAssistant) => {
            "Codex drops this result on resume, silently: the model never reads it"
        }
        (FileForm::OpenClaw { version: 3 }, IncompleteUse) => {
            "pi answers this call \"No result provided\" on resume: the model is not told that it may have run"
        }
        (FileForm::OpenClaw { version: 4.. }, IncompleteUse) => {
            "OpenClaw answers this call \"missing tool result\" on resume: the model is not told that it \
             may have run"
        }
        (FileForm::OpenClaw { version: 4.. }, OrphanedResult | ResultWithoutAssistant) => {
            "OpenClaw drops this result on resume, silently: the model never reads it"
        }
        _ => return None,
    })
}

/// What the agent makes on resume of a call with which the session ends.
pub(crate) const fn on_resume_of_last(form: FileForm) -> Option<&'static str> {
    match form {
        FileForm::ClaudeCode => Some(
            "on resume Claude Code 2.1.332 tells the model that its outcome is unknown; 2.1.197 drops it, silently",
        ),
        form => on_resume(form, &Fault::IncompleteUse),
    }
}

/// The description of an action, for display.
pub(crate) const fn done(action: ActionKind) -> &'static str {
    match action {
        ActionKind::RemoveOrphan => "remove the result without its call",
        ActionKind::RemoveEmptyMessage => "remove the message of which nothing is left",
        ActionKind::RemoveIncomplete => "remove the call without its result",
        ActionKind::AddUnknown => "answer the call: outcome unknown, may have run",
        ActionKind::MoveResult => "move the result to its call",
        ActionKind::OrphanToText => "turn the result into text",
        ActionKind::RemoveSynthetic => "remove a made-up result",
        ActionKind::RemoveDuplicate => "remove the second, equal result",
        ActionKind::RenameId => "give the call an id of its own",
        ActionKind::RemoveEmptyText => "remove the text without text",
        ActionKind::RemoveReasoning => "remove the reasoning that the provider refuses",
        ActionKind::RemoveMedia => "put a text in the place of the image or document",
        ActionKind::WaiveThoughts => "ask for no thought that is not there",
        ActionKind::JoinMessages => "join the step to the message before it",
        ActionKind::AddUserMessage => "let the user speak before the step",
        ActionKind::CorrectMember => "write it as the provider takes it; it says the same",
        ActionKind::UnlinkItem => "take away the item's id",
        _ => "change",
    }
}

/// The description of bytes that are no record.
pub(crate) fn damage(fault: &Value) -> &'static str {
    match fault.as_str() {
        Some("nul") => "left by a crash or a full disk: they say nothing, and the session goes on",
        Some("torn") => {
            "half a record, as a crash leaves it: what it said is lost, and a call in it may have run"
        }
        _ => "these bytes are lost; the session goes on",
    }
}
