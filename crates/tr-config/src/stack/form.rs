//! The form of a configuration, as it is written.
use super::{
    breaker::BreakerConfig,
    check::{Relations, relations},
    guard::{IdentityConfig, RecordsConfig, Rule, UpstreamConfig},
    idempotency::IdempotencyConfig,
    limit::{Limit, OrNone},
    loops::LoopConfig,
    preset::Preset,
    retry::{self, RetryForm, RetryOptIn},
    sessions::SessionsConfig,
    telemetry::TelemetryConfig,
};
use crate::{
    catalog::{
        form::{Tool, Tools},
        shape::{At, DAY, Lenient, Located},
    },
    rollout::{Mode, Share, Stage},
};
use std::borrow::Cow;
use tr_core::Effect;
use tr_wire::read::{
    Faults, Flag, Kind, Map, Node, Percent, Shape, Time, Word, object, with_schema, words,
};

with_schema! {
    use tr_wire::read::schemars::{Schema, SchemaGenerator, json_schema};
}

object! { strict
    /// How a stack of reliability layers is set up. What is absent stays as the stack has it.
    struct ConfigForm {
        ignored "$schema";
        /// From which settings the stack starts: those of `tool_reliability`, or those of `error_handling`
        /// or `utee` for attempts, retries and breakers. The other keys are changes to them.
        "preset" => preset: Option<Preset>, Lenient<Word<Preset>>;
        /// Which calls are guarded.
        "rollout" => rollout: Option<RolloutForm>, Lenient<RolloutForm>;
        /// Whether tools' failures are put into the contract's words, and their answers looked into for
        /// failures.
        "normalise" => normalise: Option<bool>, Lenient<Flag>;
        /// Whether tools' answers are looked into for failures, such as `ok: false`; only where failures are
        /// normalised. Tools may say it for themselves. `tool-guard mcp` and `turn` do not look.
        "silent_failures" => silent_failures: Option<bool>, Lenient<Flag>;
        /// How long one attempt may take where its tool says nothing, in milliseconds; or `none`.
        "attempt_timeout_ms" => attempt_timeout_ms: Option<Limit<u64>>, Lenient<OrNone<Time<1, DAY>>>;
        /// How long an answer in chunks may wait for its next chunk, where its tool says nothing, in
        /// milliseconds; as long as the attempt may take where it is absent.
        "idle_timeout_ms" => idle_timeout_ms: Option<u64>, Lenient<Time<1, DAY>>;
        /// How long a call that brings no deadline may take, with all its attempts and waits, in
        /// milliseconds; unbounded where it is absent.
        "deadline_ms" => deadline_ms: Option<u64>, Lenient<Time<1, DAY>>;
        /// Changes to the retry policy.
        "retry" => retry: Option<RetryForm>, Lenient<RetryForm>;
        /// Who has to ask for retries; everybody has them where it is absent.
        "retry_opt_in" => retry_opt_in: Option<RetryOptIn>, Lenient<RetryOptIn>;
        /// Changes to all breakers.
        "breaker" => breaker: Option<BreakerConfig>, Lenient<BreakerConfig>;
        /// Changes to how repeats are recognised, and how long they are remembered.
        "idempotency" => idempotency: Option<IdempotencyConfig>, Lenient<IdempotencyConfig>;
        /// Changes to the loop guard.
        "loops" => loops: Option<LoopConfig>, Lenient<LoopConfig>;
        /// What is reported of calls, under which names, and where.
        "telemetry" => telemetry: Option<TelemetryConfig>, Lenient<TelemetryConfig>;
        /// Where `tool-guard` records calls, so that the records outlive it.
        "records" => records: Option<RecordsConfig>, Lenient<RecordsConfig>;
        /// Which sessions of agents the stack keeps whole; none where it is absent. `tool-guard mcp` and
        /// `turn` keep none.
        "sessions" => sessions: Option<SessionsConfig>, Lenient<SessionsConfig>;
        /// By which members of `_meta` `tool-guard mcp` recognises the calls of clients that it does not
        /// know. The names are free.
        "identity" => identity: Option<Identities>, Lenient<Map<Lenient<Rule>>>;
        /// What `tool-guard mcp` knows of the server at `--upstream`.
        "upstream" => upstream: Option<UpstreamConfig>, Lenient<UpstreamConfig>;
        /// The effect of tools that declare none.
        "undeclared_effect" => undeclared_effect: Option<Effect>, Lenient<Word<Effect>>;
        /// Defaults for the tools under `tools`. Tools that are not listed use the sections of the
        /// stack.
        "defaults" => defaults: Option<At<Tool>>, Lenient<Located<Tool>>;
        /// The tools, each by a name that the others use for it.
        "tools" => tools: Option<Tools>, Lenient<Map<Lenient<Located<Tool>>>>;
    }
}

impl ConfigForm {
    fn relations(&self) -> Relations<'_> {
        let (base, cap) = retry::times(self.retry.as_ref());
        let (preset_base, preset_cap) = self.preset.unwrap_or_default().delays();
        let delays = (base.unwrap_or(preset_base), cap.map_or(preset_cap, Limit::get));
        Relations { breaker: self.breaker.as_ref(), delays, is_cap_set: cap.is_some() }
    }
}

/// A whole configuration, whose settings do not contradict each other.
pub(super) struct CheckedConfig;

impl Shape for CheckedConfig {
    type Value = ConfigForm;

    fn expected() -> Cow<'static, str> {
        ConfigForm::expected()
    }

    fn read(node: &Node<'_>, faults: &mut Faults) -> Option<ConfigForm> {
        let form = ConfigForm::read(node, faults)?;
        relations(&form.relations(), node, faults);
        Some(form)
    }

    with_schema! {
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        ConfigForm::schema(generator)
    }
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

words! {
    Mode { Off = "off", Observe = "observe", Shadow = "shadow", Enforce = "enforce" }
}
