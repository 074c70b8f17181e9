//! Params with placeholders for results of other calls.
use crate::{
    error::{Stopped, Why},
    json::below,
};
use serde_json::value::RawValue;
use std::{borrow::Cow, ops::Range};
use tr_core::{
    BoxError, Json,
    canonical::{self, Pointer},
};
use tr_wire::read::{Faults, Kind, Source};

/// Params, and the placeholders that are filled when the call starts.
///
/// `{"$from": "flights"}` is replaced by the result of the call `flights`, and `{"$from":
/// "flights", "at": "/0/price"}` by the value at that pointer. `{"$literal": …}` is replaced by its
/// content, unchanged.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    text: Json,
    placeholders: Vec<Placeholder>,
}

#[derive(Clone, Debug)]
struct Placeholder {
    range: Range<usize>,
    replacement: Replacement,
}

#[derive(Clone, Debug)]
enum Replacement {
    From(Box<str>, Pointer),
    Literal(Range<usize>),
}

const FORM: &str = r#"{"$from": CALL} or {"$from": CALL, "at": POINTER}"#;

impl Template {
    /// Finds the placeholders in `params`, which are at `pointer`.
    pub(crate) fn of(params: &Json, pointer: &str, faults: &mut Faults) -> Self {
        let mut placeholders = Vec::new();
        let text = params.get();
        // Most params have no placeholders.
        if text.contains("\"$from\"") || text.contains("\"$literal\"") {
            match canonical::to_string(text) {
                Ok(_) => Search { whole: text, placeholders: &mut placeholders, faults }
                    .value(Source::Json(params.as_raw()), pointer),
                // Nested too deep, or with a duplicate name.
                Err(error) => {
                    let found = error.kind().to_string();
                    faults.add(pointer, "unambiguous params", found);
                }
            }
        }
        Self { text: params.clone(), placeholders }
    }

    /// The calls whose results are used.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &Pointer)> {
        self.placeholders.iter().filter_map(|placeholder| match &placeholder.replacement {
            Replacement::From(call, at) => Some((&**call, at)),
            Replacement::Literal(_) => None,
        })
    }

    /// The filled params.
    pub(crate) fn fill<'r>(&self, result: impl Fn(&str) -> &'r RawValue) -> Result<Json, BoxError> {
        if self.placeholders.is_empty() {
            return Ok(self.text.clone());
        }
        let (text, mut filled, mut done) = (self.text.get(), String::new(), 0);
        for placeholder in &self.placeholders {
            filled.push_str(&text[done..placeholder.range.start]);
            filled.push_str(match &placeholder.replacement {
                Replacement::Literal(range) => &text[range.clone()],
                Replacement::From(call, pointer) => {
                    let why =
                        || Why::Missing { call: call.clone(), at: pointer.to_string().into() };
                    pointer.find(result(call)).ok_or_else(|| Stopped::from(why()))?.get()
                }
            });
            done = placeholder.range.end;
        }
        filled.push_str(&text[done..]);
        Ok(Json::from_text(filled).expect("values in the places of values"))
    }
}

struct Search<'s> {
    whole: &'s str,
    placeholders: &'s mut Vec<Placeholder>,
    faults: &'s mut Faults,
}

impl Search<'_> {
    /// Recursion is bounded: a text with a canonical form nests at most 128 levels deep.
    fn value(&mut self, value: Source<'_>, pointer: &str) {
        match value.kind() {
            Kind::Object => self.object(value, pointer),
            Kind::Array => {
                for (i, element) in value.elements().into_iter().flatten().enumerate() {
                    self.value(element, &below(pointer, i));
                }
            }
            _ => {}
        }
    }

    fn object(&mut self, object: Source<'_>, pointer: &str) {
        let members = object.members().unwrap_or_default();
        let get = |name: &str| members.iter().find(|(own, _)| own == name).map(|(_, value)| *value);
        let replacement = match (get("$from"), get("$literal")) {
            (Some(from), None) => self.from(from, get("at"), members.len(), pointer),
            (None, Some(literal)) if members.len() == 1 => {
                Some(Replacement::Literal(self.range(literal)))
            }
            (None, None) => {
                for (name, value) in &members {
                    self.value(*value, &below(pointer, name));
                }
                return;
            }
            _ => {
                self.faults.add(pointer, r#"{"$literal": VALUE} alone"#, "further members");
                None
            }
        };
        if let Some(replacement) = replacement {
            self.placeholders.push(Placeholder { range: self.range(object), replacement });
        }
    }

    fn from(
        &mut self,
        from: Source<'_>,
        at: Option<Source<'_>>,
        members: usize,
        pointer: &str,
    ) -> Option<Replacement> {
        let inside = at.map_or(Some(Cow::Borrowed("")), Source::text);
        let inside: Option<Pointer> = inside.and_then(|at| at.parse().ok());
        match (from.text(), inside) {
            (Some(call), Some(inside)) if members == 1 + usize::from(at.is_some()) => {
                Some(Replacement::From(call.into(), inside))
            }
            _ => {
                self.faults.add(pointer, FORM, "something else");
                None
            }
        }
    }

    fn range(&self, part: Source<'_>) -> Range<usize> {
        let part = part.raw().map_or("", RawValue::get);
        let start = part.as_ptr() as usize - self.whole.as_ptr() as usize;
        start..start + part.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tr_wire::EnvelopeFault;

    fn template(text: &str) -> (Template, Vec<EnvelopeFault>) {
        let mut faults = Faults::of(text);
        let template = Template::of(&Json::from_text(text).unwrap(), "/p", &mut faults);
        (template, faults.into_sorted().0)
    }

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn results_are_put_in_as_they_are() {
        let (template, faults) = template(
            r#"{"id": 123456789012345678901, "of": [{"$from": "a", "at": "/x/0"}, {"$from":"b"}], "raw": {"$literal": {"$from": "c"}}}"#,
        );
        assert!(faults.is_empty());
        assert_eq!(template.sources().map(|(call, _)| call).collect::<Vec<_>>(), ["a", "b"]);
        let filled =
            template.fill(|call| raw(if call == "a" { r#"{"x":[1.50]}"# } else { "null" }));
        assert_eq!(
            filled.unwrap().get(),
            r#"{"id": 123456789012345678901, "of": [1.50, null], "raw": {"$from": "c"}}"#
        );
        let missing = template.fill(|_| raw("[]")).unwrap_err().to_string();
        assert_eq!(missing, r#"The result of a has no value at "/x/0""#);
    }

    #[test]
    fn depth_is_no_trouble() {
        let deep = |n| format!("{}{}", "[".repeat(n), "]".repeat(n));
        let (shallow, _) = template(r#"{"of": {"$from": "a"}}"#);
        let result = deep(100_000);
        assert_eq!(
            shallow.fill(|_| raw(&result)).unwrap().get().len(),
            200_000 + r#"{"of": }"#.len()
        );
        let (_, faults) = template(&format!(r#"[{{"$from": "a"}}, {}]"#, deep(100_000)));
        assert_eq!(faults.iter().map(EnvelopeFault::pointer).collect::<Vec<_>>(), ["/p"]);
    }

    #[test]
    fn half_a_reference_is_a_fault_with_its_place() {
        for (text, at) in [
            (r#"{"a": {"$from": 1}}"#, "/p/a"),
            (r#"[{"$from": "a", "at": "x"}]"#, "/p/0"),
            (r#"{"$from": "a", "and": 1}"#, "/p"),
            (r#"{"$literal": 1, "further members": 2}"#, "/p"),
        ] {
            let (_, faults) = template(text);
            assert_eq!(
                faults.iter().map(EnvelopeFault::pointer).collect::<Vec<_>>(),
                [at],
                "{text}"
            );
        }
    }
}
