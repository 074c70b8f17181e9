//! Bytes as lower-case hexadecimal digits.
use std::fmt;

/// A text that is not the expected number of lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the expected number of lower-case hexadecimal digits")]
pub struct HexError(());

/// Writes at most 32 bytes, in one piece: a formatter takes long to take a character.
pub(super) fn write(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
    let mut digits = [0; 64];
    for (pair, byte) in digits.as_chunks_mut().0.iter_mut().zip(bytes) {
        *pair = [digit(byte >> 4), digit(byte & 15)];
    }
    f.write_str(str::from_utf8(&digits[..2 * bytes.len()]).expect("digits are ASCII"))
}

pub(super) fn read<const N: usize>(text: &str) -> Result<[u8; N], HexError> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Ok(byte - b'0'),
        b'a'..=b'f' => Ok(byte - b'a' + 10),
        _ => Err(HexError(())),
    };
    let (pairs, rest) = text.as_bytes().as_chunks();
    if pairs.len() != N || !rest.is_empty() {
        return Err(HexError(()));
    }
    let mut bytes = [0; N];
    for (byte, [high, low]) in bytes.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Ok(bytes)
}
