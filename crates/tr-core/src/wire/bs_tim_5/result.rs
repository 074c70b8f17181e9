//! The result's envelope.
use crate::{
    BreakerState, Json, MatchedOn, Ran,
    wire::{
        InvalidEnvelope, Status,
        read::{
            self, Any, Flag, List, Maybe, Measured, Record, Strictness, Tally, Text, Word, object,
            words,
        },
    },
};

object! { open
    /// What a tool call came to, as BS-TIM-5 v1.1 sends it.
    pub struct ToolResultEnvelope {
        /// The request's.
        "requestId" => request_id: Box<str>, Text;
        /// How it ended.
        "status" => status: Status, Word<Status>;
        /// Whether this comes from a record and not from a run for this request.
        "fromCache" => from_cache: bool, Flag;
        /// Which record that is.
        "cache" => cache: Option<CacheHit>, Maybe<CacheHit>;
        /// The tool's name.
        "toolName" => tool_name: Box<str>, Text;
        /// How long the call took, all attempts and delays included, in milliseconds.
        "durationMs" => duration_ms: f64, Measured;
        /// How many attempts were made; 0 for a call that was not run.
        "attempts" => attempts: u32, Tally;
        /// What the tool gave back.
        "output" => output: Option<Output>, Maybe<Output>;
        /// What the call failed with.
        "error" => error: Option<Failure>, Maybe<Failure>;
        /// Each retry.
        "retriedBy" => retried_by: Option<Vec<RetriedBy>>, Maybe<List<RetriedBy>>;
    }
}

object! { open
    /// Which record an answer comes from.
    pub struct CacheHit {
        /// Whether the first call was still running.
        "matchedOn" => matched_on: MatchedOn, Word<MatchedOn>;
        /// How old the record is, in milliseconds.
        "ageMs" => age_ms: f64, Measured;
        /// A keyed hash of the key.
        "keyFingerprint" => key_fingerprint: Box<str>, Text;
    }
}

object! { open
    /// What a tool gave back.
    pub struct Output {
        /// The tool's own answer.
        "content" => content: Json, Any;
        /// What is said beside it. Ours, where the tool has no member of that name: `notes` for
        /// the model, and `ran` and `recorded` where a repeat may find no record.
        "metadata" => metadata: Option<Json>, Maybe<Record>;
    }
}

object! { open
    /// What a call failed with.
    pub struct Failure {
        /// A stable code.
        "code" => code: Box<str>, Text;
        /// For the model.
        "message" => message: Box<str>, Text;
        /// Whether the same call may succeed later.
        "retriable" => retriable: bool, Flag;
        /// Whether it is of no use to send it again now: it would fail again, or was retried
        /// already.
        "terminal" => terminal: bool, Flag;
        /// The state of the breaker that refused the call.
        "breakerState" => breaker_state: Option<BreakerState>, Maybe<Word<BreakerState>>;
        /// Whether the tool ran. Not in v1.1.
        "ran" => ran: Option<Ran>, Maybe<Word<Ran>>;
        /// `false`: a repeat may find no record of this call. Not in v1.1.
        "recorded" => recorded: Option<bool>, Maybe<Flag>;
        /// What the failure came from, where the message does not say it. Not in v1.1.
        "cause" => cause: Option<Box<str>>, Maybe<Text>;
    }
}

object! { open
    /// One retry.
    pub struct RetriedBy {
        /// The attempt that failed, from 1.
        "attempt" => attempt: u32, Tally;
        /// How long was waited after it, in milliseconds.
        "delayMs" => delay_ms: f64, Measured;
        /// The code of its failure.
        "reasonCode" => reason_code: Box<str>, Text;
        /// How long it took, in milliseconds.
        "latencyMs" => latency_ms: f64, Measured;
    }
}

words! {
    MatchedOn { Inflight = "inflight", Completed = "completed" }
    BreakerState {
        Closed = "CLOSED", Open = "OPEN", HalfOpen = "HALF_OPEN", ForcedOpen = "FORCED_OPEN",
    }
    Ran { No = "no", Yes = "yes", Unknown = "unknown" }
}

impl ToolResultEnvelope {
    /// Reads an envelope.
    ///
    /// # Errors
    /// Names every fault of the text. Output may hold any JSON.
    pub fn read(json: impl AsRef<[u8]>) -> Result<Self, InvalidEnvelope> {
        read::document::<Self>("ToolResultEnvelope", json.as_ref(), Strictness::Any)
    }

    /// The envelope as JSON.
    #[must_use]
    pub fn to_json(&self) -> Json {
        Json::from_value(self).expect("names are strings")
    }
}
