//! HTTP statuses and codes that a text names.
//!
//! A number is a status only where the words around it say so: `500 items found` names none.
use super::{
    Kind, grpc, http, rpc_code,
    scan::Rank,
    words::{Word, Words, follows},
};

/// What numbers that are no statuses count or name.
const NO_STATUS: [&str; 16] = [
    "port", "line", "lines", "column", "col", "id", "row", "page", "size", "length", "offset",
    "byte", "bytes", "pid", "issue", "exit",
];

/// What a status comes after, where the clause then ends or goes on with one of [`AFTER`].
const BEFORE: [&str; 9] =
    ["returned", "got", "received", "with", "responded", "replied", "answered", "error", "server"];

const AFTER: [&str; 12] = [
    "for", "from", "on", "when", "while", "after", "by", "and", "but", "response", "error",
    "status",
];

/// What the name of a gRPC code comes after: `status: Unavailable`.
const SAYS_GRPC: [&str; 4] = ["status", "statuscode", "code", "statusruntimeexception"];

fn is(word: &str, known: &[&str]) -> bool {
    known.iter().any(|one| word.eq_ignore_ascii_case(one))
}

/// The status that `word` names, if it does, and what it means. `before` are the words before it,
/// the last one first.
pub(super) fn status(
    text: &str,
    before: [&str; 2],
    word: Word<'_>,
    after: Words<'_>,
) -> Option<(u16, Kind)> {
    let status = http::from_word(word.text)?;
    let (kind, phrase) = http::status(status)?;
    let number = Number { text, before, word, after };
    // `E404` and `HTTP_503` say themselves what they are.
    let is_status = !word.text.as_bytes()[0].is_ascii_digit()
        || (!number.counts_something()
            && (number.is_labelled()
                || number.is_spelled_out(phrase)
                || number.is_all_that_is_said()));
    is_status.then_some((status, kind))
}

/// A number and what stands around it.
struct Number<'t> {
    text: &'t str,
    before: [&'t str; 2],
    word: Word<'t>,
    after: Words<'t>,
}

impl Number<'_> {
    fn counts_something(&self) -> bool {
        is(self.before[0], &NO_STATUS) || is(self.before[1], &["exit", "exited"])
    }

    /// `status 503`, `code: 503`, `HTTP/1.1 503`, `(503)`.
    fn is_labelled(&self) -> bool {
        let [last, last_but_one] = self.before;
        let assigned = self.word.gap.contains([':', '=']);
        let start = self.word.start;
        let bytes = self.text.as_bytes();
        let opened = start.checked_sub(1).map(|at| bytes[at]);
        let in_brackets = matches!(
            (opened, self.after.rest().as_bytes().first()),
            (Some(b'('), Some(b')')) | (Some(b'['), Some(b']'))
        );
        in_brackets
            || is(last, &["status", "statuscode", "status_code", "http", "httpstatus"])
            || (is(last, &["response"]) && assigned)
            || (is(last, &["code", "errorcode", "error_code", "err_code"])
                && (assigned || is(last_but_one, &["status", "error", "response", "http", "api"])))
            || (is(last, &["of"]) && is(last_but_one, &["status", "code"]))
            || (last.len() == 1 && is(last_but_one, &["http", "1", "2", "3"]))
    }

    /// `502 Bad Gateway`, `404 Client Error`.
    fn is_spelled_out(&self, phrase: &str) -> bool {
        let mut words = self.after;
        let Some(next) = words.next() else { return false };
        let (first, rest) = phrase.split_once(' ').unwrap_or((phrase, ""));
        (next.text.eq_ignore_ascii_case(first) && begin(words, rest))
            || (is(next.text, &["client", "server"]) && follows("error", words))
    }

    /// `503` alone, `429 {"error": …}`, `server returned 503`.
    fn is_all_that_is_said(&self) -> bool {
        let rest = self.after.rest();
        // A decimal, or a part of a longer name.
        let goes_on = matches!(rest.as_bytes(), [b'.' | b',' | b'/' | b'-' | b'%', byte, ..] if byte.is_ascii_alphanumeric());
        if goes_on || rest.starts_with('%') {
            return false;
        }
        let ends = !rest.starts_with(' ') || rest.trim_ascii().is_empty();
        let ends = ends || rest.trim_ascii_start().starts_with(['{', '-', '(', '<']);
        let opens = self.text[..self.word.start].trim_ascii().is_empty();
        let announced = is(self.before[0], &BEFORE);
        let next = self.after.clone().next();
        (ends && (opens || announced))
            || (announced && next.is_some_and(|next| is(next.text, &AFTER)))
    }
}

/// Whether the words begin as `phrase` does: `Gateway Time-out`, `Gateway Timeout`.
fn begin(mut words: Words<'_>, phrase: &str) -> bool {
    phrase.split_ascii_whitespace().all(|want| {
        words.next().is_some_and(|word| {
            let head = word.text.get(..want.len());
            head.is_some_and(|head| head.eq_ignore_ascii_case(want))
        })
    })
}

/// What a gRPC or JSON-RPC code in the text means.
pub(super) fn code(text: &str, before: [&str; 2], word: Word<'_>) -> Option<(Rank, Kind)> {
    if word.text.as_bytes()[0].is_ascii_digit() {
        let negative = word.text.len() == 5 && text[..word.start].ends_with('-');
        let number = word.text.parse::<i64>().ok().filter(|_| negative)?;
        return rpc_code::code(-number);
    }
    let spelled = word.text.contains('_') || is(before[0], &SAYS_GRPC);
    let number = before[0].parse::<usize>().ok();
    if !spelled && number.is_none() {
        return None;
    }
    let (code, kind) = grpc::from_name(word.text)?;
    let counts = (spelled || number == Some(code)) && kind != Kind::Unclassified;
    counts.then_some((Rank::Exact, kind))
}
