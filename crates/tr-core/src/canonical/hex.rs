//! Bytes as lower-case hexadecimal digits.
use std::fmt::{self, Write as _};

/// A text that is not the expected number of lower-case hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not the expected number of lower-case hexadecimal digits")]
pub struct HexError(());

pub(super) fn write(bytes: &[u8], f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .try_for_each(|half| f.write_char(digit(half)))
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
