//! The current rollout in the form of a configuration, for the admin service.
use super::{Rollout, Share, Stage};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::collections::BTreeMap;
use tr_core::Effect;

/// `"off"`, `"observe"`, `"shadow"` or `"enforce"`.
impl Share {
    /// In percent, without what binary fractions leave behind.
    fn in_percent(self) -> f64 {
        (self.0 * 1e11).round() / 1e9
    }
}

impl Stage {
    fn members<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("mode", &self.mode)?;
        if self.share != Share::ALL {
            map.serialize_entry("percent", &self.share.in_percent())?;
            map.serialize_entry("others", &self.others)?;
        }
        Ok(())
    }
}

/// A mode, or `mode`, `percent` and `others`.
impl Serialize for Stage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.share == Share::ALL {
            return self.mode.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        self.members(&mut map)?;
        map.end()
    }
}

/// As the section `rollout` of a configuration has it.
impl Serialize for Rollout {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.general.members(&mut map)?;
        for (name, effect) in [
            ("read_only", Effect::ReadOnly),
            ("idempotent", Effect::Idempotent),
            ("mutating", Effect::Mutating),
        ] {
            if let Some(stage) = &self.effects[effect as usize] {
                map.serialize_entry(name, stage)?;
            }
        }
        if !self.tools.is_empty() {
            map.serialize_entry("tools", &self.tools.iter().collect::<BTreeMap<_, _>>())?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::{super::Mode, *};
    use serde_json::json;

    #[test]
    fn what_holds_is_said_as_a_configuration_says_it() {
        assert_eq!(serde_json::to_value(Rollout::default()).unwrap(), json!({ "mode": "enforce" }));
        let part =
            |percent| Stage::part(Mode::Enforce, Share::percent(percent).unwrap(), Mode::Shadow);
        let rollout = Rollout::new(part(7.0))
            .effect(Effect::ReadOnly, Mode::Enforce)
            .effect(Effect::Mutating, part(0.1))
            .tool("pay", Mode::Off)
            .tool("search", Mode::Observe)
            .tool("message.send", part(0.0));
        let said = json!({
            "mode": "enforce", "percent": 7.0, "others": "shadow",
            "read_only": "enforce",
            "mutating": { "mode": "enforce", "percent": 0.1, "others": "shadow" },
            "tools": {
                "message.send": { "mode": "enforce", "percent": 0.0, "others": "shadow" },
                "pay": "off",
                "search": "observe",
            },
        });
        assert_eq!(serde_json::to_value(&rollout).unwrap(), said);
        let config = json!({ "rollout": rollout }).to_string();
        let config = crate::stack::Config::from_json(&config).unwrap();
        assert_eq!(config.rollout, Some(rollout));
    }
}
