//! Locates the parts of a JSON text, so that an edit leaves all other bytes unchanged.
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, Visitor},
};
use serde_json::value::RawValue;
use std::{borrow::Cow, collections::BTreeMap, fmt, ops::Range};

/// The elements of `text`, which must be an array.
pub(crate) fn elements(text: &str) -> Result<Vec<&str>, serde_json::Error> {
    let elements: Vec<&RawValue> = serde_json::from_str(text)?;
    Ok(elements.into_iter().map(RawValue::get).collect())
}

/// How many objects in a block or in a list of blocks, with the parts of their content, have this member.
pub(crate) fn marks(text: &str, name: &'static str) -> usize {
    if let Ok(elements) = elements(text) {
        return elements.into_iter().map(|element| marks(element, name)).sum();
    }
    let block = Members::of(text, &[name, "content"]).unwrap_or_default();
    let inside = block.get("content").map_or(0, |content| marks(content.get(), name));
    inside + usize::from(block.get(name).is_some())
}

/// Reads `text`, which must be an object; serde alone would accept an array.
pub(crate) fn object<'t, T: Deserialize<'t>>(text: &'t str) -> Result<T, serde_json::Error> {
    if text.trim_start().starts_with('{') {
        return serde_json::from_str(text);
    }
    Err(serde_json::Error::custom("not an object"))
}

/// Some members of an object: at most as many as are asked for anywhere.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Members<'t> {
    named: [Option<(&'static str, &'t RawValue)>; 18],
    /// How many the object has in all.
    pub(crate) len: usize,
}

impl<'t> Members<'t> {
    /// Those of these `names`. An error if one of them occurs twice, or if `text` is no object.
    pub(crate) fn of(text: &'t str, names: &[&'static str]) -> Result<Self, serde_json::Error> {
        if !text.trim_start().starts_with('{') {
            return Err(serde_json::Error::custom("not an object"));
        }
        let mut json = serde_json::Deserializer::from_str(text);
        let members = json.deserialize_map(Named(names))?;
        json.end().map(|()| members)
    }

    /// Those of the object that a member is; none if it is no object.
    pub(crate) fn inside(&self, name: &str, names: &[&'static str]) -> Self {
        let inside = self.get(name).and_then(|raw| Self::of(raw.get(), names).ok());
        inside.unwrap_or_default()
    }

    /// A member, also one that is `null`.
    pub(crate) fn present(&self, name: &str) -> Option<&'t RawValue> {
        self.named.iter().map_while(|it| *it).find(|(it, _)| *it == name).map(|(_, value)| value)
    }

    /// A member that is not `null`.
    pub(crate) fn get(&self, name: &str) -> Option<&'t RawValue> {
        self.present(name).filter(|value| value.get() != "null")
    }

    /// Whether a member begins so.
    pub(crate) fn begins(&self, name: &str, begin: char) -> bool {
        self.present(name).is_some_and(|value| value.get().starts_with(begin))
    }

    pub(crate) fn is_true(&self, name: &str) -> bool {
        self.present(name).is_some_and(|value| value.get() == "true")
    }

    /// A member's string; `None` if it is no string.
    pub(crate) fn string(&self, name: &str) -> Option<Cow<'t, str>> {
        self.present(name).and_then(string)
    }

    /// A member's string; empty if it is no string.
    pub(crate) fn text(&self, name: &str) -> Cow<'t, str> {
        self.string(name).unwrap_or_default()
    }
}

/// Reads the members of these names.
struct Named<'n>(&'n [&'static str]);

impl<'t> Visitor<'t> for Named<'_> {
    type Value = Members<'t>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Members<'t>, A::Error> {
        let (mut members, mut read) = (Members::default(), 0);
        while let Some((name, value)) = map.next_entry::<&RawValue, &RawValue>()? {
            members.len += 1;
            let name = string(name).ok_or_else(|| A::Error::custom("lone surrogate"))?;
            let Some(&name) = self.0.iter().find(|it| ***it == *name) else { continue };
            if members.present(name).is_some() {
                return Err(A::Error::duplicate_field(name));
            }
            (members.named[read], read) = (Some((name, value)), read + 1);
        }
        Ok(members)
    }
}

/// What is read of an object, member by member. Names with escapes are an error.
pub(crate) trait Object<'t> {
    /// Takes a member of this name, whose value comes next.
    fn member<A: MapAccess<'t>>(&mut self, name: &str, from: &mut A) -> Result<(), A::Error>;
}

/// Reads an object into this one.
pub(crate) struct ReadInto<'a, T>(pub(crate) &'a mut T);

impl<'t, T: Object<'t>> DeserializeSeed<'t> for ReadInto<'_, T> {
    type Value = ();

    fn deserialize<D: Deserializer<'t>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_map(self)
    }
}

impl<'t, T: Object<'t>> Visitor<'t> for ReadInto<'_, T> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut from: A) -> Result<(), A::Error> {
        while let Some(name) = from.next_key()? {
            self.0.member(name, &mut from)?;
        }
        Ok(())
    }
}

/// Reads a text that is one object into this one; `None` if it is none.
pub(crate) fn read_into<'t>(text: &'t str, object: &mut impl Object<'t>) -> Option<()> {
    let mut json = serde_json::Deserializer::from_str(text);
    json.deserialize_map(ReadInto(object)).ok()?;
    json.end().ok()
}

/// Takes the value of a member; an error if there was one already.
pub(crate) fn once<'t, T: Deserialize<'t>, A: MapAccess<'t>>(
    member: &mut Option<T>,
    from: &mut A,
) -> Result<(), A::Error> {
    let before = member.replace(from.next_value()?);
    before.map_or(Ok(()), |_| Err(A::Error::custom("a member that is there twice")))
}

/// The members of `text`, which must be an object; of duplicate names, the last one.
pub(crate) fn members(text: &str) -> Result<BTreeMap<Cow<'_, str>, &RawValue>, serde_json::Error> {
    object(text)
}

/// The range of `part`, a slice of `whole`, in `whole`.
pub(crate) fn span(whole: &str, part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    debug_assert!(whole.get(start..start + part.len()) == Some(part));
    start..start + part.len()
}

/// The decoded string of `raw`; `None` if it is no string, or has a lone surrogate.
pub(crate) fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    let inside = raw.get().strip_prefix('"')?.strip_suffix('"')?;
    if inside.contains('\\') {
        return serde_json::from_str(raw.get()).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inside))
}

/// Converts a member's name from Python's spelling to that of JSON.
pub(crate) fn camel_case(name: &str) -> String {
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

/// `text` as a JSON string.
pub(crate) fn quote(text: &str) -> String {
    serde_json::to_string(text).expect("a string can be written")
}

/// The start of the name of the member whose value is at `value`.
fn member_start(raw: &str, value: &Range<usize>) -> usize {
    let name = raw[..value.start].rfind('"').and_then(|end| raw[..end].rfind('"'));
    name.expect("a member has a name")
}

/// `raw` with the member replaced whose value is at `value`.
pub(crate) fn with_member(raw: &str, value: &Range<usize>, member: &str) -> String {
    format!("{}{member}{}", &raw[..member_start(raw, value)], &raw[value.end..])
}

/// `raw` without the member whose value is at `value`, and without its comma.
pub(crate) fn without_member(raw: &str, value: &Range<usize>) -> String {
    let (before, after) = (&raw[..member_start(raw, value)], &raw[value.end..]);
    match before.trim_end().strip_suffix(',') {
        Some(before) => format!("{before}{after}"),
        None => {
            let after = after.trim_start();
            format!("{before}{}", after.strip_prefix(',').unwrap_or(after).trim_start())
        }
    }
}

/// `text`, an object, with a member set to another value; a new member is inserted first.
pub(crate) fn set_member(text: &str, name: &str, value: &str) -> String {
    let members = members(text).unwrap_or_default();
    if let Some(member) = members.get(name) {
        let at = span(text, member.get());
        return format!("{}{value}{}", &text[..at.start], &text[at.end..]);
    }
    let open = text.find('{').map_or(0, |at| at + 1);
    let comma = if members.is_empty() { "" } else { "," };
    format!("{}{}:{value}{comma}{}", &text[..open], quote(name), &text[open..])
}

/// An element for a rebuilt array.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The index of the old element that it is or replaces, if any.
    pub(crate) was: Option<usize>,
    /// Its new text.
    pub(crate) text: String,
}

/// `raw` with the array at `list` rebuilt from `pieces`; kept elements keep their white space.
///
/// If `spans` is empty, `list` may be any value: it is replaced.
pub(crate) fn with_list(
    raw: &str,
    list: &Range<usize>,
    spans: &[Range<usize>],
    pieces: &[Piece],
) -> String {
    let mut out = String::with_capacity(raw.len());
    out.push_str(&raw[..list.start]);
    out.push('[');
    for (at, piece) in pieces.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        // A new element gets the white space of the old one at its index.
        if let Some(last) = spans.len().checked_sub(1) {
            out.push_str(gap_before(raw, list, spans, piece.was.unwrap_or(at.min(last))));
        }
        out.push_str(&piece.text);
    }
    if let Some(last) = spans.last() {
        out.push_str(&raw[last.end..list.end - 1]);
    }
    out.push(']');
    out.push_str(&raw[list.end..]);
    out
}

/// The white space between the preceding comma (or bracket) and the element.
fn gap_before<'t>(
    raw: &'t str,
    list: &Range<usize>,
    spans: &[Range<usize>],
    element: usize,
) -> &'t str {
    let from = element.checked_sub(1).map_or(list.start, |previous| spans[previous].end);
    let gap = &raw[from..spans[element].start];
    gap.find([',', '[']).map_or("", |comma| &gap[comma + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(raw: &str, pieces: &[(Option<usize>, &str)]) -> String {
        let start = raw.find('[').unwrap();
        let list = start..raw.rfind(']').unwrap() + 1;
        let array = &raw[list.clone()];
        let spans: Vec<_> =
            elements(array).unwrap().iter().map(|element| span(raw, element)).collect();
        let pieces: Vec<_> =
            pieces.iter().map(|&(was, text)| Piece { was, text: text.into() }).collect();
        with_list(raw, &list, &spans, &pieces)
    }

    #[test]
    fn an_edit_changes_only_what_it_must() {
        let raw = "{\"a\" : [\n  1,\n  2,\n  3\n] }";
        assert_eq!(edit(raw, &[(Some(0), "1"), (Some(1), "2"), (Some(2), "3")]), raw);
        assert_eq!(edit(raw, &[(Some(0), "1"), (Some(2), "3")]), "{\"a\" : [\n  1,\n  3\n] }");
        assert_eq!(edit(raw, &[(None, "0"), (Some(0), "1")]), "{\"a\" : [\n  0,\n  1\n] }");
        assert_eq!(edit("[]", &[(None, "0")]), "[0]");
    }

    #[test]
    fn strings_with_lone_surrogates_are_none() {
        let raw = |text: &str| RawValue::from_string(text.into()).unwrap();
        assert_eq!(string(&raw(r#""a\u0041""#)).unwrap(), "aA");
        assert_eq!(string(&raw(r#""plain""#)).unwrap(), "plain");
        assert_eq!(string(&raw(r#""\ud800""#)), None);
        assert_eq!(string(&raw("3")), None);
    }
}
