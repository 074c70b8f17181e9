//! Bytes up to a limit. Beyond it only their number and their digest are kept.
use std::{io, mem};
use tr_core::canonical::Digest;

/// Bytes that are written one after another.
pub(super) struct Bounded {
    most: usize,
    len: usize,
    kept: Vec<u8>,
    /// Takes all bytes once there are too many to be kept.
    beyond: Option<Box<blake3::Hasher>>,
}

impl Bounded {
    pub(super) const fn new(most: usize) -> Self {
        Self { most, len: 0, kept: Vec::new(), beyond: None }
    }

    /// All bytes, or how many there were, with their digest.
    pub(super) fn finish(self) -> Result<Vec<u8>, (usize, Digest)> {
        match self.beyond {
            None => Ok(self.kept),
            Some(hasher) => Err((self.len, Digest::from_bytes(hasher.finalize().into()))),
        }
    }
}

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.len += bytes.len();
        if self.len > self.most && self.beyond.is_none() {
            let mut hasher = Box::new(blake3::Hasher::new());
            hasher.update(&mem::take(&mut self.kept));
            self.beyond = Some(hasher);
        }
        match &mut self.beyond {
            None => self.kept.extend_from_slice(bytes),
            Some(hasher) => drop(hasher.update(bytes)),
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn the_digest_is_of_all_bytes() {
        let text: Vec<u8> = (0..100).collect();
        for most in [0, 1, 9, 10, 99, 100, 101] {
            let mut bounded = Bounded::new(most);
            text.chunks(10).for_each(|part| bounded.write_all(part).unwrap());
            let expected = match most {
                100.. => Ok(text.clone()),
                _ => Err((100, Digest::of_bytes(&text))),
            };
            assert_eq!(bounded.finish(), expected, "{most}");
        }
    }
}
