//! Which calls a stack guards: a pure function of the call.
mod shown;

use std::collections::HashMap;
use tr_core::{Effect, ToolCall, ToolId, canonical::FingerprintKey, setters};

/// What the stack does with a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Mode {
    /// Leaves it alone.
    Off,
    /// Reports it with events, metrics and spans, and leaves it alone.
    Observe,
    /// Reports it, says what it would have done, and leaves it alone.
    Shadow,
    /// Guards it.
    #[default]
    Enforce,
}

impl Mode {
    /// The mode as configurations and logs spell it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        <Self as tr_wire::read::Words>::word(self)
    }
}

/// A share of all sessions.
///
/// A session is in it or not by a hash of its name alone: in every process, in every version, and
/// in every larger share too.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Share(f64);

impl Share {
    /// All sessions, and calls without one.
    pub const ALL: Self = Self(1.0);
    /// None.
    pub const NONE: Self = Self(0.0);

    /// So many percent of all sessions, from 0 to 100; `None` for any other number.
    #[must_use]
    pub fn percent(percent: f64) -> Option<Self> {
        (0.0..=100.0).contains(&percent).then_some(Self(percent / 100.0))
    }

    /// Whether this session is in it. A call without a session is in the share of all only.
    #[must_use]
    pub fn has(self, session: Option<&str>) -> bool {
        match session {
            _ if self == Self::ALL => true,
            _ if self == Self::NONE => false,
            Some(session) => position(session) < self.0,
            None => false,
        }
    }
}

/// Where a session stands between 0 and 1.
fn position(session: &str) -> f64 {
    const HASH: FingerprintKey = FingerprintKey::new(*b"tool-reliability rollout shares1");
    let hash = u64::from_le_bytes(HASH.fingerprint(session).to_bytes());
    // As many bits as a double holds exactly.
    (hash >> 11) as f64 / (1_u64 << 53) as f64
}

/// A mode for a share of the sessions, and one for the others. A [`Mode`] alone is for all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stage {
    mode: Mode,
    share: Share,
    others: Mode,
}

impl Stage {
    /// `mode` for all sessions.
    #[must_use]
    pub const fn all(mode: Mode) -> Self {
        Self { mode, share: Share::ALL, others: mode }
    }

    /// `mode` for a share of the sessions, `others` for the rest and for calls without a session.
    #[must_use]
    pub const fn part(mode: Mode, share: Share, others: Mode) -> Self {
        Self { mode, share, others }
    }

    /// The mode for this session.
    #[must_use]
    pub fn mode(&self, session: Option<&str>) -> Mode {
        if self.share.has(session) { self.mode } else { self.others }
    }

    fn uniform(&self) -> Option<Mode> {
        match self.share {
            Share::ALL => Some(self.mode),
            Share::NONE => Some(self.others),
            _ => (self.mode == self.others).then_some(self.mode),
        }
    }
}

impl From<Mode> for Stage {
    fn from(mode: Mode) -> Self {
        Self::all(mode)
    }
}

/// Which mode holds for which calls: a tool's own stage, else its effect's, else the general one.
///
/// By default all calls are [enforced](Mode::Enforce).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollout {
    general: Stage,
    /// Read-only, idempotent, mutating.
    effects: [Option<Stage>; 3],
    tools: HashMap<Box<str>, Stage>,
}

impl Default for Stage {
    fn default() -> Self {
        Self::all(Mode::default())
    }
}

impl Rollout {
    /// For all calls of which nothing else is said.
    #[must_use]
    pub fn new(general: impl Into<Stage>) -> Self {
        Self { general: general.into(), ..Self::default() }
    }

    setters! {
        /// For tools of this effect. Tools of undeclared effect count as mutating.
        fn effect(effect: Effect, stage: impl Into<Stage>) { effects[effect as usize] = Some(stage.into()) }

        /// For one tool, by its name as logs show it (`message.send`), or with its namespace
        /// (`agents.tools/message.send`), which is stronger.
        fn tool(name: impl Into<Box<str>>, stage: impl Into<Stage>) { tools.insert(name.into(), stage.into()) }
    }

    /// The mode for this call. The same session gets the same answer in every process.
    #[must_use]
    pub fn mode(&self, call: &ToolCall) -> Mode {
        let parts = call.parts();
        let stage = self.of_tool(&parts.tool).or(self.effects[parts.effect as usize]);
        stage.unwrap_or(self.general).mode(parts.context.session.as_deref())
    }

    fn of_tool(&self, tool: &ToolId) -> Option<Stage> {
        if self.tools.is_empty() {
            return None;
        }
        self.tools.get(tool.key().name).or_else(|| self.tools.get(tool.label())).copied()
    }

    /// The mode of all calls, if it is the same for all.
    #[must_use]
    pub fn uniform(&self) -> Option<Mode> {
        let mode = self.general.uniform()?;
        let others = self.effects.iter().flatten().chain(self.tools.values());
        others.map(Stage::uniform).all(|other| other == Some(mode)).then_some(mode)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use tr_core::Params;

    fn percent(percent: f64) -> Share {
        Share::percent(percent).unwrap()
    }

    fn call(session: &str) -> ToolCall {
        ToolCall::new("pay", Params::empty_object()).session(session)
    }

    #[test]
    fn the_place_of_a_session_never_changes() {
        // Another hash would move every session of every rollout under way.
        let shown =
            ["", "s-1", "s-2", "mcp-0123456789abcdef"].map(|s| format!("{:.6}", position(s)));
        assert_eq!(shown, ["0.309916", "0.384502", "0.496741", "0.923973"]);
    }

    #[test]
    fn a_share_is_from_nothing_to_all() {
        for bad in [-0.1, 100.1, f64::NAN, f64::INFINITY] {
            assert_eq!(Share::percent(bad), None, "{bad}");
        }
        assert!(Share::ALL.has(None) && !Share::NONE.has(None) && !percent(99.9).has(None));
    }

    #[test]
    fn a_tool_is_stronger_than_its_effect_and_a_namespace_than_none() {
        let rollout = Rollout::new(Mode::Off)
            .effect(Effect::ReadOnly, Mode::Shadow)
            .tool("message.send", Mode::Enforce)
            .tool("agents/message.send", Mode::Off);
        let mode = |namespace, effect| {
            let tool = ToolId::from_parts(namespace, "message", Some("send"));
            rollout.mode(&ToolCall::new(tool, Params::empty_object()).effect(effect))
        };
        assert_eq!(mode(None, Effect::ReadOnly), Mode::Enforce);
        assert_eq!(mode(Some("others"), Effect::Mutating), Mode::Enforce);
        assert_eq!(mode(Some("agents"), Effect::ReadOnly), Mode::Off);
        assert_eq!(rollout.mode(&call("s").effect(Effect::ReadOnly)), Mode::Shadow);
        // Nobody declared an effect.
        assert_eq!(rollout.mode(&ToolCall::new("x", Params::empty_object())), Mode::Off);
    }

    #[test]
    fn what_is_the_same_for_all_is_known_to_be() {
        let half = |others| Stage::part(Mode::Enforce, percent(50.0), others);
        assert_eq!(Rollout::default().uniform(), Some(Mode::Enforce));
        assert_eq!(Rollout::new(half(Mode::Enforce)).uniform(), Some(Mode::Enforce));
        assert_eq!(Rollout::new(half(Mode::Off)).uniform(), None);
        assert_eq!(
            Rollout::new(Stage::part(Mode::Off, Share::NONE, Mode::Shadow)).uniform(),
            Some(Mode::Shadow)
        );
        assert_eq!(Rollout::default().tool("x", Mode::Off).uniform(), None);
        assert_eq!(Rollout::default().effect(Effect::Mutating, half(Mode::Off)).uniform(), None);
    }

    proptest! {
        #[test]
        fn shares_are_nested_and_stable(session in ".*", small in 0.0..=100.0, large in 0.0..=100.0) {
            let (small, large) = if small <= large { (small, large) } else { (large, small) };
            let has = |share| percent(share).has(Some(&session));
            prop_assert!(!has(small) || has(large));
            prop_assert_eq!(has(small), has(small));
            let rollout = |share| Rollout::new(Stage::part(Mode::Enforce, percent(share), Mode::Off));
            let call = call(&session);
            prop_assert!(rollout(small).mode(&call) == Mode::Off || rollout(large).mode(&call) == Mode::Enforce);
        }

        #[test]
        fn the_mode_is_one_of_the_stage_that_is_strongest(session in ".*", share in 0.0..=100.0) {
            let stage = Stage::part(Mode::Shadow, percent(share), Mode::Enforce);
            let rollout = Rollout::new(Mode::Off).tool("pay", stage);
            let mode = rollout.mode(&call(&session));
            prop_assert_eq!(mode, if percent(share).has(Some(&session)) { Mode::Shadow } else { Mode::Enforce });
            if let Some(uniform) = rollout.uniform() {
                prop_assert_eq!(mode, uniform);
            }
        }
    }
}
