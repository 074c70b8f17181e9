//! What a sealed store calls keys and digests: a permutation that only a holder of the secret can follow.
//!
//! A hash of a guessable text is found by trying, so a store must not show one. These names have the length
//! of what they stand for, and lead back to it: four rounds of a Feistel network, whose round function is
//! BLAKE3 with a key (Luby and Rackoff; both directions may be asked).
use std::mem;
use tr_core::canonical::{Digest, Key};
use zeroize::{Zeroize, ZeroizeOnDrop};

const ROUNDS: u8 = 4;

/// What the secret is derived for.
const CONTEXT: &str = "tr-idempotency 2026-11-28 names of keys and digests in a sealed store";

/// What is named. The same bytes have another name as something else.
#[derive(Clone, Copy)]
enum Named {
    Key,
    Digest,
}

/// The secret behind the names; wiped on drop.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Names(pub(super) [u8; 32]);

impl Names {
    pub(super) fn of(secret: &[u8; 32]) -> Self {
        Self(blake3::derive_key(CONTEXT, secret))
    }

    /// The name of a key.
    pub(crate) fn key(&self, key: &Key) -> Key {
        Key::from_bytes(self.hide(Named::Key, key.as_bytes()))
    }

    /// The key of this name.
    pub(crate) fn key_of(&self, name: &Key) -> Key {
        Key::from_bytes(self.show(Named::Key, name.as_bytes()))
    }

    /// The name of a digest.
    pub(crate) fn digest(&self, digest: &Digest) -> Digest {
        Digest::from_bytes(self.hide(Named::Digest, digest.as_bytes()))
    }

    /// The digest of this name.
    pub(crate) fn digest_of(&self, name: &Digest) -> Digest {
        Digest::from_bytes(self.show(Named::Digest, name.as_bytes()))
    }

    fn hide(&self, what: Named, bytes: &[u8; 32]) -> [u8; 32] {
        let [mut left, mut right] = halves(bytes);
        for round in 0..ROUNDS {
            self.mix(&mut left, &right, what, round);
            mem::swap(&mut left, &mut right);
        }
        whole(left, right)
    }

    fn show(&self, what: Named, bytes: &[u8; 32]) -> [u8; 32] {
        let [mut left, mut right] = halves(bytes);
        for round in (0..ROUNDS).rev() {
            mem::swap(&mut left, &mut right);
            self.mix(&mut left, &right, what, round);
        }
        whole(left, right)
    }

    fn mix(&self, half: &mut [u8; 16], by: &[u8; 16], what: Named, round: u8) {
        let mut text = [what as u8; 18];
        text[1] = round;
        text[2..].copy_from_slice(by);
        let hash = blake3::keyed_hash(&self.0, &text);
        half.iter_mut().zip(hash.as_bytes()).for_each(|(byte, key)| *byte ^= key);
    }
}

fn halves(bytes: &[u8; 32]) -> [[u8; 16]; 2] {
    let mut halves = [[0; 16]; 2];
    halves.as_flattened_mut().copy_from_slice(bytes);
    halves
}

fn whole(left: [u8; 16], right: [u8; 16]) -> [u8; 32] {
    let mut whole = [0; 32];
    whole.copy_from_slice([left, right].as_flattened());
    whole
}

tr_core::debug_parts! { Names, |_it| }

impl Drop for Names {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl ZeroizeOnDrop for Names {}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_name_leads_back_with_its_secret_and_not_with_another(secret: [u8; 32], bytes: [u8; 32]) {
            let (names, other) = (Names::of(&secret), Names::of(&[secret[0] ^ 1; 32]));
            let (key, digest) = (Key::from_bytes(bytes), Digest::from_bytes(bytes));
            let (name, digested) = (names.key(&key), names.digest(&digest));
            prop_assert_eq!((names.key_of(&name), names.digest_of(&digested)), (key, digest));
            prop_assert_ne!(name.as_bytes(), &bytes);
            prop_assert_ne!(name.as_bytes(), digested.as_bytes());
            prop_assert_ne!(other.key(&key), name);
            prop_assert_ne!(other.key_of(&name), key);
        }

        #[test]
        fn one_bit_of_a_key_changes_about_half_of_its_name(secret: [u8; 32], bytes: [u8; 32], bit in 0_usize..256) {
            let names = Names::of(&secret);
            let mut near = bytes;
            near[bit / 8] ^= 1 << (bit % 8);
            let differ = names.hide(Named::Key, &bytes).iter().zip(names.hide(Named::Key, &near))
                .map(|(one, other)| (one ^ other).count_ones()).sum::<u32>();
            prop_assert!((64..192).contains(&differ), "{differ} bits");
        }
    }
}
