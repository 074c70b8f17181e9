//! The words of a text and whether it is pending, character by character: slow, and with no tables.
use std::ops::Range;

const VOLATILE: [&str; 18] = [
    "timestamp",
    "ts",
    "time",
    "date",
    "datetime",
    "now",
    "elapsed",
    "duration",
    "took",
    "latency",
    "uptime",
    "age",
    "nonce",
    "requestid",
    "traceid",
    "spanid",
    "correlationid",
    "traceparent",
];

const UNITS: [&str; 22] = [
    "ns", "us", "µs", "ms", "s", "sec", "secs", "second", "seconds", "m", "min", "mins", "minute",
    "minutes", "h", "hr", "hrs", "hour", "hours", "d", "day", "days",
];

const PENDING: [&str; 24] = [
    "pending",
    "queued",
    "scheduled",
    "submitted",
    "runnable",
    "provisioning",
    "initializing",
    "podinitializing",
    "creating",
    "containercreating",
    "starting",
    "restarting",
    "running",
    "inprogress",
    "progressing",
    "processing",
    "building",
    "deploying",
    "updating",
    "deleting",
    "stopping",
    "terminating",
    "working",
    "waiting",
];

const SAID: [&str; 7] =
    ["still", "pending", "queued", "running", "waiting", "inprogress", "processing"];

/// The words that count.
pub(super) fn words<'t>(text: &'t str, volatile: &[Box<str>]) -> Vec<&'t str> {
    places(text, volatile).into_iter().map(|at| &text[at]).collect()
}

/// Whether a word says that a job has not ended.
pub(super) fn is_pending(text: &str, volatile: &[Box<str>]) -> bool {
    let is_sentence = !text.contains('\n') && !text.contains("\\n");
    let says = |at: Range<usize>| {
        let word = &text[at.clone()];
        let state = PENDING.iter().any(|name| is_named(word, name))
            || word.to_ascii_lowercase().ends_with("_in_progress");
        (is_sentence && SAID.iter().any(|name| is_named(word, name)))
            || (state && stands_alone(&text[..at.start], &text[at.end..]))
    };
    text.len() <= 1024 && places(text, volatile).into_iter().any(says)
}

fn places(text: &str, volatile: &[Box<str>]) -> Vec<Range<usize>> {
    let (mut places, mut from) = (Vec::new(), 0);
    while let Some(found) = word(text, from) {
        let word = &text[found.clone()];
        let skipped = if word.starts_with(|c: char| c.is_ascii_digit()) {
            (is_moment(word) || is_uuid(word) || is_span(word)).then_some(found.end).or_else(|| {
                let is_number = word.chars().all(|c| c.is_ascii_digit() || c == '.');
                is_number.then(|| after_unit(text, found.end)).flatten()
            })
        } else if is_uuid(word) {
            Some(found.end)
        } else {
            let is_volatile = VOLATILE.iter().any(|name| is_named(word, name))
                || volatile.iter().any(|name| name.eq_ignore_ascii_case(word));
            is_volatile.then(|| after_value(text, found.end)).flatten()
        };
        from = skipped.unwrap_or(found.end);
        if skipped.is_none() {
            places.push(found);
        }
    }
    places
}

/// The next word from `from` on.
fn word(text: &str, from: usize) -> Option<Range<usize>> {
    let is_escape = |at: usize, c: char| matches!(c, 'n' | 'r' | 't') && text[..at].ends_with('\\');
    let is_in_clock = |start: usize, at: usize| {
        text[start..at].ends_with(|c: char| c.is_ascii_digit())
            && text[at + 1..].starts_with(|c: char| c.is_ascii_digit())
    };
    let starts = |(at, c): &(usize, char)| is_of_word(*c) && !is_escape(*at, *c);
    let chars = |from: usize| text[from..].char_indices().map(move |(at, c)| (from + at, c));
    let (start, _) = chars(from).find(starts)?;
    let ends = |(at, c): &(usize, char)| {
        *at > start && !is_of_word(*c) && (*c != ':' || !is_in_clock(start, *at))
    };
    let end = chars(start).find(ends).map_or(text.len(), |(end, _)| end);
    Some(start..end)
}

fn is_of_word(c: char) -> bool {
    match c.is_ascii() {
        true => c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '.'),
        false => !c.is_whitespace(),
    }
}

/// Where a value after a name ends, if there is one.
fn after_value(text: &str, from: usize) -> Option<usize> {
    let value = text[from..].trim_start_matches(['"', '\\', '\'', ' ']);
    let value = value.strip_prefix([':', '='])?.trim_start_matches(['\\', ' ']);
    let ends_word = |c: char| c.is_whitespace() || matches!(c, ',' | '}' | ']' | '\\');
    let end = match value.chars().next() {
        Some('{' | '[') => return None,
        Some(quote @ ('"' | '\'')) => value[1..].find([quote, '\n']).map(|end| end + 2),
        _ => value.find(ends_word),
    };
    Some(text.len() - value.len() + end.unwrap_or(value.len()))
}

/// Where a unit of time after a number ends, if there is one.
fn after_unit(text: &str, from: usize) -> Option<usize> {
    let next = text[from..].starts_with(' ').then(|| word(text, from)).flatten()?;
    let unit = &text[next.clone()];
    let is_unit = next.start == from + 1 && UNITS.iter().any(|u| unit.eq_ignore_ascii_case(u));
    is_unit.then_some(next.end)
}

fn is_named(word: &str, name: &str) -> bool {
    if word.len() < name.len() {
        return false;
    }
    let word = word.trim_end_matches(['.', ':', '-']);
    let word: String =
        word.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect();
    let Some(rest) = word.strip_prefix(name) else { return false };
    rest.is_empty() || (VOLATILE.contains(&name) && UNITS.contains(&rest))
}

fn is_moment(word: &str) -> bool {
    let after = |form: &str| {
        let is_like = |(form, byte): (u8, u8)| match form {
            b'0' => byte.is_ascii_digit(),
            _ => form == byte,
        };
        let found = word.len() >= form.len() && form.bytes().zip(word.bytes()).all(is_like);
        found.then(|| word[form.len()..].trim_end_matches('.'))
    };
    let is_time = |c: char| c.is_ascii_digit() || matches!(c, ':' | '.' | '+' | '-' | 'T' | 'Z');
    let is_date = after("0000-00-00").is_some_and(|rest| {
        rest.is_empty() || (rest.starts_with('T') && rest.chars().all(is_time))
    });
    let is_clock = |form: &str| after(form).is_some_and(|rest| rest.chars().all(is_time));
    is_date || is_clock("00:00:00") || is_clock("0:00:00")
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36
        && word.bytes().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

fn is_span(word: &str) -> bool {
    let mut rest = word.trim_end_matches(['.', ':']);
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let end = unit.find(|c: char| c.is_ascii_digit()).unwrap_or(unit.len());
        if unit.len() == rest.len() || !UNITS.contains(&&unit[..end]) {
            return false;
        }
        rest = &unit[end..];
    }
    true
}

fn stands_alone(before: &str, after: &str) -> bool {
    let opens = ['"', '\'', ':', '=', '[', '(', '{', ',', '|', '\t', '\n'];
    let closes = ['"', '\'', '\\', ']', ')', '}', ',', ';', '|', '\t', '\n', '\r'];
    let is_opened = before.is_empty()
        || before.ends_with(opens)
        || ["  ", ": ", "= ", "| ", "\\n", "\\t"].iter().any(|end| before.ends_with(end));
    let is_closed = after.is_empty()
        || after.starts_with(closes)
        || ["  ", " |", " ("].iter().any(|start| after.starts_with(start));
    is_opened && is_closed
}
