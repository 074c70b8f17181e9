//! The form of a configuration, as it is written.
use super::guard::{IdentityConfig, RecordsConfig, Rule};
use crate::{
    catalog::{
        form::{Retry, Tool, Tools},
        shape::{At, Lenient, Located, Share as Rate},
    },
    rollout::{Mode, Share, Stage},
};
use std::borrow::Cow;
use tr_core::Effect;
use tr_wire::read::{
    Count, Faults, Flag, Kind, List, Map, Millis, Name, Node, Percent, Shape, Word, object,
    with_schema, words,
};

with_schema! {
    use tr_wire::read::schemars::{Schema, SchemaGenerator, json_schema};
}

object! { strict
    /// How a stack of reliability layers is set up. What is absent stays as the stack has it.
    struct ConfigForm {
        ignored "$schema";
        /// Which calls are guarded.
        "rollout" => rollout: Option<RolloutForm>, Lenient<RolloutForm>;
        /// Whether tools' failures are put into the contract's words, and their answers looked into for
        /// failures; true.
        "normalise" => normalise: Option<bool>, Lenient<Flag>;
        /// How long one attempt may take where its tool says nothing, in milliseconds.
        "attempt_timeout_ms" => attempt_timeout_ms: Option<u64>, Lenient<Millis<1>>;
        /// How long a call that brings no deadline may take, with all its attempts and waits, in
        /// milliseconds; unbounded where it is absent.
        "deadline_ms" => deadline_ms: Option<u64>, Lenient<Millis<1>>;
        /// Changes to the retry policy.
        "retry" => retry: Option<Retry>, Lenient<Retry>;
        /// Who has to ask for retries; everybody has them where it is absent.
        "retry_opt_in" => retry_opt_in: Option<RetryOptIn>, Lenient<RetryOptIn>;
        /// Changes to all breakers.
        "breaker" => breaker: Option<BreakerConfig>, Lenient<BreakerConfig>;
        /// Changes to how repeats are recognised, and how long they are remembered.
        "idempotency" => idempotency: Option<IdempotencyConfig>, Lenient<IdempotencyConfig>;
        /// Changes to the loop guard.
        "loops" => loops: Option<LoopConfig>, Lenient<LoopConfig>;
        /// Where `tool-guard` records calls, so that the records outlive it.
        "records" => records: Option<RecordsConfig>, Lenient<RecordsConfig>;
        /// By which members of `_meta` `tool-guard mcp` recognises the calls of clients that it does not
        /// know. The names are free.
        "identity" => identity: Option<Identities>, Lenient<Map<Lenient<Rule>>>;
        /// The effect of tools that declare none; `mutating` by default.
        "undeclared_effect" => undeclared_effect: Option<Effect>, Lenient<Word<Effect>>;
        /// Defaults for the tools under `tools`. Tools that are not listed use the sections of the
        /// stack.
        "defaults" => defaults: Option<At<Tool>>, Lenient<Located<Tool>>;
        /// The tools, each by a name that the others use for it.
        "tools" => tools: Option<Tools>, Lenient<Map<Lenient<Located<Tool>>>>;
    }
}

/// Rules by the operator's names for them; those that could not be read are only names.
pub(super) type Identities = Vec<(Box<str>, Option<IdentityConfig>)>;

/// Stages by the names of tools; those that could not be read are only names.
pub(super) type Stages = Vec<(Box<str>, Option<Stage>)>;

object! { strict
    /// Which calls are guarded: a tool's own stage decides, else its effect's, else the general one.
    struct RolloutForm {
        /// What the stack does with calls; `enforce` where it is absent.
        "mode" => mode: Option<Mode>, Lenient<Word<Mode>>;
        /// The share of sessions that this holds for; all where it is absent.
        "percent" => percent: Option<f64>, Lenient<Percent>;
        /// What the stack does with all other calls; `off` where it is absent.
        "others" => others: Option<Mode>, Lenient<Word<Mode>>;
        /// For tools that only read.
        "read_only" => read_only: Option<Stage>, Lenient<StageShape>;
        /// For tools that a repeat changes nothing with.
        "idempotent" => idempotent: Option<Stage>, Lenient<StageShape>;
        /// For all other tools, those of undeclared effect included.
        "mutating" => mutating: Option<Stage>, Lenient<StageShape>;
        /// For single tools, by their names as logs show them.
        "tools" => tools: Option<Stages>, Lenient<Map<Lenient<StageShape>>>;
    }
}

object! { strict
    /// A mode for a share of the sessions, and one for the others.
    struct StageForm {
        /// What the stack does with calls; `enforce` where it is absent.
        "mode" => mode: Option<Mode>, Lenient<Word<Mode>>;
        /// The share of sessions that this holds for; all where it is absent.
        "percent" => percent: Option<f64>, Lenient<Percent>;
        /// What the stack does with all other calls; `off` where it is absent.
        "others" => others: Option<Mode>, Lenient<Word<Mode>>;
    }
}

/// A stage, or only its mode.
pub(crate) struct StageShape;

impl Shape for StageShape {
    type Value = Stage;

    fn expected() -> Cow<'static, str> {
        format!("{}, or an object with `mode`, `percent` and `others`", Word::<Mode>::expected())
            .into()
    }

    fn read(node: &Node<'_>, faults: &mut Faults) -> Option<Stage> {
        match node.source.kind() {
            Kind::String => Word::<Mode>::read(node, faults).map(Stage::all),
            Kind::Object => {
                let form = StageForm::read(node, faults)?;
                Some(stage(form.mode, form.percent, form.others))
            }
            _ => node.refuse(Self::expected(), faults),
        }
    }

    with_schema! {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let (word, form) = (Word::<Mode>::schema(generator), StageForm::schema(generator));
        json_schema!({ "anyOf": [word, form] })
    }
    }
}

pub(super) fn stage(mode: Option<Mode>, percent: Option<f64>, others: Option<Mode>) -> Stage {
    let mode = mode.unwrap_or_default();
    match percent.and_then(Share::percent) {
        None => Stage::all(mode),
        Some(share) => Stage::part(mode, share, others.unwrap_or(Mode::Off)),
    }
}

object! { strict
    /// Restricts retries to the calls and agents that opt in.
    pub struct RetryOptIn {
        /// The agents that have asked for them, by the names that their calls carry.
        "agents" => agents: Option<Vec<Box<str>>>, Lenient<List<Name>>;
        /// Whether a call asks for them by a retry policy of its own; false.
        "calls" => calls: Option<bool>, Lenient<Flag>;
    }
}

object! { strict
    /// Changes to all breakers. A tool's own settings win over those of its effect, and these over the
    /// general ones; what is said nowhere stays as the stack has it.
    pub struct BreakerConfig {
        /// Failures in a row that open one; 5, and 8 for tools that only read.
        "consecutive" => consecutive: Option<u32>, Lenient<Count<10_000>>;
        /// The share of failures that opens one; 0.5, and 0.3 for tools declared as mutating.
        "failure_rate" => failure_rate: Option<f64>, Lenient<Rate>;
        /// How many calls rates are of; 20.
        "window" => window: Option<u32>, Lenient<Count<10_000>>;
        /// Fewer calls than this have no rate; 10.
        "min_calls" => min_calls: Option<u32>, Lenient<Count<10_000>>;
        /// What is older than this counts for nothing, in milliseconds; 120,000.
        "rolling_ms" => rolling_ms: Option<u64>, Lenient<Millis<1>>;
        /// How long one stays open, in milliseconds; 30,000, for tools that only read 20,000, for
        /// those declared as mutating 15,000.
        "cooldown_ms" => cooldown_ms: Option<u64>, Lenient<Millis<1>>;
        /// Probes in flight at once; 1.
        "max_probes" => max_probes: Option<u32>, Lenient<Count<10_000>>;
        /// Probes that must succeed for one to close; 2.
        "successes_to_close" => successes_to_close: Option<u32>, Lenient<Count<10_000>>;
        /// Whether rate limits, such as a 429, are failures; true.
        "count_rate_limits" => count_rate_limits: Option<bool>, Lenient<Flag>;
        /// What breakers do with their decisions; `enforce`.
        "mode" => mode: Option<BreakerMode>, Lenient<Word<BreakerMode>>;
        /// Whether breakers start in FORCED_OPEN; false.
        "forced_open" => forced_open: Option<bool>, Lenient<Flag>;
        /// How many breakers are kept; 10,000.
        "capacity" => capacity: Option<u32>, Lenient<Count<1_000_000>>;
        /// For tools that only read.
        "read_only" => read_only: Option<BreakerRules>, Lenient<BreakerRules>;
        /// For tools that a repeat changes nothing with.
        "idempotent" => idempotent: Option<BreakerRules>, Lenient<BreakerRules>;
        /// For tools that are declared mutating. Tools of undeclared effect use the general settings.
        "mutating" => mutating: Option<BreakerRules>, Lenient<BreakerRules>;
    }
}

object! { strict
    /// When breakers open for calls of one declared effect, and for how long.
    pub struct BreakerRules {
        /// Failures in a row that open one.
        "consecutive" => consecutive: Option<u32>, Lenient<Count<10_000>>;
        /// The share of failures that opens one.
        "failure_rate" => failure_rate: Option<f64>, Lenient<Rate>;
        /// How long one stays open, in milliseconds.
        "cooldown_ms" => cooldown_ms: Option<u64>, Lenient<Millis<1>>;
    }
}

/// What breakers do with their decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerMode {
    /// They refuse calls.
    Enforce,
    /// They count and report, and let every call through.
    Shadow,
    /// They do nothing.
    Disabled,
}

/// The most bytes that a bound of records can be set to: 1 GiB.
const MAX_BYTES: u32 = 1 << 30;

object! { strict
    /// Changes to how repeats are recognised, and how long they are remembered.
    pub struct IdempotencyConfig {
        /// From what keys are derived for calls that have none; `step`.
        "derived_keys" => derived_keys: Option<DeriveKeys>, Lenient<Word<DeriveKeys>>;
        /// What becomes of a key that comes again with other params; `reject`.
        "conflicts" => conflicts: Option<Conflicts>, Lenient<Word<Conflicts>>;
        /// How many records are kept in memory; 25,000.
        "capacity" => capacity: Option<u32>, Lenient<Count<16_777_216>>;
        /// How many callers may wait for one call; 1,024.
        "max_waiters" => max_waiters: Option<u32>, Lenient<Count<1_048_576>>;
        /// How long a call waits for another's run with its key, in milliseconds; 30,000.
        "max_wait_ms" => max_wait_ms: Option<u64>, Lenient<Millis<1>>;
        /// How many bytes of one answer are kept; 1 MiB. A duplicate of a call with a larger one gets
        /// an error that says that the call has ended.
        "max_record_bytes" => max_record_bytes: Option<u32>, Lenient<Count<MAX_BYTES>>;
        /// How many bytes of answers all records in memory keep together; 64 MiB.
        "max_kept_bytes" => max_kept_bytes: Option<u32>, Lenient<Count<MAX_BYTES>>;
        /// How long successes are replayed, in milliseconds; 24 h.
        "done_ttl_ms" => done_ttl_ms: Option<u64>, Lenient<Millis<1>>;
        /// How long failures are replayed, in milliseconds; 5 min, in `tool-guard` not at all. A failure of a
        /// mutating call that may have run is kept as a success is.
        "failed_ttl_ms" => failed_ttl_ms: Option<u64>, Lenient<Millis<1>>;
        /// The lease of a call in flight, in milliseconds; 2 min, in `tool-guard` 30 s.
        "inflight_ttl_ms" => inflight_ttl_ms: Option<u64>, Lenient<Millis<1>>;
        /// How long a mutating call of unknown outcome bars a repeat, in milliseconds; 24 h, in
        /// `tool-guard` 30 days.
        "unknown_ttl_ms" => unknown_ttl_ms: Option<u64>, Lenient<Millis<1>>;
        /// How long the end of a call that was cut off waits for its repeat, in milliseconds; 60 s.
        "cut_off_grace_ms" => cut_off_grace_ms: Option<u64>, Lenient<Millis<1>>;
    }
}

/// From what keys are derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeriveKeys {
    /// From nothing.
    Off,
    /// To pick up calls that were cut off.
    CutOff,
    /// From the call's step.
    Step,
    /// From session, tool and params: every repeat is answered from the record.
    Session,
}

/// What becomes of a key that comes again with other params.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Conflicts {
    /// The call is refused.
    Reject,
    /// It is taken for another call.
    Independent,
}

/// What becomes of loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoopMode {
    /// Nothing is counted.
    Off,
    /// Adds a note for the model, and refuses nothing.
    Note,
    /// Refuses loops; for callers that do not say when a turn begins, only calls that failed
    /// identically.
    Block,
    /// Applies the limits also to callers that do not say when a turn begins.
    Strict,
}

object! { strict
    /// Changes to the loop guard.
    pub struct LoopConfig {
        /// Whether loops are looked for; true.
        "enabled" => enabled: Option<bool>, Lenient<Flag>;
        /// What becomes of loops; block.
        "mode" => mode: Option<LoopMode>, Lenient<Word<LoopMode>>;
        /// Identical failing calls that end a loop; 2.
        "max_identical" => max_identical: Option<u32>, Lenient<Count<1000>>;
        /// Failures of any kind that end a turn; 5. For callers that do not say when a turn begins they
        /// only cause a warning, unless the mode is `strict`.
        "max_failures_per_turn" => max_failures_per_turn: Option<u32>, Lenient<Count<1000>>;
        /// Whether repeated answers, polls without end and cycles are looked for beside failures: a warning,
        /// and a refusal at twice as many. Off in a stack; `tool-guard mcp` has it on in the modes `note` and
        /// `block`, and only warns.
        "signals" => signals: Option<bool>, Lenient<Flag>;
        /// How long a failure counts for callers that do not name the turn, in milliseconds; 60,000.
        "memory_ms" => memory_ms: Option<u64>, Lenient<Millis<1>>;
        /// Where malformed calls are written down as JSON lines, with the model that made them: a file;
        /// `~/` is the home folder. Nowhere where it is absent.
        "log_path" => log_path: Option<Box<str>>, Lenient<Name>;
    }
}

words! {
    Mode { Off = "off", Shadow = "shadow", Enforce = "enforce" }
    BreakerMode { Enforce = "enforce", Shadow = "shadow", Disabled = "disabled" }
    LoopMode { Off = "off", Note = "note", Block = "block", Strict = "strict" }
    DeriveKeys { Off = "off", CutOff = "cut_off" | "cutOff", Step = "step", Session = "session" }
    Conflicts { Reject = "reject", Independent = "independent" }
}
