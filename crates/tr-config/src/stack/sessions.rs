//! `[sessions]`.
use super::{idempotency::WhenStoreFails, limit::refuse_scheme};
use std::path::PathBuf;
use tr_integrity::Layer0Config;
use tr_wire::read::{Flag, Lenient, Name, OrDefault, Size, Word, object, shape, words};

object! { strict
    /// Which sessions of agents the stack keeps whole, and how.
    pub struct SessionsConfig {
        /// The form of messages of new sessions.
        "format" => format: Option<tr_integrity::Format>, Lenient<Word<Format>> = "anthropic_messages";
        /// A failed tool use stays with its error if the tool may have run, or is always rolled back.
        "mode" => mode: Option<tr_integrity::CycleMode>, Lenient<Word<CycleMode>> = "preserve";
        /// Where sessions are kept: a SQLite file (the feature `sqlite`) or `memory`.
        "where" => place: Option<SessionPlace>, Lenient<Place> = "memory";
        /// What happens to calls while the store fails.
        "when_store_fails" => when_store_fails: Option<tr_integrity::WhenStoreFails>, Lenient<Word<WhenStoreFails>> = "refuse";
        ..
        /// Whether sessions are recorded, checked and repaired.
        rules: Layer0Config, SessionRules;
    }
}

object! { strict
    /// Whether sessions are recorded, checked and repaired.
    struct SessionRules for Layer0Config {
        /// Whether sessions are recorded and checked.
        "enabled" => enabled: bool, OrDefault<Flag> = true;
        /// Check a session before each call of the model.
        "validate_before_call" => validate_before_call: bool, OrDefault<Flag> = true;
        /// Repair faults without asking; else offer a repair.
        "auto_repair" => auto_repair: bool, OrDefault<Flag> = false;
        /// How many committed checkpoints are kept.
        "checkpoint_retention" => checkpoint_retention: usize, OrDefault<Size<10_000>> = 10;
        /// Keep messages in checkpoints, to restore them.
        "snapshot_messages" => snapshot_messages: bool, OrDefault<Flag> = false;
        /// Report what went well, too.
        "verbose" => verbose: bool, OrDefault<Flag> = false;
    }
}

words! {
    Format for tr_integrity::Format {
        AnthropicMessages = "anthropic_messages", OpenAiChat = "openai_chat",
        OpenAiResponses = "openai_responses", Gemini = "gemini", OpenClaw = "openclaw",
    }
    CycleMode for tr_integrity::CycleMode { Preserve = "preserve", Rollback = "rollback" }
}

/// Where sessions are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SessionPlace {
    /// In the process; they end with it.
    Memory,
    /// In a SQLite file, shared by the processes of one machine.
    File(PathBuf),
}

shape! {
    Place => SessionPlace, "a file or memory",
    |node, faults| {
        let text = Name::read(node, faults)?;
        match &*text {
            "memory" => Some(SessionPlace::Memory),
            address if address.contains("://") => {
                refuse_scheme(node, address, Self::expected(), &[], faults)
            }
            file => Some(SessionPlace::File(file.into())),
        }
    },
    { "type": "string", "minLength": 1 }
}
