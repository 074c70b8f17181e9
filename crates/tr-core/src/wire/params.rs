//! Params, and the member `_utee` that is not for the tool.
use super::{
    fault::Faults,
    read::{At, Node, Shape, Source, Write},
    utee::Options,
};
use crate::{Json, Params};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// The member of params that is for us.
pub(crate) const UTEE: &str = "_utee";

/// A tool's params: an object whose `_utee`, if there is one, has its form.
pub(crate) struct CallParams;

impl Shape for CallParams {
    type Value = Params;

    fn expected() -> Cow<'static, str> {
        "an object".into()
    }

    fn read(node: &Node<'_>, faults: &mut Faults) -> Option<Params> {
        let Ok(members) = node.source.members() else {
            return node.refuse(Self::expected(), faults);
        };
        if let Some((_, source)) = members.iter().find(|(name, _)| name == UTEE) {
            Options::read(&Node::new(&At::Member(node.at, UTEE), *source), faults)?;
        }
        Some(node.source.json())
    }

    #[cfg(feature = "schema")]
    fn schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let options = generator.subschema_for::<Options>();
        schemars::json_schema!({ "type": "object", "properties": { UTEE: options } })
    }
}

impl Write for CallParams {
    fn write(params: &Params) -> impl Serialize {
        params
    }
}

/// Parts `_utee` from the other params; `None` if it is not there.
pub(crate) fn split(params: &Params) -> Option<(Params, Box<RawValue>)> {
    // An escape may hide the name; without either the text need not be read.
    if !params.get().contains(UTEE) && !params.get().contains("\\u") {
        return None;
    }
    let mut members = Source::Json(params.as_raw()).members().ok()?;
    let at = members.iter().position(|(name, _)| name == UTEE)?;
    let options = members.remove(at).1.raw()?;
    let rest = Json::from_value(&Rest(&members)).expect("names are strings");
    Some((rest, options.to_owned()))
}

struct Rest<'a>(&'a [(Cow<'a, str>, Source<'a>)]);

impl Serialize for Rest<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value.json())))
    }
}
