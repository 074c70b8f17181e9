//! Numbers: integer tokens stay exact, all others go through a double, as ECMAScript prints it.
use super::{Error, ErrorKind};

/// Writes the number that starts at `at`; tells where the text goes on.
///
/// RFC 8785 sends every number through a double, which would merge neighboring integers beyond
/// 2^53, such as snowflake ids. So a token without fraction and exponent stays as it is.
pub(super) fn write_number(text: &[u8], at: usize, out: &mut Vec<u8>) -> Result<usize, Error> {
    let (end, integer) = scan(text, at)?;
    let token = &text[at..end];
    if integer {
        out.extend_from_slice(if token == b"-0" { b"0" } else { token });
        return Ok(end);
    }
    if let Some(short) = shortest(token) {
        out.extend_from_slice(short);
        return Ok(end);
    }
    let value = str::from_utf8(token).ok().and_then(|token| token.parse::<f64>().ok());
    match value.filter(|value| value.is_finite()) {
        Some(value) => {
            out.extend_from_slice(ryu_js::Buffer::new().format_finite(value).as_bytes());
            Ok(end)
        }
        None => Err(Error::new(ErrorKind::NumberOverflow, at)),
    }
}

/// The token without trailing zeros, where that is what its double would print.
///
/// Decimals of up to 15 digits all have doubles of their own, so none shorter can stand for the
/// same double. ECMAScript prints them without an exponent from 0.000001 on.
fn shortest(token: &[u8]) -> Option<&[u8]> {
    let digits = token.strip_prefix(b"-").unwrap_or(token);
    if digits.len() > 16 || digits.starts_with(b"0.000000") {
        return None;
    }
    let kept = token.iter().rposition(|digit| *digit != b'0')?;
    match &token[..=kept] {
        short if short.iter().any(|byte| matches!(byte, b'e' | b'E')) => None,
        b"-0." => Some(b"0"),
        [whole @ .., b'.'] => Some(whole),
        short => Some(short),
    }
}

/// Where the token that starts at `at` ends, and whether it has neither fraction nor exponent.
fn scan(text: &[u8], start: usize) -> Result<(usize, bool), Error> {
    let mut at = start + usize::from(text[start] == b'-');
    at = match text.get(at) {
        Some(b'0') => at + 1,
        Some(b'I') if text[at..].starts_with(b"Infinity") => {
            return Err(Error::new(ErrorKind::NotFinite, start));
        }
        _ => digits(text, at)?,
    };
    let whole = at;
    if let Some(b'.') = text.get(at) {
        at = digits(text, at + 1)?;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        let signed = matches!(text.get(at + 1), Some(b'+' | b'-'));
        at = digits(text, at + 1 + usize::from(signed))?;
    }
    Ok((at, at == whole))
}

/// Skips one digit or more.
#[inline]
fn digits(text: &[u8], start: usize) -> Result<usize, Error> {
    let mut at = start;
    while let Some(b'0'..=b'9') = text.get(at) {
        at += 1;
    }
    match text.get(at) {
        _ if at > start => Ok(at),
        Some(_) => Err(Error::new(ErrorKind::UnexpectedByte, at)),
        None => Err(Error::new(ErrorKind::UnexpectedEnd, at)),
    }
}
