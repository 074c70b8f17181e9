//! Whether a call ran whose outcome is unknown, by what another tool answers; pure.
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::{
    collections::VecDeque,
    mem::discriminant,
    sync::{Arc, Mutex},
    time::Duration,
};
use time::{OffsetDateTime, format_description::well_known::Rfc3339};
use tool_reliability::telemetry::TARGET;
use tr_core::{
    SystemClock, ToolCall, ToolManifest, WallClock,
    canonical::{Canonicalizer, Key, Rules},
    internal::{lock, millis},
    manifest::OutcomeCheck,
};

/// Under this name a record notes what is asked of its call.
pub(crate) const NOTED: &str = "check";

/// What is asked about a call is kept in its record, up to this many bytes.
const MOST: usize = 4_096;

/// A longer answer is not read, in bytes.
const LONGEST: usize = 1 << 20;

/// An element of this much time before the call, in milliseconds, may be of the call: clocks differ.
const DOUBTFUL: u64 = 60_000;

/// What is asked about one call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Question {
    /// Tells two calls of one moment apart.
    pub(crate) nonce: u64,
    /// When the call began, in milliseconds since 1970.
    pub(crate) since: u64,
    /// The arguments of the tool that is asked.
    pub(crate) args: Map<String, Value>,
    /// What the members of an element must be, in the order of the check's.
    pub(crate) values: Vec<Value>,
    /// Its record ends with it, since its weak id may name another call then.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_brief: bool,
}

/// A call of a tool with a check.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    pub(crate) tool: Arc<ToolManifest>,
    pub(crate) question: Question,
    /// The key of its record.
    pub(crate) own: Option<Key>,
    /// When its last attempt was sent, in milliseconds since 1970.
    pub(crate) last: u64,
}

/// What an answer shows.
#[derive(Debug, PartialEq)]
pub(crate) enum Shown {
    /// The call ran: this is its effect.
    Ran(Value),
    /// The call did not run.
    DidNotRun,
    /// Neither yet, for this reason.
    NotYet(&'static str),
    /// Neither, and asking again does not help.
    Nothing(&'static str),
}

impl Question {
    /// What is asked about a call with these params that begins now; `None` if they lack what it needs, or are too long.
    pub(crate) fn of(check: &OutcomeCheck, params: &str, since: u64, nonce: u64) -> Option<Self> {
        let params: Value = serde_json::from_str(params).ok()?;
        let value = |at: &dyn std::fmt::Display| {
            params.pointer(&at.to_string()).filter(|value| !value.is_null()).cloned()
        };
        let args = check.args.iter().map(|(name, at)| Some((name.to_string(), value(at)?)));
        let values = check.matches.iter().map(|(_, at)| value(at));
        let (args, values) = (args.collect::<Option<_>>()?, values.collect::<Option<_>>()?);
        let question = Self { nonce, since, args, values, is_brief: false };
        (serde_json::to_string(&question).ok()?.len() <= MOST).then_some(question)
    }

    /// What its record notes.
    pub(crate) fn noted(&self) -> String {
        let question = serde_json::to_string(self).unwrap_or_default();
        format!("\n{NOTED}: {question}")
    }

    /// Whether this is another call, made since shortly before the one of `asked`, whose effect is like its.
    pub(crate) fn is_twin_of(&self, asked: &Self) -> bool {
        let (ours, theirs) = (&self.values, &asked.values);
        let is_same =
            ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(a, b)| is_same(a, b));
        is_same && self.nonce != asked.nonce && self.since + DOUBTFUL >= asked.since
    }
}

/// What the result of `tools/call`, a success that was asked for `now`, shows of a call whose last attempt was sent at
/// `last`, both in milliseconds since 1970.
pub(crate) fn judge(
    check: &OutcomeCheck,
    asked: &Question,
    last: u64,
    result: &str,
    now: u64,
) -> Shown {
    let Some(result) = unambiguous(result) else {
        return Shown::Nothing("its answer is too long, no JSON, or has a name twice");
    };
    let result = &result;
    let Some(document) = document(result) else {
        return Shown::Nothing("its answer has neither structuredContent nor one text of JSON");
    };
    let found = document.pointer(&check.found.to_string());
    // Some servers wrap a text of JSON.
    let read = found.and_then(Value::as_str).and_then(unambiguous);
    let Some(Value::Array(elements)) = read.as_ref().or(found) else {
        return Shown::Nothing("its answer has no array at `found`");
    };
    if has_more(result, elements.len()) || has_more(&document, elements.len()) {
        return Shown::Nothing("its answer has a further page");
    }
    let (mut all_comparable, mut older, mut in_part, mut ran) = (true, false, false, Vec::new());
    for element in elements {
        let theirs = check.matches.iter().map(|(name, _)| member(element, name));
        let pairs: Vec<_> = theirs.zip(&asked.values).collect();
        let is_comparable = |(theirs, ours): &(Option<&Value>, &Value)| {
            theirs.is_some_and(|it| discriminant(it) == discriminant(*ours))
        };
        all_comparable &= pairs.iter().all(is_comparable);
        let is_same =
            |(theirs, ours): &(Option<&Value>, &Value)| theirs.is_some_and(|it| is_same(it, ours));
        let differing = || pairs.iter().filter(|pair| !is_same(pair));
        let agrees = differing().next().is_none();
        // Instalments, or the same with a fee.
        let is_of_other_amount = pairs.iter().any(is_same)
            && differing().all(|(theirs, ours)| theirs.is_some_and(is_number) && is_number(ours));
        if !agrees && !is_of_other_amount {
            continue;
        }
        if let Some(at) = &check.not_before {
            let Some((from, to)) = element.pointer(&at.to_string()).and_then(time_of) else {
                return Shown::Nothing("the time of an element that agrees cannot be read");
            };
            if to <= asked.since.saturating_sub(DOUBTFUL) {
                older |= agrees;
                continue;
            }
            if agrees && (from < asked.since || from > now + DOUBTFUL) {
                return Shown::Nothing("an element that agrees may be older than the call");
            }
        }
        if agrees {
            ran.push(element);
        }
        in_part |= !agrees;
    }
    let is_due = |after| now.saturating_sub(last) >= millis(after);
    let is_whole = || {
        let at = check.found.to_string();
        is_plain(&document, "", &|name, it| {
            document.pointer(&at).is_some_and(|found| std::ptr::eq(found, it))
                || asked.args.get(name) == Some(it)
        })
    };
    match ran[..] {
        [element] => Shown::Ran(element.clone()),
        [_, ..] => Shown::Nothing("several elements agree"),
        [] if !all_comparable => Shown::Nothing("its elements cannot be compared"),
        [] if in_part => Shown::NotYet("an element agrees but for a number"),
        [] if older => Shown::NotYet("only an older element agrees"),
        [] if !check.absent_after.is_some_and(is_due) => Shown::NotYet("no element agrees"),
        [] if is_whole() => Shown::DidNotRun,
        [] => Shown::Nothing("its answer has more than the elements: it may not be whole"),
    }
}

/// Whether nothing else in an answer can say that something is missing in it: what else it has is empty, as `is_known`
/// says, or a success.
fn is_plain(value: &Value, name: &str, is_known: &dyn Fn(&str, &Value) -> bool) -> bool {
    let says_success = matches!(name, "ok" | "success");
    match value {
        it if is_known(name, it) => true,
        Value::Null => true,
        Value::Bool(said) => *said == says_success,
        Value::Number(number) => number.as_u64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(elements) => elements.is_empty(),
        Value::Object(members) => members.iter().all(|(name, it)| is_plain(it, name, is_known)),
    }
}

/// The document in a result: its structured content, else its only text, as JSON.
fn document(result: &Value) -> Option<Value> {
    match result.get("structuredContent") {
        Some(document) if !document.is_null() => Some(document.clone()),
        _ => {
            let [block] = &result.get("content")?.as_array()?[..] else { return None };
            unambiguous(block.get("text")?.as_str()?)
        }
    }
}

/// A JSON text in which no object has a name twice.
fn unambiguous(text: &str) -> Option<Value> {
    let is_short = text.len() <= LONGEST;
    let is_clear = || Canonicalizer::new().write(text, &Rules::exact(), &mut Vec::new()).is_ok();
    (is_short && is_clear()).then(|| serde_json::from_str(text).ok())?
}

/// A member by its name or JSON pointer.
fn member<'e>(element: &'e Value, name: &str) -> Option<&'e Value> {
    if name.starts_with('/') { element.pointer(name) } else { element.get(name) }
}

/// Numbers are the same however they are written.
fn is_same(theirs: &Value, ours: &Value) -> bool {
    match (theirs.as_f64(), ours.as_f64()) {
        (Some(theirs_value), Some(ours_value)) if theirs.is_f64() || ours.is_f64() => {
            // Beyond it, a number with a fraction stands for several whole ones.
            theirs_value.abs() < 9e15 && theirs_value - ours_value == 0.0
        }
        _ => theirs == ours,
    }
}

/// Whether a value is a number, or a text of one.
fn is_number(value: &Value) -> bool {
    value.is_number() || value.as_str().is_some_and(|text| text.parse::<f64>().is_ok())
}

/// Whether an answer that shows so many elements says that there are more.
fn has_more(answer: &Value, shown: usize) -> bool {
    let Value::Object(members) = answer else { return false };
    members.iter().any(|(name, value)| says_more(name, value, shown) || has_more(value, shown))
}

fn says_more(name: &str, value: &Value, shown: usize) -> bool {
    let letters = name.chars().filter(char::is_ascii_alphabetic);
    let name: String = letters.flat_map(char::to_lowercase).collect();
    let number = || value.as_u64().or_else(|| value.as_str()?.parse().ok());
    let is_above = |most: usize| number().is_some_and(|number| number > most as u64);
    match &*name {
        "hasmore" | "hasnext" | "hasnextpage" | "more" | "moreresults" | "truncated"
        | "istruncated" | "incomplete" | "incompleteresults" | "partial" => {
            *value == Value::Bool(true) || value == "true" || *value == 1
        }
        "islast" | "islastpage" => *value == Value::Bool(false),
        "next" | "nextcursor" | "nextpage" | "nextpagetoken" | "nexttoken" | "nextlink"
        | "nexturl" | "nextoffset" | "odatanextlink" | "continuation" | "continuationtoken" => {
            match value {
                Value::Null | Value::Bool(false) => false,
                Value::String(text) => !text.is_empty(),
                _ => true,
            }
        }
        "total" | "totalcount" | "totalitems" | "totalresults" | "totalhits" | "count" => {
            is_above(shown)
        }
        "totalpages" | "pagecount" | "pages" => is_above(1),
        _ => false,
    }
}

/// The span in which a time lies, in milliseconds since 1970: a text is as exact as it is written.
fn time_of(value: &Value) -> Option<(u64, u64)> {
    const SECOND: u64 = 1_000;
    let (from, exact) = match value {
        Value::String(text) => {
            // As SQL has it.
            let text = text.trim().replacen(' ', "T", 1);
            let time = OffsetDateTime::parse(&text, &Rfc3339).ok()?.unix_timestamp_nanos();
            let digits = text
                .split_once('.')
                .map_or(0, |(_, fraction)| fraction.bytes().take_while(u8::is_ascii_digit).count());
            (u64::try_from(time / 1_000_000).ok()?, SECOND / 10_u64.pow(digits.min(3) as u32))
        }
        Value::Number(number) => match number.as_u64() {
            Some(ms @ 100_000_000_000..=100_000_000_000_000) => (ms, 1),
            Some(seconds @ ..100_000_000_000) => (seconds * SECOND, SECOND),
            Some(_) => return None,
            None => {
                let seconds = number.as_f64().filter(|it| (0.0..1e11).contains(it))?;
                ((seconds * 1e3) as u64, 1)
            }
        },
        _ => return None,
    };
    Some((from, from + exact))
}

impl Checked {
    /// The call, if its tool has a check that can be asked about it.
    pub(crate) fn of(call: &ToolCall) -> Option<Self> {
        let tool = call.parts().manifest.clone()?;
        let params = call.parts().params.get();
        let (since, nonce) = (SystemClock.unix_ms(), fastrand::u64(..));
        let Some(mut question) = Question::of(tool.check.as_ref()?, params, since, nonce) else {
            let why = "the call lacks a param that it names, or they are too long";
            tracing::info!(target: TARGET, event = "check_undecided", tool = tool.tool.name(), why);
            return None;
        };
        let about = &call.parts().idempotency;
        question.is_brief = about.ttls.done == Some(Duration::ZERO);
        Some(Self { tool, question, own: about.id.map(|id| id.key), last: since })
    }

    /// How to ask about it.
    pub(crate) fn check(&self) -> Option<&OutcomeCheck> {
        self.tool.check.as_ref()
    }
}

/// Calls that were made within the last minutes, and what can be asked about them: an effect is of one of them.
#[derive(Debug, Default)]
pub(crate) struct Made(Mutex<VecDeque<Arc<Checked>>>);

impl Made {
    /// How many are kept, and for how long in milliseconds.
    const MOST: usize = 10_000;
    const DURING: u64 = 3_600_000;

    /// A call is made.
    pub(crate) fn begin(&self, call: &Arc<Checked>) {
        let mut made = lock(&self.0);
        let is_old = |it: &Arc<Checked>| it.question.since + Self::DURING < call.question.since;
        while made.len() >= Self::MOST || made.front().is_some_and(is_old) {
            made.pop_front();
        }
        made.push_back(call.clone());
    }

    /// The call did not run.
    pub(crate) fn did_not_run(&self, question: &Question) {
        lock(&self.0).retain(|made| made.question.nonce != question.nonce);
    }

    /// Whether another call of this tool was made whose effect is like that of this one.
    pub(crate) fn has_twin(&self, Checked { tool, question, .. }: &Checked) -> bool {
        let is_of_tool = |made: &Checked| made.tool.tool.name() == tool.tool.name();
        lock(&self.0).iter().any(|it| is_of_tool(it) && it.question.is_twin_of(question))
    }
}

#[cfg(test)]
mod tests;
