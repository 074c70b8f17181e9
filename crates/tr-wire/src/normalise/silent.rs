//! Failures that look like answers.
use crate::read::{Flag, Kind, Number, Source};
use std::borrow::Cow;
use tr_core::{Json, ToolError, internal::ceil_char_boundary};

/// The tool returned `ok: false`, or an error, and no code with it.
pub const NOT_OK: &str = "not_ok";
/// The tool returned an exit code other than 0.
pub const NONZERO_EXIT: &str = "nonzero_exit";

const EXIT_CODES: [&str; 3] = ["exitCode", "exit_code", "returncode"];
/// Where tools put what went wrong, best first.
const MESSAGES: [&str; 4] = ["error", "message", "reason", "stderr"];
/// A message is for a model to read; the whole answer stays beside it.
const LONGEST: usize = 2000;

/// What an object says of a failure, if it does.
pub(super) fn failure(content: &Json) -> Option<ToolError> {
    let answer = Object::of(Source::Json(content.as_raw()))?;
    let exit = EXIT_CODES.into_iter().find_map(|name| answer.get(name)?.number());
    let exit = exit.map(|number| number.to_string());
    let error = answer.get("error").filter(|error| says_something(*error));
    let is_ok = answer.get("ok").and_then(Source::read::<Flag>);
    let default = match (is_ok, exit.as_deref(), error) {
        (Some(false), ..) => NOT_OK,
        (_, Some(code), _) if code != "0" => NONZERO_EXIT,
        (None, None, Some(_)) => NOT_OK,
        _ => return None,
    };
    let inner = error.and_then(inner);
    let of_either = |name| inner.as_ref().and_then(|inner| inner.get(name)).or(answer.get(name));
    let said = inner.as_ref().and_then(Object::message);
    let said = said.or_else(|| texts(error?)).or_else(|| answer.message());
    let number = error.and_then(Source::number).filter(|_| default == NOT_OK);
    let said = said.or_else(|| Some(format!("Error {}", number?).into()));
    let said = said.as_deref().map(str::trim).filter(|said| !said.is_empty());
    let message = match (exit.filter(|_| default == NONZERO_EXIT), said) {
        (Some(exit), Some(said)) => format!("Exit code {exit}: {}", shortened(said)),
        (Some(exit), None) => format!("Exit code {exit}"),
        (None, Some(said)) => shortened(said).into(),
        (None, None) => "The tool reported a failure and no reason".into(),
    };
    let code = of_either("code").and_then(code);
    let code = code.or_else(|| Some(number?.to_string().into())).unwrap_or_else(|| default.into());
    let mut failure = ToolError::new(code, message);
    failure.retryable =
        of_either("retryable").or_else(|| of_either("retriable")).and_then(Source::read::<Flag>);
    failure.details = inner.and_then(|inner| inner.get("details").map(Source::json));
    Some(failure)
}

/// `error: null`, `false`, `""`, `{}`, `[]` and `0` say that there was none, as does a list of nothing
/// but such. A fraction is a measure (how far a fit is off), and no code of a failure.
fn says_something(error: Source<'_>) -> bool {
    match error.kind() {
        Kind::Null => false,
        Kind::Number => matches!(error.number(), Some(Number::Whole(code)) if code != 0),
        Kind::Array => error.elements().is_some_and(|all| all.into_iter().any(says_something_flat)),
        Kind::Bool => error.read::<Flag>() == Some(true),
        Kind::Object => error.members().is_ok_and(|members| !members.is_empty()),
        _ => error.text().is_none_or(|text| !text.is_empty()),
    }
}

/// The same of an element of a list; that lists hold lists tells of no failure.
fn says_something_flat(element: Source<'_>) -> bool {
    element.kind() != Kind::Array && says_something(element)
}

/// The object that says more of an error: itself, or the first of a list that says something.
fn inner(error: Source<'_>) -> Option<Object<'_>> {
    Object::of(match error.elements() {
        Some(all) => all.into_iter().find(|one| says_something_flat(*one))?,
        None => error,
    })
}

/// The texts of a list.
fn texts(error: Source<'_>) -> Option<Cow<'_, str>> {
    let texts = error.elements()?.into_iter().filter_map(Source::text);
    let said: Vec<_> = texts.filter(|text| !text.trim().is_empty()).collect();
    (!said.is_empty()).then(|| said.join("; ").into())
}

fn code(source: Source<'_>) -> Option<Box<str>> {
    match source.kind() {
        Kind::Number => source.number().map(|number| number.to_string().into()),
        _ => source.text().filter(|code| !code.is_empty()).map(Into::into),
    }
}

/// The end of a long text, where programs say what went wrong.
fn shortened(text: &str) -> Cow<'_, str> {
    let Some(cut) = text.len().checked_sub(LONGEST).filter(|cut| *cut > 0) else {
        return text.into();
    };
    format!("…{}", &text[ceil_char_boundary(text, cut)..]).into()
}

struct Object<'a>(Vec<(Cow<'a, str>, Source<'a>)>);

impl<'a> Object<'a> {
    fn of(source: Source<'a>) -> Option<Self> {
        source.members().ok().map(Self)
    }

    fn get(&self, name: &str) -> Option<Source<'a>> {
        self.0.iter().find_map(|(own, value)| (own == name).then_some(*value))
    }

    fn message(&self) -> Option<Cow<'a, str>> {
        let text = |name| self.get(name)?.text().filter(|text| !text.trim().is_empty());
        MESSAGES.into_iter().find_map(text)
    }
}
