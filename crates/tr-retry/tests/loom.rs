//! A model of the budget: under every interleaving no token is made up, and none is lost.
#![cfg(tr_loom)]

#[path = "../src/bucket.rs"]
mod bucket;

/// The bucket's atomics, loom's here.
mod sync {
    pub(crate) use loom::sync::atomic::{AtomicU64, Ordering};
}

use bucket::{Bucket, TOKEN};
use loom::{sync::Arc, thread};

/// Half a token for each success; one at the start; room for three.
fn bucket() -> Arc<Bucket<2>> {
    let bucket = Bucket::new(TOKEN / 2, 3 * TOKEN);
    assert!(bucket.take() && bucket.take());
    Arc::new(bucket)
}

#[test]
fn one_token_is_granted_once() {
    loom::model(|| {
        let bucket = bucket();
        let other = bucket.clone();
        let other = thread::spawn(move || other.take());
        let mine = bucket.take();
        assert!(mine ^ other.join().unwrap());
        assert_eq!(bucket.balance(), 0);
    });
}

#[test]
fn successes_of_two_stripes_are_collected_once() {
    loom::model(|| {
        let bucket = bucket();
        let pays = |stripe| {
            let bucket = bucket.clone();
            thread::spawn(move || bucket.success(stripe))
        };
        let (one, two) = (pays(0), pays(1));
        let granted = u64::from(bucket.take()) + u64::from(bucket.take());
        one.join().unwrap();
        two.join().unwrap();
        assert_eq!(bucket.balance(), (2 - granted) * TOKEN);
    });
}

#[test]
fn what_is_put_back_meets_what_is_collected() {
    loom::model(|| {
        let bucket = bucket();
        let other = bucket.clone();
        let other = thread::spawn(move || {
            if other.take() {
                other.put_back();
            }
            other.success(1);
        });
        bucket.success(0);
        let granted = u64::from(bucket.take());
        other.join().unwrap();
        assert_eq!(bucket.balance(), (2 - granted) * TOKEN);
    });
}
