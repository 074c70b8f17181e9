//! The shape of params for `tool_call_start`: names, types and sizes, without values.
use crate::{
    redact::{self, Hidden, REDACTED, Redact},
    watch::without,
};
use serde_json::value::RawValue;
use std::fmt::Write as _;
use tr_core::internal::members;

/// How many members are shown.
const MAX_MEMBERS: usize = 32;

/// Longer names are cut.
const NAME: usize = 64;

/// Longer values are cut.
const VALUE: usize = 64;

/// The shape of JSON params: `to:string(3) seats:number`; sizes are in bytes, as written. Of what
/// is `hidden` there is only the name; of what is `shown` there is the value, redacted and cut.
pub(crate) fn of(
    params: &str,
    redactor: &dyn Redact,
    hidden: Option<&Hidden>,
    shown: &[Box<str>],
) -> String {
    let Ok(raw) = serde_json::from_str::<&RawValue>(params) else { return "not JSON".into() };
    let Ok(members) = members(raw.get()) else { return kind(raw.get()) };
    let mut shape = String::new();
    for (at, (name, value)) in members.iter().take(MAX_MEMBERS).enumerate() {
        let space = if at == 0 { "" } else { " " };
        let is_hidden = hidden.is_some_and(|hidden| hidden.hides(name));
        if !is_hidden && shown.iter().any(|shown| **shown == **name) {
            // Together: the redactor also judges by names.
            let pair = format!("{name}:{}", without(hidden, value.get()));
            let _ = write!(shape, "{space}{}", redact::cut(redactor, &pair, VALUE));
            continue;
        }
        let kind = if is_hidden { REDACTED.into() } else { kind(value.get()) };
        let name = redact::cut(redactor, name, NAME);
        let _ = write!(shape, "{space}{name}:{kind}");
    }
    if members.len() > MAX_MEMBERS {
        let _ = write!(shape, " and {} more", members.len() - MAX_MEMBERS);
    }
    shape
}

fn kind(value: &str) -> String {
    let sized = |kind, around| format!("{kind}({})", value.len().saturating_sub(around));
    match value.as_bytes().first() {
        Some(b'"') => sized("string", 2),
        Some(b'{') => sized("object", 0),
        Some(b'[') => sized("array", 0),
        Some(b't' | b'f') => "boolean".into(),
        Some(b'n') => "null".into(),
        _ => "number".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redact::Redactor;

    #[test]
    fn no_value_is_shown() {
        let shape = |params| of(params, &Redactor::default(), None, &[]);
        assert_eq!(
            shape(r#"{"to":"LIS","seats":2,"via":["a"],"x":{"p":1},"y":null,"z":true,"k\n":""}"#),
            "to:string(3) seats:number via:array(5) x:object(7) y:null z:boolean k\n:string(0)"
        );
        assert_eq!(shape(r#""hunter2""#), "string(7)");
        assert_eq!(shape("{}"), "");
        assert_eq!(shape("[1"), "not JSON");
        assert_eq!(
            shape(r#"{"sk-Ab3dEf6hIj9kLm2nOp5qRs8t": 1}"#),
            "[redacted]:number",
            "a name may be a secret"
        );
    }

    #[test]
    fn a_shown_value_is_redacted_and_cut() {
        let shown = ["to", "note", "pin"].map(Into::into);
        let hidden = Hidden::new(&["pin".into()], Some(r#"{"pin":"4711"}"#));
        let key = "sk-Ab3dEf6hIj9kLm2nOp5qRs8t";
        let params = format!(
            r#"{{"to":"LIS","note":"{key} 4711 {}","pin":"4711","seats":2}}"#,
            "x".repeat(100)
        );
        let shape = of(&params, &Redactor::default(), Some(&hidden), &shown);
        assert!(shape.starts_with(r#"to:"LIS" note:"[redacted]"#), "{shape}");
        assert!(shape.ends_with("pin:[redacted] seats:number"), "{shape}");
        assert!(!shape.contains(key) && !shape.contains("4711") && shape.len() < 130, "{shape}");
    }

    #[test]
    fn no_more_than_so_many_names_are_shown() {
        let members: Vec<String> = (0..40).map(|n| format!("\"n{n}\":{n}")).collect();
        let params = format!("{{{}}}", members.join(","));
        let shape = of(&params, &Redactor::default(), None, &[]);
        assert!(shape.ends_with("n31:number and 8 more"), "{shape}");
    }
}
