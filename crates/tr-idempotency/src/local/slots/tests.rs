//! Where keys are placed.
use super::*;
use std::collections::HashSet;
use tr_core::canonical::Digest;

/// An attacker looks for keys that share a slot, without the process's secret.
#[test]
fn who_chooses_keys_does_not_choose_their_places() {
    const PLACES: u64 = 1 << 10;
    let keys =
        (0..200_000_u32).map(|n| Key::from_bytes(*Digest::of_bytes(n.to_le_bytes()).as_bytes()));
    let of_one_place = keys.filter(|key| hash_with(1, key) % PLACES == 7);
    let of_one_place: Vec<_> = of_one_place.take(128).collect();
    assert_eq!(of_one_place.len(), 128);
    for secret in [2, 3, u64::MAX] {
        let places = of_one_place.iter().map(|key| hash_with(secret, key) % PLACES);
        let places: HashSet<_> = places.collect();
        assert!(places.len() > 100, "{} places with the secret {secret}", places.len());
    }
    assert_eq!(hash(&of_one_place[0]), hash_with(*SECRET, &of_one_place[0]));
}
