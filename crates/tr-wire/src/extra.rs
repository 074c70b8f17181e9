//! Members that a form does not know.
use crate::read::Source;
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use tr_core::Json;

/// Members that a form does not know, kept as they came and written again.
///
/// A `null` for an optional member of the form counts as absent and is kept here too, so that what
/// is written is what was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extra(Vec<(Box<str>, Json)>);

impl Extra {
    /// The value of the member `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Json> {
        self.iter().find_map(|(own, value)| (own == name).then_some(value))
    }

    /// Adds a member, or replaces its value. A member that the form itself has is not written
    /// from here.
    pub fn set(&mut self, name: impl Into<Box<str>>, value: impl Into<Json>) {
        let (name, value) = (name.into(), value.into());
        match self.0.iter_mut().find(|(own, _)| *own == name) {
            Some(member) => member.1 = value,
            None => self.0.push((name, value)),
        }
    }

    /// The object with these members.
    pub(crate) fn to_json(&self) -> Json {
        Json::from_value(self).expect("names are strings")
    }

    /// Names and values in the order of the text.
    #[must_use]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &Json)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }
}

impl<'a> FromIterator<(Cow<'a, str>, Source<'a>)> for Extra {
    fn from_iter<I: IntoIterator<Item = (Cow<'a, str>, Source<'a>)>>(members: I) -> Self {
        Self(members.into_iter().map(|(name, value)| (name.into(), value.json())).collect())
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}
