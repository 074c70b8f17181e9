//! What one form of transcripts says for itself, and what several of them share.
use super::ReadError;
use crate::{
    json::{self, Piece},
    message::{Body, Message, Role},
    validate::Finding,
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// What an unanswered use gets as its result: an error with exactly this content.
pub const OUTCOME_UNKNOWN: &str = "outcome unknown, may have run";

/// How a repair of OpenClaw's begins what it puts in the place of a missing result.
const OPENCLAW_SYNTHETIC: &str = "[openclaw] missing tool result in session history";

/// One form: how its messages are read and written. The rules of its provider are data, so that
/// what is alike in several forms is written once, by the rule.
pub(crate) trait Form: Sync {
    /// The rules of its provider.
    fn rules(&self) -> Rules;

    /// Reads a message.
    fn read(&self, raw: Box<str>) -> Result<Body, ReadError>;

    /// How much says that a message is in this form.
    fn evidence(&self, message: &str) -> usize;

    /// The messages with these uses.
    fn write_uses(&self, uses: &[NewUse<'_>]) -> Vec<String>;

    /// A result: a block, or a message of its own.
    fn write_result(&self, asked: &Asked<'_>, content: &str, is_error: bool) -> String;

    /// The messages that hold these results.
    fn hold(&self, results: &[String]) -> Vec<String> {
        results.to_vec()
    }

    /// A block as it stands in a list of blocks.
    fn listed(&self, block: String) -> String {
        block
    }

    /// `message` with its blocks made of `pieces`; `None` if it cannot stand without blocks.
    fn rewrite(&self, message: &Message, pieces: &[Piece]) -> Option<String> {
        Some(message.with_pieces(pieces))
    }

    /// Whether a message that takes the place of a result keeps its other members.
    fn keeps_members(&self) -> bool {
        false
    }

    /// A result without its use, as text that keeps its content: blocks, or the message. `result`
    /// is all of it.
    fn result_as_text(&self, title: &str, result: &str, content: Option<&str>) -> Vec<String>;

    /// The messages for which the provider may ask for thoughts that are not there, and their
    /// texts for which it does not.
    fn waive_thoughts(&self, _: &[Message]) -> Vec<(usize, String)> {
        Vec::new()
    }

    /// `message` with the members that its provider refuses and that can say the same otherwise;
    /// `None` if it has none.
    fn corrected(&self, _: &Message) -> Option<String> {
        None
    }

    /// The text with which the provider refuses what was found.
    fn error(&self, finding: &Finding) -> String;
}

/// The rules of a provider.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Where it looks for results.
    pub(crate) results: Results,
    /// The members that hold the id of a use, and of a result.
    pub(crate) id_members: (&'static str, &'static str),
    /// Whether it refuses a session that names an id twice.
    pub(crate) refuses_repeated_ids: bool,
    /// What it refuses because nothing is in it.
    pub(crate) blanks: Blanks,
    /// Whether a use or a result may lack an id, so that its tool's name pairs it. Elsewhere a use
    /// without one is refused.
    pub(crate) names_pair: bool,
    /// Whether the steps of a turn may carry signatures of the model's thoughts.
    pub(crate) signs_steps: bool,
    /// Whether the system may speak between uses and their results, as long as it says nothing:
    /// a change of effort.
    pub(crate) passes_over_system: bool,
    /// If a step must follow a message of the user's, results among them: one that may stand
    /// before a step that begins the session.
    pub(crate) follows_user: Option<&'static str>,
}

impl Rules {
    /// Those of a provider that asks for no more than that uses and results are paired.
    pub(super) const fn of(
        results: Results,
        id_of_use: &'static str,
        id_of_result: &'static str,
    ) -> Self {
        Self {
            results,
            id_members: (id_of_use, id_of_result),
            refuses_repeated_ids: false,
            blanks: Blanks::Nothing,
            names_pair: false,
            signs_steps: false,
            passes_over_system: false,
            follows_user: None,
        }
    }
}

/// What a provider refuses because nothing is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blanks {
    /// Nothing.
    Nothing,
    /// Messages without parts.
    Messages,
    /// Texts without text too, and messages of white space. It also looks for results at the head
    /// of their message only.
    Texts,
}

/// Where a provider looks for a use's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Results {
    /// In blocks of the user's message behind the step's one message.
    Blocks,
    /// In messages directly behind the step's one message.
    Messages,
    /// In items anywhere behind the use. A step is a run of the model's items.
    Items,
}

/// A tool use that is to be written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NewUse<'r> {
    pub(crate) id: &'r str,
    pub(crate) name: &'r str,
    pub(crate) input: &'r str,
}

/// A tool use that is to be answered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'r> {
    pub(crate) id: &'r str,
    pub(crate) name: &'r str,
    /// How it stands in the transcript; empty if it is written here.
    pub(crate) text: &'r str,
}

/// Whether a repair put this content there.
pub(super) fn is_synthetic(content: Option<&RawValue>) -> bool {
    content.is_some_and(|content| is_synthetic_text(&plain_text(content)))
}

pub(crate) fn is_synthetic_text(text: &str) -> bool {
    text == OUTCOME_UNKNOWN || text.starts_with(OPENCLAW_SYNTHETIC)
}

/// The text of a content: a string, or the one text part that it has.
fn plain_text(content: &RawValue) -> String {
    #[derive(Deserialize)]
    struct Part<'t> {
        #[serde(borrow)]
        text: Option<&'t RawValue>,
    }
    if let Some(text) = json::string(content) {
        return text.into_owned();
    }
    match serde_json::from_str::<Vec<Part<'_>>>(content.get()).as_deref() {
        Ok([Part { text: Some(text) }]) => json::string(text).unwrap_or_default().into_owned(),
        _ => String::new(),
    }
}

/// `text` with the mark for the provider's cache that `was` has, which it takes the place of.
pub(crate) fn with_mark_of(text: String, was: &str) -> String {
    const MARK: &str = "cache_control";
    let marks = json::members(was).unwrap_or_default();
    let Some(mark) = marks.get(MARK) else { return text };
    match json::members(&text) {
        Ok(members) if !members.contains_key(MARK) => json::set_member(&text, MARK, mark.get()),
        _ => text,
    }
}

/// The content as one text: of a string its own, of anything else the JSON.
pub(super) fn as_text(content: &str) -> String {
    serde_json::from_str(content).unwrap_or_else(|_| content.to_owned())
}

/// The string that a member holds; empty if it holds none.
pub(super) fn text(member: Option<&RawValue>) -> Box<str> {
    member.and_then(json::string).unwrap_or_default().into()
}

pub(super) fn role(raw: Option<&RawValue>) -> Result<Role, ReadError> {
    let role = raw.and_then(json::string).ok_or(ReadError::new("a message without a role"))?;
    Ok(match &*role {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" => Role::Tool,
        _ => Role::Other,
    })
}
