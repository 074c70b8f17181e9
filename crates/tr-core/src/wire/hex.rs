//! Fingerprints as the wire spells them: 16 hexadecimal digits.

pub(crate) fn write(bytes: [u8; 8]) -> Box<str> {
    format!("{:016x}", u64::from_be_bytes(bytes)).into()
}

/// The fingerprint that `text` spells; of any other text no digits.
pub(crate) fn read(text: &str) -> Option<[u8; 8]> {
    let is_ours = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_ours.then(|| u64::from_str_radix(text, 16).ok()).flatten().map(u64::to_be_bytes)
}
