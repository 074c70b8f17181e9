//! Models of what calls read without a lock: whatever the interleaving, it is what the circuit was.
#![cfg(tr_loom)]

#[path = "../src/fast_path.rs"]
mod fast_path;
#[path = "../src/first.rs"]
mod first;

/// What the crate takes from std, loom's here.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

    /// loom has none: a lock that is filled once, whose values live on.
    pub(crate) struct OnceLock<T: 'static>(loom::sync::Mutex<Option<&'static T>>);

    impl<T> OnceLock<T> {
        pub(crate) fn new() -> Self {
            Self(loom::sync::Mutex::new(None))
        }

        pub(crate) fn get(&self) -> Option<&T> {
            *self.0.lock().unwrap()
        }

        pub(crate) fn set(&self, value: T) -> Result<(), T> {
            let mut slot = self.0.lock().unwrap();
            if slot.is_some() {
                return Err(value);
            }
            *slot = Some(Box::leak(Box::new(value)));
            Ok(())
        }
    }
}

use fast_path::{FastPath, Published};
use first::First;
use loom::{
    sync::{Arc, Mutex},
    thread,
};
use std::time::{Duration, Instant};
use tr_core::internal::CoarseInstant;

const COOLDOWN: Duration = Duration::from_secs(30);

/// A circuit of nothing but a generation; it is open in the odd ones.
struct Circuit {
    start: Instant,
    generation: Mutex<u32>,
    fast_path: FastPath,
}

impl Circuit {
    fn new() -> Arc<Self> {
        let start = Instant::now();
        let fast_path = FastPath::new(&published(2, start));
        Arc::new(Self { start, generation: Mutex::new(2), fast_path })
    }

    /// Opens or closes it, as a call's end does, and says what it is now.
    fn change(&self) -> u32 {
        let mut generation = self.generation.lock().unwrap();
        *generation += 1;
        self.fast_path.publish(&published(*generation, self.start));
        *generation
    }

    /// For how long calls are refused, as a call sees it that begins with the circuit.
    fn refusal(&self) -> Option<Duration> {
        self.fast_path.refuse(|| CoarseInstant::at(self.start), COOLDOWN)
    }
}

fn published(generation: u32, start: Instant) -> Published {
    let is_open = generation % 2 == 1;
    Published {
        passes: (!is_open).then_some(generation),
        refused_until: is_open.then(|| start + COOLDOWN),
        quiet_until: (!is_open).then(|| start + 2 * COOLDOWN),
    }
}

#[test]
fn no_thread_sees_an_older_circuit_than_it_made() {
    loom::model(|| {
        let circuit = Circuit::new();
        let run = |circuit: &Circuit| {
            let mine = circuit.change();
            if let Some(passed) = circuit.fast_path.pass() {
                assert!(passed >= mine, "{passed} after {mine}");
            }
        };
        let other = thread::spawn({
            let circuit = circuit.clone();
            move || run(&circuit)
        });
        run(&circuit);
        other.join().unwrap();
        assert_eq!(circuit.fast_path.pass(), Some(4));
        assert_eq!(circuit.refusal(), None);
    });
}

#[test]
fn a_refusal_is_one_that_the_circuit_gave() {
    loom::model(|| {
        let circuit = Circuit::new();
        let other = thread::spawn({
            let circuit = circuit.clone();
            move || {
                circuit.change();
                circuit.change();
                circuit.change();
            }
        });
        // The times of the two states are never taken for one another.
        assert!(matches!(circuit.refusal(), None | Some(COOLDOWN)));
        let is_quiet = circuit.fast_path.is_quiet_at(CoarseInstant::at(circuit.start + COOLDOWN));
        assert!(!is_quiet || circuit.fast_path.pass().is_none_or(|passed| passed % 2 == 0));
        other.join().unwrap();
        assert!(!circuit.fast_path.is_quiet());
        assert_eq!((circuit.fast_path.pass(), circuit.refusal()), (None, Some(COOLDOWN)));
    });
}

#[test]
fn a_key_has_one_place_and_is_found_there_for_good() {
    loom::model(|| {
        // Both keys begin at the same slot.
        let table = Arc::new((First::new(2), Mutex::new(())));
        let find_or_add = |table: &(First<u64>, Mutex<()>), key: u64| {
            if table.0.get(0, |other| *other == key).is_none() {
                let _adding = table.1.lock().unwrap();
                if table.0.get(0, |other| *other == key).is_none() {
                    table.0.add(0, key);
                }
            }
            assert_eq!(table.0.get(0, |other| *other == key), Some(&key));
        };
        let other = thread::spawn({
            let table = table.clone();
            move || {
                find_or_add(&table, 1);
            }
        });
        find_or_add(&table, 2);
        find_or_add(&table, 1);
        other.join().unwrap();
        let mut all: Vec<_> = table.0.iter().copied().collect();
        all.sort_unstable();
        assert_eq!(all, [1, 2]);
    });
}
