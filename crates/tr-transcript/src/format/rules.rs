//! The forms of transcripts, and as data the rules by which each provider accepts or refuses one.
use serde::{Deserialize, Serialize};

/// A form of transcripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// Anthropic's Messages API: results are blocks of the next user message.
    AnthropicMessages,
    /// OpenAI's Chat Completions API: results are messages of the role `tool`.
    OpenAiChat,
    /// OpenAI's Responses API: uses, results and reasoning are items of their own.
    OpenAiResponses,
    /// Google's Gemini API: results are parts of the next content of the user's.
    Gemini,
    /// OpenClaw's and pi's own messages: results are messages of the role `toolResult`.
    OpenClaw,
}

/// A provider's rules.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// Where it expects results.
    pub(crate) results: Results,
    /// The members with the id of a use, and of a result.
    pub(crate) id_members: (&'static str, &'static str),
    /// Whether it refuses a session in which two uses have the same id.
    pub(crate) refuses_repeated_ids: bool,
    /// Which empty parts it refuses.
    pub(crate) blanks: Blanks,
    /// Whether a use or a result may lack an id and is then paired by the tool's name. Otherwise a
    /// use without an id is refused.
    pub(crate) names_pair: bool,
    /// Whether the steps of a turn may carry thought signatures.
    pub(crate) signs_steps: bool,
    /// Whether a system message without content may stand between uses and their results. Such a
    /// message only sets the effort of the model.
    pub(crate) passes_over_system: bool,
    /// Set if a step must follow a user's message or results: the user's message to insert before a
    /// step that begins the session.
    pub(crate) follows_user: Option<&'static str>,
}

impl Rules {
    /// The rules of a provider that only requires uses and results to be paired.
    const fn of(results: Results, id_of_use: &'static str, id_of_result: &'static str) -> Self {
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

/// Which empty parts a provider refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blanks {
    /// Nothing.
    Nothing,
    /// Messages without parts.
    Messages,
    /// Also texts without text, and messages of white space. Such a provider also expects results
    /// at the head of their message.
    Texts,
}

/// Where a provider expects the result of a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Results {
    /// In blocks of the user's message after the step's single message.
    Blocks,
    /// In messages directly after the step's single message.
    Messages,
    /// In items anywhere after the use. A step is a run of the model's items.
    Items,
}

/// The user's message that is put before a session whose beginning is missing.
const BEGIN: &str =
    r#"{"role":"user","parts":[{"text":"[what came before is not in this session]"}]}"#;

impl Format {
    /// All forms, in the order of preference for a text that fits several equally well.
    pub const ALL: [Self; 5] = [
        Self::OpenClaw,
        Self::AnthropicMessages,
        Self::OpenAiChat,
        Self::OpenAiResponses,
        Self::Gemini,
    ];

    /// The provider's rules.
    pub(crate) const fn rules(self) -> Rules {
        match self {
            Self::AnthropicMessages => Rules {
                refuses_repeated_ids: true,
                blanks: Blanks::Texts,
                passes_over_system: true,
                ..Rules::of(Results::Blocks, "id", "tool_use_id")
            },
            Self::OpenAiChat => Rules::of(Results::Messages, "id", "tool_call_id"),
            Self::OpenAiResponses => Rules::of(Results::Items, "call_id", "call_id"),
            Self::Gemini => Rules {
                blanks: Blanks::Messages,
                names_pair: true,
                signs_steps: true,
                follows_user: Some(BEGIN),
                ..Rules::of(Results::Blocks, "id", "id")
            },
            Self::OpenClaw => Rules::of(Results::Messages, "id", "toolCallId"),
        }
    }

    /// Whether the provider refuses a session in which two uses have the same id.
    #[must_use]
    pub fn refuses_repeated_ids(self) -> bool {
        self.rules().refuses_repeated_ids
    }

    /// The rules for messages in this form that are sent in the form `asked`, if that is known. The
    /// agent converts the messages but keeps the ids, so only the rule about ids is that of `asked`.
    pub(crate) fn rules_of(self, asked: Option<Self>) -> Rules {
        let rules = self.rules();
        let refuses = |asked: Self| asked.rules().refuses_repeated_ids;
        let refuses_repeated_ids = asked.map_or(rules.refuses_repeated_ids, refuses);
        Rules { refuses_repeated_ids, ..rules }
    }
}
