//! HTTP statuses and codes that a text names.
//!
//! A number is a status only where the words around it say so: `500 items found` names none.
use super::{
    Kind, grpc, http, json_rpc,
    message::follows,
    phrases::Rank,
    words::{Word, Words},
};

/// What numbers that are no statuses count or name.
const NO_STATUS: [&str; 16] = [
    "port", "line", "lines", "column", "col", "id", "row", "page", "size", "length", "offset",
    "byte", "bytes", "pid", "issue", "exit",
];

/// What a status comes after, where the sentence then ends or goes on with one of [`AFTER`].
const BEFORE: [&str; 12] = [
    "returned",
    "got",
    "received",
    "with",
    "responded",
    "replied",
    "answered",
    "error",
    "failed",
    "gave",
    "errors",
    "server",
];

const AFTER: [&str; 12] = [
    "for", "from", "on", "when", "while", "after", "by", "and", "but", "response", "error",
    "status",
];

/// The status that `word` names, if it does, and what it means.
pub(super) fn status(
    text: &str,
    before: [&str; 2],
    word: Word<'_>,
    after: Words<'_>,
) -> Option<(u16, Kind)> {
    let is_number = word.text.as_bytes()[0].is_ascii_digit();
    let status = http::from_word(word.text)?;
    let (kind, phrase) = http::status(status)?;
    // `E404` and `HTTP_503` say themselves what they are.
    let named = !is_number || is_named(text, before, word, after, phrase);
    named.then_some((status, kind))
}

fn is_named(
    text: &str,
    [last, last_but_one]: [&str; 2],
    word: Word<'_>,
    after: Words<'_>,
    phrase: &str,
) -> bool {
    let is = |word: &str, known: &[&str]| known.iter().any(|one| word.eq_ignore_ascii_case(one));
    if is(last, &NO_STATUS) || is(last_but_one, &["exit", "exited"]) {
        return false;
    }
    let bytes = text.as_bytes();
    let end = word.start + word.text.len();
    let next = bytes.get(end).copied();
    let in_brackets = word.start > 0
        && matches!(
            (bytes[word.start - 1], next),
            (b'(', Some(b')' | b' ' | b':')) | (b'[', Some(b']'))
        );
    let given = is(last, &["response"]) && word.gap.contains([':', '=']);
    if given
        || in_brackets
        || is(last, &["status", "statuscode", "status_code", "http", "httpstatus"])
    {
        return true;
    }
    if is(last, &["code", "errorcode", "error_code", "err_code"]) {
        let of_what = is(last_but_one, &["status", "error", "response", "http", "api"]);
        return of_what || word.gap.contains([':', '=']);
    }
    if is(last, &["of"]) && is(last_but_one, &["status", "code"]) {
        return true;
    }
    // `HTTP/1.1 503`
    if last.len() == 1 && (is(last_but_one, &["http"]) || is(last_but_one, &["1", "2", "3"])) {
        return true;
    }
    let (first, rest) = phrase.split_once(' ').unwrap_or((phrase, ""));
    let mut words = after;
    let spelled = words.next().is_some_and(|next| {
        (next.text.eq_ignore_ascii_case(first) && follows_loosely(rest, words))
            || (is(next.text, &["client", "server"]) && follows("error", words))
    });
    if spelled {
        return true;
    }
    let what_follows = after.rest();
    let ends = match what_follows.as_bytes() {
        [] => true,
        // A decimal or a longer name is no status.
        [b'.' | b',' | b'/' | b'-' | b'_' | b'%', byte, ..] if byte.is_ascii_alphanumeric() => {
            return false;
        }
        [b' ', ..] => false,
        _ => true,
    };
    if text[..word.start].trim_ascii().is_empty() {
        let body = what_follows.trim_ascii_start();
        return body.is_empty()
            || (ends && !body.starts_with('.'))
            || body.starts_with(['{', '-', '<']);
    }
    let goes_on = || after.clone().next().is_some_and(|next| is(next.text, &AFTER));
    is(last, &BEFORE)
        && (ends || goes_on() || what_follows.trim_ascii_start().starts_with(['{', '-', '(', '<']))
}

/// As [`follows`], for the beginnings of phrases: `Gateway Time-out` and `Gateway Timeout`.
fn follows_loosely(rest: &str, mut words: Words<'_>) -> bool {
    rest.split_ascii_whitespace().all(|want| {
        words.next().is_some_and(|word| {
            let head = word.text.get(..want.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(want))
        })
    })
}

/// What the name of a gRPC code comes after: `status: Unavailable`.
const SAYS_GRPC: [&str; 4] = ["status", "statuscode", "code", "statusruntimeexception"];

/// What a gRPC or JSON-RPC code in the text means.
pub(super) fn code(text: &str, before: [&str; 2], word: Word<'_>) -> Option<(Rank, Kind)> {
    let bytes = word.text.as_bytes();
    if bytes[0].is_ascii_digit() {
        let negative = word.start > 0 && text.as_bytes()[word.start - 1] == b'-';
        let number = word.text.parse::<i64>().ok().filter(|_| negative && bytes.len() == 5)?;
        return json_rpc::code(-number).map(|code| match code {
            json_rpc::Code::Certain(kind) => (Rank::Exact, kind),
            json_rpc::Code::Otherwise(kind) => (Rank::Hint, kind),
        });
    }
    let number = before[0].parse::<usize>().ok();
    let said = || SAYS_GRPC.iter().any(|one| before[0].eq_ignore_ascii_case(one));
    if !word.text.contains('_') && number.is_none() && !said() {
        return None;
    }
    let (code, kind) = grpc::from_name(word.text)?;
    let counts = word.text.contains('_') || number == Some(code) || said();
    (counts && kind != Kind::Unclassified).then_some((Rank::Exact, kind))
}
