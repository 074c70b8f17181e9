//! The members of a JSON object as they are written; of several with one name, all.
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::{borrow::Cow, fmt};

/// The first so many members, and how many more there are.
#[derive(Default)]
pub(crate) struct Members<'j, const MOST: usize>(
    pub(crate) Vec<(Cow<'j, str>, &'j RawValue)>,
    pub(crate) usize,
);

impl<'de, const MOST: usize> Deserialize<'de> for Members<'de, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object<const MOST: usize>;

        impl<'de, const MOST: usize> Visitor<'de> for Object<MOST> {
            type Value = Members<'de, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut members = Members(Vec::new(), 0);
                while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                    if members.0.len() < MOST {
                        members.0.push((name, map.next_value()?));
                    } else {
                        map.next_value::<IgnoredAny>()?;
                        members.1 += 1;
                    }
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Object)
    }
}
