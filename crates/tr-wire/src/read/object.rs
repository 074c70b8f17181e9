//! Objects: members taken one by one, or all of them as a map.
use super::{
    At, Kind, Node, Source,
    shape::{Shape, Write},
};
use crate::{
    extra::Extra,
    fault::{EnvelopeFault, Faults},
    suggest::closest,
};
use serde::{Serialize, Serializer};
use std::{borrow::Cow, collections::HashSet, marker::PhantomData};

#[cfg(feature = "schema")]
use schemars::{Schema, SchemaGenerator, json_schema};

/// An object that is being read: what is not taken is left over.
#[derive(Debug)]
pub struct Object<'a> {
    at: &'a At<'a>,
    offset: usize,
    members: Vec<Member<'a>>,
    /// All names that its reader will ask for.
    known: &'static [&'static str],
    /// Whether `null` stands for an optional member that is not there.
    nulls: bool,
}

#[derive(Debug)]
struct Member<'a> {
    name: Cow<'a, str>,
    source: Source<'a>,
    taken: bool,
}

impl<'a> Object<'a> {
    pub fn open(
        node: &Node<'a>,
        known: &'static [&'static str],
        nulls: bool,
        faults: &mut Faults,
    ) -> Option<Self> {
        if node.source.kind() != Kind::Object {
            return node.refuse(node.source.object_name(), faults);
        }
        let Ok(found) = node.source.members() else {
            return node.refuse_found(
                "names in valid Unicode",
                "a lone surrogate in a name",
                faults,
            );
        };
        let mut seen = HashSet::with_capacity(found.len());
        let mut members = Vec::with_capacity(found.len());
        for (name, source) in found {
            let taken = !seen.insert(name.clone());
            if taken {
                let pointer = At::Member(node.at, &name).to_string();
                faults.push(EnvelopeFault::duplicate(pointer).at(source.offset(faults)));
            }
            members.push(Member { name, source, taken });
        }
        Some(Self { at: node.at, offset: node.source.offset(faults), members, known, nulls })
    }

    /// Reads the member of this name.
    pub fn field<S: Shape>(&mut self, name: &'static str, faults: &mut Faults) -> Option<S::Value> {
        let Some(member) = self.members.iter_mut().find(|member| member.name == name) else {
            return S::absent().or_else(|| self.missing(name, S::expected(), faults));
        };
        // It is left over, so that it is written again.
        if self.nulls
            && !S::TAKES_NULL
            && member.source.kind() == Kind::Null
            && let Some(absent) = S::absent()
        {
            return Some(absent);
        }
        member.taken = true;
        S::read(&Node::new(&At::Member(self.at, name), member.source), faults)
    }

    /// Reads a member that can have one value only.
    pub fn constant(
        &mut self,
        name: &'static str,
        wanted: &'static str,
        faults: &mut Faults,
    ) -> Option<()> {
        let expected = format!("{wanted:?}");
        let Some(member) = self.members.iter_mut().find(|member| member.name == name) else {
            return self.missing(name, expected.into(), faults);
        };
        member.taken = true;
        if member.source.text().as_deref() == Some(wanted) {
            return Some(());
        }
        Node::new(&At::Member(self.at, name), member.source).refuse_word(expected, faults)
    }

    fn missing<T>(
        &self,
        name: &'static str,
        expected: Cow<'static, str>,
        faults: &mut Faults,
    ) -> Option<T> {
        let pointer = At::Member(self.at, name).to_string();
        let mut fault = EnvelopeFault::new(pointer, expected, "nothing").at(self.offset);
        let strangers = self.members.iter().map(|member| &*member.name);
        let strangers = strangers.filter(|name| !self.known.contains(name));
        if let Some(like) = closest(name, strangers) {
            fault = fault.hint(format!("{like:?} is there; did you mean {name:?}?"));
        }
        faults.push(fault);
        None
    }

    /// All members, for an object whose names mean nothing to the form.
    pub(crate) fn into_members(self) -> Vec<(Cow<'a, str>, Source<'a>)> {
        self.members.into_iter().map(|member| (member.name, member.source)).collect()
    }

    /// Keeps the unknown members.
    #[must_use]
    pub fn rest(self) -> Extra {
        let left = self.members.into_iter().filter(|member| !member.taken);
        left.map(|member| (member.name.into(), member.source.json())).collect()
    }

    /// Reports the unknown members.
    pub fn refuse_rest(self, faults: &mut Faults) {
        let is_unknown = |member: &&Member<'_>| !self.known.contains(&&*member.name);
        for member in self.members.iter().filter(is_unknown) {
            let at = At::Member(self.at, &member.name);
            let found = format!("the unknown key {:?}", member.name);
            let mut fault = Node::new(&at, member.source).fault("a known key", found, faults);
            if let Some(like) = closest(&member.name, self.known.iter().copied()) {
                fault = fault.hint(format!("did you mean {like:?}?"));
            }
            faults.push(fault);
        }
    }
}

/// An object of any names, whose values have one shape.
#[derive(Debug)]
pub struct Map<S>(PhantomData<S>);

impl<S: Shape> Shape for Map<S> {
    type Value = Vec<(Box<str>, S::Value)>;

    fn expected() -> Cow<'static, str> {
        "an object".into()
    }

    fn read(node: &Node<'_>, faults: &mut Faults) -> Option<Self::Value> {
        let members = Object::open(node, &[], false, faults)?.into_members();
        let read = |(name, source): (Cow<'_, str>, _)| {
            let value = S::read(&Node::new(&At::Member(node.at, &name), source), faults);
            Some((name.into(), value?))
        };
        // All of them first: each may have a fault.
        let values: Vec<_> = members.into_iter().map(read).collect();
        values.into_iter().collect()
    }

    #[cfg(feature = "schema")]
    fn schema(generator: &mut SchemaGenerator) -> Schema {
        let values = S::schema(generator);
        json_schema!({ "type": "object", "additionalProperties": values })
    }
}

impl<S: Write> Write for Map<S> {
    fn write(value: &Self::Value) -> impl Serialize {
        Entries::<S>(value)
    }
}

struct Entries<'v, S: Shape>(&'v [(Box<str>, S::Value)]);

impl<S: Write> Serialize for Entries<'_, S> {
    fn serialize<T: Serializer>(&self, serializer: T) -> Result<T::Ok, T::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, S::write(value))))
    }
}
