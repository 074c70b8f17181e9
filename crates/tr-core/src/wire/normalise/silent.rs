//! Failures that look like answers.
use super::{NONZERO_EXIT, NOT_OK};
use crate::{
    Json, ToolError,
    wire::read::{Flag, Kind, Source},
};
use std::borrow::Cow;

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
    let inner = error.and_then(Object::of);
    let of_either = |name| inner.as_ref().and_then(|inner| inner.get(name)).or(answer.get(name));
    let said = inner.as_ref().and_then(Object::message).or_else(|| answer.message());
    let said = said.as_deref().map(str::trim).filter(|said| !said.is_empty());
    let message = match (exit.filter(|_| default == NONZERO_EXIT), said) {
        (Some(exit), Some(said)) => format!("Exit code {exit}: {}", shortened(said)),
        (Some(exit), None) => format!("Exit code {exit}"),
        (None, Some(said)) => shortened(said).into(),
        (None, None) => "The tool reported a failure and no reason".into(),
    };
    let code = of_either("code").and_then(code).unwrap_or_else(|| default.into());
    let mut failure = ToolError::new(code, message);
    failure.retryable =
        of_either("retryable").or_else(|| of_either("retriable")).and_then(Source::read::<Flag>);
    failure.details = inner.and_then(|inner| inner.get("details").map(Source::json));
    Some(failure)
}

/// `error: null`, `false`, `""` and `{}` say that there was none.
fn says_something(error: Source<'_>) -> bool {
    match error.kind() {
        Kind::Null | Kind::Number | Kind::Array => false,
        Kind::Bool => error.read::<Flag>() == Some(true),
        Kind::Object => error.members().is_ok_and(|members| !members.is_empty()),
        _ => error.text().is_none_or(|text| !text.is_empty()),
    }
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
    let from = (cut..).find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    format!("…{}", &text[from..]).into()
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
