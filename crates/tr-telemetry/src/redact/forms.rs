//! Secrets that are known by their form.
use super::tokens::{ALNUM, BASE64, Class, DASHED, HEX, MIXED, back, begins, run};
use std::{ops::Range, sync::LazyLock};
use tr_core::internal::ceil_char_boundary;

/// Finds the secret around an anchor.
pub(super) type Form = fn(&str, Range<usize>) -> Option<Range<usize>>;

/// The anchors, of which every secret of a form holds one.
pub(super) static FORMS: LazyLock<Vec<(&str, Form)>> = LazyLock::new(|| {
    let each = |(form, anchors): &(Form, &'static [&str])| {
        let form = *form;
        anchors.iter().map(move |anchor| (*anchor, form))
    };
    ANCHORS.iter().flat_map(each).collect()
});

static ANCHORS: &[(Form, &[&str])] = &[
    (private_key, &["-----begin "]),
    (putty_key, &["private-lines: "]),
    (bare_key, &["MII", "MIG", "MIH"]),
    (bare_key, STARTS),
    (credentials, &["bearer ", "basic "]),
    (user_of_url, &["://"]),
    (telegram, &[":AA"]),
    (azure_client, &["q~"]),
    (marked, &["AZDO", "JQQJ99", "AzSe", "AzFu", "AzCa", "ACDb", "AIoT"]),
    (marked, &["+ASt", "+ABa", "+AEh", "+ASb", "+ARm"]),
    (terraform, &[".atlasv1."]),
    (mailchimp, &["-us"]),
    (path, WEBHOOKS),
    (password_of_user, &[" -u ", "--user "]),
    (glued_password, &[" -p"]),
    (next_word, &["sshpass -p ", "redis-cli -a ", "identified by "]),
    (pgpass, &[":5432:"]),
];

/// Addresses whose path is a secret.
const WEBHOOKS: &[&str] = &[
    "hooks.slack.com/services/",
    "hooks.slack.com/workflows/",
    "hooks.slack.com/triggers/",
    "hooks.zapier.com/hooks/catch/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    "webhook.office.com/webhookb2/",
    "outlook.office.com/webhook/",
];

/// To the end of the block, or of the text if the block is cut off.
fn private_key(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let rest = &text[at.end..];
    let head = rest.find("-----").map(|end| &rest[..end])?;
    if !head.to_ascii_uppercase().contains("PRIVATE KEY") {
        return None;
    }
    let body = head.len() + 5;
    let end = rest[body..].find("-----END").map(|end| body + end + 8);
    let end = end.and_then(|end| Some(end + rest[end..].find("-----")? + 5));
    Some(at.start..end.map_or(text.len(), |end| at.end + end))
}

/// The lines behind PuTTY's word for them.
fn putty_key(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let start = at.end + run(text, at.end, ALNUM);
    let start = start + line_break(&text.as_bytes()[start..]);
    let end = lines(text, start);
    (end > start).then_some(start..end)
}

/// How short private keys begin, and OpenSSH's.
const STARTS: &[&str] = &["MHcCAQEE", "MHQCAQEE", "MC4CAQAwBQ", "b3BlbnNzaC1rZXktdjE"];

/// A private key's DER in base 64, without the lines around it. A certificate or public key begins
/// otherwise: the first thing in a private key is its version.
fn bare_key(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let head = text.as_bytes().get(at.start..at.start + 10)?;
    let is_key = match head {
        [b'M', b'I', b'I', _, _, b'A' | b'Q' | b'g' | b'w', b'I', b'B', b'A', _] => true,
        [b'M', b'I', b'I', _, _, _, b'B', b'O' | b'X', _, _] => {
            text.as_bytes()[at.start..].get(10..21) == Some(b"kqhkiG9w0BB")
        }
        [b'M', b'I', b'G' | b'H', _, b'A', b'g', b'E', b'A' | b'B', ..] => true,
        _ => STARTS.contains(&&text[at.clone()]),
    };
    if !is_key || !begins(text.as_bytes(), at.start) {
        return None;
    }
    let end = lines(text, at.start);
    (end - at.start >= 40).then_some(at.start..end)
}

/// The end of the lines of base 64 that begin there: full ones, and a last one.
fn lines(text: &str, start: usize) -> usize {
    /// No program breaks lines earlier.
    const FULL: usize = 60;
    let (mut from, mut end) = (start, start);
    loop {
        let length = run(text, from, BASE64);
        if length == 0 {
            return end;
        }
        end = from + length;
        let next = line_break(&text.as_bytes()[end..]);
        if length < FULL || next == 0 {
            return end;
        }
        from = end + next;
    }
}

/// The length of a line break, however it is written, with what indents the next line.
fn line_break(rest: &[u8]) -> usize {
    let breaks = [&b"\r\n"[..], b"\n", b"\\r\\n", b"\\n", b"\\\\n"];
    let length = breaks.iter().find(|it| rest.starts_with(it)).map_or(0, |it| it.len());
    let indent = rest[length..].iter().take(16).take_while(|it| b" \t\"'+".contains(it)).count();
    if length == 0 { 0 } else { length + indent }
}

/// The word after an authentication scheme, unless it is a plain word of a sentence.
fn credentials(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let end = at.end + run(text, at.end, MIXED);
    let word = text[at.end..end].trim_end_matches('.');
    let is_plain = word.bytes().all(|byte| byte.is_ascii_lowercase());
    (word.len() >= 8 && !is_plain).then(|| at.end..at.end + word.len())
}

/// User and password before the host.
fn user_of_url(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let rest = &text.as_bytes()[at.end..];
    let ends = |byte: &u8| byte.is_ascii_whitespace() || b"/?#\"'<>".contains(byte);
    let authority = rest.iter().position(ends).unwrap_or(rest.len());
    let user = rest[..authority].iter().rposition(|byte| *byte == b'@')?;
    let is_hidden = text[at.end..at.end + user] == *super::REDACTED;
    (user > 0 && !is_hidden).then(|| at.end..at.end + user)
}

/// A bot's number, a colon, and 35 characters.
fn telegram(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let number = back(bytes, at.start, 16, |byte| byte.is_ascii_digit());
    let start = at.start - number;
    let begins = begins(bytes, start) || text[..start].ends_with("bot");
    let body = run(text, at.end, DASHED);
    let is_one = begins && (7..=13).contains(&number) && text[at.clone()] == *":AA";
    (is_one && (30..=40).contains(&body)).then(|| start..at.end + body)
}

/// A client secret: `Q~` after three characters and a digit.
fn azure_client(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let in_secret: Class = |byte| DASHED(byte) || byte == b'~' || byte == b'.';
    let before = text.as_bytes()[..at.start].last_chunk::<4>()?;
    let is_one = text[at.clone()] == *"Q~" && before[3].is_ascii_digit();
    if !is_one || !before[..3].iter().all(|it| in_secret(*it)) {
        return None;
    }
    let body = run(text, at.end, in_secret);
    (body >= 28).then(|| at.start - 4..at.end + body)
}

/// A key with its maker's mark near its end.
fn marked(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let before = back(text.as_bytes(), at.start, 128, |it| DASHED(it) || BASE64(it));
    let body = run(text, at.end, |it| DASHED(it) || BASE64(it));
    (before >= 30 && body >= 4).then(|| at.start - before..at.end + body)
}

fn terraform(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let before = back(text.as_bytes(), at.start, 14, ALNUM);
    let body = run(text, at.end, |byte| DASHED(byte) || byte == b'=');
    (before == 14 && body >= 50).then(|| at.start - before..at.end + body)
}

/// A key that ends with the number of its data centre.
fn mailchimp(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let before = back(text.as_bytes(), at.start, 32, HEX);
    let number = text.as_bytes()[at.end..].iter().take(3).take_while(|it| it.is_ascii_digit());
    let number = number.count();
    (before == 32 && number > 0).then(|| at.start - before..at.end + number)
}

/// The path behind an address that is a secret as a whole.
fn path(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let body = run(text, at.end, |byte| DASHED(byte) || b"/@+%=".contains(&byte));
    (body > 0).then(|| at.end..at.end + body)
}

/// What follows the colon of `-u ada:hunter2`; not of the numbers `1000:1000`.
fn password_of_user(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let word = word(text, at.end);
    let (user, password) = text[word.clone()].split_once(':')?;
    let is_one = !user.is_empty()
        && !password.is_empty()
        && !password.starts_with('/')
        && !password.bytes().all(|byte| byte.is_ascii_digit());
    is_one.then(|| word.end - password.len()..word.end)
}

/// `mysql -uada -phunter2`.
fn glued_password(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let from = ceil_char_boundary(text, at.start.saturating_sub(80));
    let command = text[from..at.start].rsplit(['\n', ';', '|', '&']).next()?;
    let is_client = ["mysql", "mariadb"].iter().any(|it| command.contains(it));
    let word = word(text, at.end);
    (is_client && word.len() >= 4).then_some(word)
}

fn next_word(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let word = word(text, at.end);
    (!word.is_empty() && text.as_bytes()[word.start] != b'-').then_some(word)
}

/// `host:5432:database:user:password`.
fn pgpass(text: &str, at: Range<usize>) -> Option<Range<usize>> {
    let line = at.end + super::values::bare(&text.as_bytes()[at.end..]);
    let fields: Vec<&str> = text[at.end..line].splitn(3, ':').collect();
    let password = fields.get(2).filter(|it| !it.is_empty())?;
    Some(line - password.len()..line)
}

/// The word that begins there, or behind the quote there.
fn word(text: &str, at: usize) -> Range<usize> {
    let start = at + usize::from(text[at..].starts_with(['\'', '"', '`']));
    start..start + super::values::bare(&text.as_bytes()[start..])
}
