//! Objects: members taken one by one, or all of them as a map.
use super::{
    At, Kind, Node, Source, shape,
    shape::{Shape, Write},
};
use crate::{
    extra::Extra,
    fault::{EnvelopeFault, Faults},
    suggest::closest,
};
use serde::{Serialize, Serializer};
use std::{borrow::Cow, collections::HashSet, mem};

#[cfg(feature = "schema")]
use schemars::SchemaGenerator;

/// An object that is being read: what is not taken is left over.
#[derive(Debug)]
pub struct Object<'a> {
    at: &'a At<'a>,
    offset: usize,
    members: Vec<Member<'a>>,
    /// All names that its reader will ask for.
    known: Cow<'static, [&'static str]>,
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
        known: impl Into<Cow<'static, [&'static str]>>,
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
        let (offset, known) = (node.source.offset(faults), known.into());
        Some(Self { at: node.at, offset, members, known, nulls })
    }

    /// Reads the member of this name.
    pub fn field<S: Shape>(&mut self, name: &'static str, faults: &mut Faults) -> Option<S::Value> {
        let absent = S::absent();
        let may_be_absent = S::OPTIONAL || absent.is_some();
        let Some(member) = self.members.iter_mut().find(|member| member.name == name) else {
            if may_be_absent {
                return absent;
            }
            return self.missing(name, S::expected(), faults);
        };
        // It is left over, so that it is written again.
        let is_null = self.nulls && !S::TAKES_NULL && member.source.kind() == Kind::Null;
        if is_null && may_be_absent {
            return absent;
        }
        member.taken = true;
        S::read(&Node::new(&At::Member(self.at, name), member.source), faults)
    }

    /// Reads another member for a value that can be said in two ways, of which `first` is one.
    pub fn also<S: Shape<Value = Option<T>>, T>(
        &mut self,
        name: &'static str,
        first: &'static str,
        said: Option<Option<T>>,
        faults: &mut Faults,
    ) -> Option<Option<T>> {
        let other = self.field::<S>(name, faults)?;
        let member = self.members.iter().find(|member| member.name == name);
        if let (Some(Some(_)), Some(_), Some(member)) = (&said, &other, member) {
            let at = At::Member(self.at, name);
            let node = Node::new(&at, member.source);
            let found = format!("a setting that `{first}` has too");
            node.refuse_found::<()>("each setting once", found, faults);
        }
        said.map(|said| said.or(other))
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

    /// Keeps the unknown members.
    pub fn rest(&mut self) -> Extra {
        let left = mem::take(&mut self.members).into_iter().filter(|member| !member.taken);
        left.map(|member| (member.name, member.source)).collect()
    }

    /// Reports the unknown members.
    pub fn refuse_rest(self, faults: &mut Faults) {
        let is_unknown = |member: &&Member<'_>| !self.known.contains(&&*member.name);
        for member in self.members.iter().filter(is_unknown) {
            let at = At::Member(self.at, &member.name);
            let found = format!("the unknown key {:?}", member.name);
            let fault = Node::new(&at, member.source).fault("a known key", found, faults);
            faults.push(fault.meant(&member.name, self.known.iter().copied()));
        }
    }
}

/// A shape whose members may stand beside others.
pub trait Members: Shape {
    /// What it does not know is refused.
    const CLOSED: bool = true;
    /// `null` stands for an optional member that is not there.
    const TAKES_NULLS: bool = false;
    /// Its schema stands where it is used, and has no name.
    const INLINE: bool = false;

    fn names() -> Cow<'static, [&'static str]>;

    fn take(object: &mut Object<'_>, faults: &mut Faults) -> Option<Self::Value>;

    #[cfg(feature = "schema")]
    fn describe(schema: &mut super::ObjectSchema, generator: &mut SchemaGenerator);
}

/// Reads an object, and refuses the members that it leaves over.
pub fn members<S: Members>(node: &Node<'_>, faults: &mut Faults) -> Option<S::Value> {
    let mut object = Object::open(node, S::names(), S::TAKES_NULLS, faults)?;
    let value = S::take(&mut object, faults);
    object.refuse_rest(faults);
    value
}

shape! {
    /// An object of any names, whose values have one shape.
    pub Map<S> => Vec<(Box<str>, S::Value)>, "an object",
    |node, faults| {
        let members = Object::open(node, &[], false, faults)?.members;
        let read = |Member { name, source, .. }: Member<'_>| {
            let value = S::read(&Node::new(&At::Member(node.at, &name), source), faults);
            Some((name.into(), value?))
        };
        // All of them first: each may have a fault.
        let values: Vec<_> = members.into_iter().map(read).collect();
        values.into_iter().collect()
    },
    |generator| { "type": "object", "additionalProperties": (S::schema(generator)) }
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
