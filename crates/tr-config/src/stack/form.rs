//! The form of a configuration, as it is written.
use super::{
    breaker::BreakerConfig,
    guard::{IdentityConfig, RecordsConfig, Rule, UpstreamConfig},
    idempotency::IdempotencyConfig,
    limit::OrNone,
    loops::LoopConfig,
    preset::Preset,
    retry::{RetryOptIn, RetrySettings},
    sessions::SessionsConfig,
    telemetry::TelemetryConfig,
};
use crate::{
    catalog::{ToolCatalog, form::Catalog, read, shape::DAY},
    rollout::{Mode, Rollout, Share, Stage},
};
use std::time::Duration;
use tr_core::Effect;
use tr_wire::read::{
    Flag, Kind, Lenient, Map, Members, OrDefault, Percent, Span, Word, object, shape, words,
};

object! { strict
    /// How a stack of reliability layers is set up. What is absent stays as the stack has it.
    root struct Config {
        ignored "$schema";
        /// The settings that the other keys change. `error_handling` and `utee` set attempts, retries and
        /// breakers.
        "preset" => preset: Option<Preset>, Lenient<Word<Preset>> = "tool_reliability";
        /// Which calls are guarded.
        "rollout" => rollout: Option<Rollout>, Lenient<Rules>;
        /// Normalise tools' failures, and look for failures in their answers.
        "normalise" => normalise: Option<bool>, Lenient<Flag> = true;
        /// Look for failures in tools' answers, such as `ok: false`, if `normalise` is on. A tool's own
        /// setting wins. Not in `tool-guard mcp` and `turn`.
        "silent_failures" => silent_failures: Option<bool>, Lenient<Flag> = true;
        /// The limit of one attempt of a tool without its own, in milliseconds; or `none`.
        "attempt_timeout_ms" => attempt_timeout: Option<Option<Duration>>, Lenient<OrNone<Span<1, DAY>>> = 10_000;
        /// The limit between two chunks of an answer, in milliseconds. Default: the attempt's limit.
        "idle_timeout_ms" => idle_timeout: Option<Duration>, Lenient<Span<1, DAY>>;
        /// The limit of a call without a deadline, with all attempts and waits, in milliseconds. Default:
        /// none.
        "deadline_ms" => deadline: Option<Duration>, Lenient<Span<1, DAY>>;
        /// Changes to the retry policy.
        "retry" => retry: RetrySettings, OrDefault<RetrySettings>;
        /// Who has to ask for retries; everybody has them where it is absent.
        "retry_opt_in" => retry_opt_in: RetryOptIn, OrDefault<RetryOptIn>;
        /// Changes to all breakers.
        "breaker" => breaker: BreakerConfig, OrDefault<BreakerConfig>;
        /// Changes to how repeats are recognized, and how long they are remembered.
        "idempotency" => idempotency: IdempotencyConfig, OrDefault<IdempotencyConfig>;
        /// Changes to the loop guard.
        "loops" => loops: LoopConfig, OrDefault<LoopConfig>;
        /// What is reported of calls, under which names, and where.
        "telemetry" => telemetry: TelemetryConfig, OrDefault<TelemetryConfig>;
        /// Where `tool-guard` records calls, so that the records outlive it.
        "records" => records: RecordsConfig, OrDefault<RecordsConfig>;
        /// Which sessions of agents the stack keeps whole; none where it is absent. `tool-guard mcp` and
        /// `turn` keep none.
        "sessions" => sessions: Option<SessionsConfig>, Lenient<SessionsConfig>;
        /// By which members of `_meta` `tool-guard mcp` recognizes the calls of clients that it does not
        /// know. The names are free.
        "identity" => identity: Vec<(Box<str>, IdentityConfig)>, OrDefault<Map<Rule>>;
        /// What `tool-guard mcp` knows of the server at `--upstream`.
        "upstream" => upstream: UpstreamConfig, OrDefault<UpstreamConfig>;
        ..
        /// What is known of single tools.
        catalog: ToolCatalog, Catalog => read::build;
    }
}

impl Config {
    /// The names of all sections.
    pub fn sections() -> impl Iterator<Item = &'static str> {
        <Self as Members>::names().into_owned().into_iter().filter(|name| *name != "$schema")
    }
}

/// Pairs what is said of each effect with the effect.
pub fn by_effect<T>(
    read_only: Option<T>,
    idempotent: Option<T>,
    mutating: Option<T>,
) -> impl Iterator<Item = (Effect, T)> {
    let all = [
        (Effect::ReadOnly, read_only),
        (Effect::Idempotent, idempotent),
        (Effect::Mutating, mutating),
    ];
    all.into_iter().filter_map(|(effect, said)| Some((effect, said?)))
}

object! { strict
    /// Which calls are guarded: a tool's own stage decides, else its effect's, else the general one.
    struct RolloutForm {
        /// For tools that only read.
        "read_only" => read_only: Option<Stage>, Lenient<StageShape>;
        /// For idempotent tools.
        "idempotent" => idempotent: Option<Stage>, Lenient<StageShape>;
        /// For all other tools.
        "mutating" => mutating: Option<Stage>, Lenient<StageShape>;
        /// For single tools, by their names as logs show them.
        "tools" => tools: Vec<(Box<str>, Stage)>, OrDefault<Map<StageShape>>;
        /// What the stack does with calls. Default: `enforce`.
        "mode" => mode: Option<Mode>, Lenient<Word<Mode>> = "enforce";
        /// The share of sessions in `mode`. Default: all.
        "percent" => percent: Option<f64>, Lenient<Percent> = 100;
        /// The mode of all other calls. Default: `off`.
        "others" => others: Option<Mode>, Lenient<Word<Mode>> = "off";
    }
}

object! { strict
    /// A mode for a share of the sessions, and one for the others.
    struct StageForm {
        /// What the stack does with calls. Default: `enforce`.
        "mode" => mode: Option<Mode>, Lenient<Word<Mode>>;
        /// The share of sessions in `mode`. Default: all.
        "percent" => percent: Option<f64>, Lenient<Percent>;
        /// The mode of all other calls. Default: `off`.
        "others" => others: Option<Mode>, Lenient<Word<Mode>>;
    }
}

shape! {
    /// A stage, or only its mode.
    pub(crate) StageShape => Stage,
    format!("{}, or an object with `mode`, `percent` and `others`", Word::<Mode>::expected()),
    |node, faults| match node.source.kind() {
        Kind::String => Word::<Mode>::read(node, faults).map(Stage::all),
        Kind::Object => StageForm::read(node, faults).map(|form| stage(form.mode, form.percent, form.others)),
        _ => node.refuse(Self::expected(), faults),
    },
    |generator| { "anyOf": [(Word::<Mode>::schema(generator)), (StageForm::schema(generator))] }
}

fn stage(mode: Option<Mode>, percent: Option<f64>, others: Option<Mode>) -> Stage {
    let mode = mode.unwrap_or_default();
    match percent.and_then(Share::percent) {
        None => Stage::all(mode),
        Some(share) => Stage::part(mode, share, others.unwrap_or(Mode::Off)),
    }
}

shape! {
    Rules as RolloutForm => Rollout,
    |node, faults| {
        let form = RolloutForm::read(node, faults)?;
        let effects = by_effect(form.read_only, form.idempotent, form.mutating);
        let general = stage(form.mode, form.percent, form.others);
        let rollout = effects.fold(Rollout::new(general), |rollout, (effect, stage)| {
            rollout.effect(effect, stage)
        });
        Some(form.tools.into_iter().fold(rollout, |rollout, (tool, stage)| rollout.tool(tool, stage)))
    }
}

words! {
    Mode { Off = "off", Observe = "observe", Shadow = "shadow", Enforce = "enforce" }
}
