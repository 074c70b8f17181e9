//! How the parts of an outline are read: a text, the blocks of a content, what an entry follows.
use super::Part;
use crate::{format, message::Blank};
use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, SeqAccess},
};
use std::{fmt, marker::PhantomData};

/// What is an object; serde would take an array for one.
pub(super) struct Object<T>(pub(super) T);

#[derive(Default)]
pub(super) enum Parent<'t> {
    #[default]
    Absent,
    Null,
    Of(&'t str),
}

#[derive(Default)]
pub(super) enum Content<'t> {
    #[default]
    Absent,
    Text(Text),
    Parts(Vec<Object<Part<'t>>>),
}

/// What is told of a text.
#[derive(Clone, Copy)]
pub(super) struct Text {
    pub(super) blank: Blank,
    pub(super) is_synthetic: bool,
}

/// Whether a result's content was put there by a repair.
#[derive(Clone, Copy, Default)]
pub(super) struct Answer {
    pub(super) is_synthetic: bool,
}

impl Text {
    fn of(text: &str) -> Self {
        Self { blank: Blank::of(text), is_synthetic: format::is_synthetic_text(text) }
    }
}

impl<'de: 't, 't> Deserialize<'de> for Parent<'t> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let parent: Option<&'t str> = Deserialize::deserialize(from)?;
        Ok(parent.map_or(Self::Null, Self::Of))
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(ObjectVisitor(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_str(TextVisitor)
    }
}

impl<'de: 't, 't> Deserialize<'de> for Content<'t> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(ContentVisitor(PhantomData))
    }
}

impl<'de> Deserialize<'de> for Answer {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnswerVisitor)
    }
}

struct ObjectVisitor<T>(PhantomData<T>);
struct TextVisitor;
struct ContentVisitor<'t>(PhantomData<&'t ()>);
struct AnswerVisitor;

impl<'de, T: Deserialize<'de>> de::Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<Object<T>, A::Error> {
        T::deserialize(de::value::MapAccessDeserializer::new(members)).map(Object)
    }
}

impl de::Visitor<'_> for TextVisitor {
    type Value = Text;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text, E> {
        Ok(Text::of(text))
    }
}

impl<'de: 't, 't> de::Visitor<'de> for ContentVisitor<'t> {
    type Value = Content<'t>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or blocks")
    }

    fn visit_unit<E: de::Error>(self) -> Result<Content<'t>, E> {
        Ok(Content::Absent)
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Content<'t>, E> {
        Ok(Content::Text(Text::of(text)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content<'t>, A::Error> {
        let mut all = Vec::new();
        while let Some(part) = parts.next_element()? {
            all.push(part);
        }
        Ok(Content::Parts(all))
    }
}

/// The content of a result: a text, or parts, of which one alone may be told as synthetic.
impl<'de> de::Visitor<'de> for AnswerVisitor {
    type Value = Answer;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a result's content")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Answer, E> {
        Ok(Answer { is_synthetic: format::is_synthetic_text(text) })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Answer, A::Error> {
        #[derive(Deserialize)]
        struct Inner {
            #[serde(default)]
            text: Option<Text>,
        }
        let first: Option<Object<Inner>> = parts.next_element()?;
        let mut is_alone = true;
        while parts.next_element::<IgnoredAny>()?.is_some() {
            is_alone = false;
        }
        let text = first.and_then(|Object(first)| first.text).filter(|_| is_alone);
        Ok(Answer { is_synthetic: text.is_some_and(|text| text.is_synthetic) })
    }

    fn visit_unit<E: de::Error>(self) -> Result<Answer, E> {
        Ok(Answer::default())
    }
}
