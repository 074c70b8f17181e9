//! Long words that look drawn at random, whatever stands around them.
use std::ops::Range;

/// Shorter words have too few letters to tell.
const LEAST: usize = 24;

/// Hexadecimal digits: no shorter than a key of 128 bits.
const LEAST_HEX: usize = 32;

/// Bits a letter, of at most 6 in base 64 and 4 in hexadecimal digits. A random word of the least
/// length has more than that all but always.
const BITS: f64 = 3.4;
const BITS_HEX: f64 = 3.0;

/// All such words.
pub(super) fn find(text: &str) -> impl Iterator<Item = Range<usize>> {
    let bytes = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        while at < bytes.len() {
            let start = at;
            at += bytes[at..].iter().take_while(|byte| in_word(**byte)).count();
            let word = start..at;
            at += 1;
            if word.len() >= LEAST && is_random(&bytes[word.clone()]) {
                return Some(word);
            }
        }
        None
    })
}

const fn in_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'_' | b'-' | b'=')
}

fn is_random(word: &[u8]) -> bool {
    let has = |is: fn(&u8) -> bool| word.iter().any(is);
    let digits = has(u8::is_ascii_digit);
    if word.iter().all(u8::is_ascii_hexdigit) {
        return digits && word.len() >= LEAST_HEX && bits(word) >= BITS_HEX;
    }
    digits && has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && bits(word) >= BITS
}

/// Shannon's entropy of its letters.
fn bits(word: &[u8]) -> f64 {
    let mut counts = [0_u32; 128];
    for byte in word {
        counts[usize::from(*byte)] += 1;
    }
    let all = word.len() as f64;
    let of = |count: &u32| f64::from(*count) / all;
    counts.iter().filter(|count| **count > 0).map(|count| -of(count) * of(count).log2()).sum()
}
