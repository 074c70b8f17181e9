//! What the crates of this project share. It is no part of the public API: it changes in any version.
#![allow(clippy::must_use_candidate, reason = "what is public is so for the other crates here")]
mod coarse_instant;
mod faults;
mod sharded;
mod stripe;

pub use self::{
    coarse_instant::CoarseInstant,
    faults::Faults,
    sharded::{Held, Shard, Sharded},
    stripe::{STRIPES, stripe},
};

use std::{
    sync::{LockResult, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Locks `mutex`, also after a panic of a thread that held it.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    ignore_poison(mutex.lock())
}

/// The guard of a lock, or the content of one, poisoned or not.
#[inline]
pub fn ignore_poison<G>(lock: LockResult<G>) -> G {
    lock.unwrap_or_else(PoisonError::into_inner)
}

/// Milliseconds, the most that fit.
#[inline]
pub fn millis(span: Duration) -> u64 {
    span.as_secs().saturating_mul(1_000).saturating_add(u64::from(span.subsec_millis()))
}

/// The last place at or before `at` where `text` can be cut.
pub fn floor_char_boundary(text: &str, at: usize) -> usize {
    let at = at.min(text.len());
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Methods of a builder that change one field each: `fn name(value: Type) { field.of.it = value }`,
/// `fn name() { parts_mut().field = value }`, or `fn name(value: Type) { field.push(value) }`.
#[doc(hidden)]
#[macro_export]
macro_rules! setters {
    ($(
        $(#[$meta:meta])*
        fn $name:ident($($value:ident: $type:ty),*) { $($change:tt)+ }
    )*) => {$(
        $(#[$meta])*
        #[must_use]
        #[allow(clippy::double_must_use, reason = "most builders must be used themselves")]
        pub fn $name(mut self $(, $value: $type)*) -> Self {
            self.$($change)+;
            self
        }
    )*};
}

/// Writes `Debug` with these parts only: `debug_parts! { Name<A>, |it| part = it.expression }`. For types that hold
/// what cannot be shown, or must not be.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_parts {
    ($name:ident $(<$($arg:ident $(: $bound:path)?),*>)?, |$it:ident| $($part:ident = $value:expr),* $(,)?) => {
        impl $(<$($arg $(: $bound)?),*>)? ::std::fmt::Debug for $name $(<$($arg),*>)? {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                let $it = self;
                let parts = &mut f.debug_struct(stringify!($name));
                parts$(.field(stringify!($part), &$value))*.finish_non_exhaustive()
            }
        }
    };
}

/// The methods of a builder that say how requests are read, and of its layer the one for requests of any type. The
/// builder has a `read_by` that changes its policy. With `and responses`: those of layers that judge ends.
#[doc(hidden)]
#[macro_export]
macro_rules! reading {
    ($layer:ident, $builder:ident) => {
        impl $layer {
            /// Starts from the defaults, for requests and responses of any type: all requests are called `name`.
            pub fn named(name: &'static str) -> $builder<$crate::NamedPolicy> {
                Self::builder().policy($crate::NamedPolicy::new(name))
            }
        }

        impl<A> $builder<A> {
            /// Sets the policy that reads requests and responses; `DefaultPolicy` by default.
            pub fn policy<B>(self, policy: B) -> $builder<B> {
                self.read_by(|_| policy)
            }
        }

        impl<A: $crate::PolicyExt> $builder<A> {
            /// Names what each request calls. A closure that captures something goes to
            /// `PolicyExt::key_by`.
            pub fn key<Req>(
                self,
                name: $crate::policy::KeyFn<Req>,
            ) -> $builder<$crate::policy::Keyed<A, Req>> {
                self.read_by(|policy| policy.key_by(name))
            }
        }
    };
    ($layer:ident, $builder:ident and responses) => {
        $crate::reading! { $layer, $builder }

        impl<A: $crate::PolicyExt> $builder<A> {
            /// What each request does to the world; mutating, where nothing says it. A mutating request that may have run
            /// is not repeated.
            pub fn effect<Req>(
                self,
                effect: fn(&Req) -> $crate::Effect,
            ) -> $builder<$crate::policy::WithEffectBy<A, Req>> {
                self.read_by(|policy| policy.effect_by(effect))
            }

            /// Which responses are failures that another attempt may mend; without it, none is.
            pub fn failure<Res>(
                self,
                is_failure: fn(&Res) -> bool,
            ) -> $builder<$crate::policy::WithFailure<A, Res>> {
                self.read_by(|policy| policy.transient_response(is_failure))
            }

            /// Which errors of type `E` are final: not tried again, counted by no breaker. Other errors are what
            /// the policy's `classify` makes of them, and what nothing is known of may be tried again.
            /// `PolicyExt` has what else can be said of responses and errors.
            pub fn permanent_error<E>(
                self,
                is_final: fn(&E) -> bool,
            ) -> $builder<$crate::policy::WithPermanentError<A, E>> {
                self.read_by(|policy| policy.permanent_own_error(is_final))
            }
        }
    };
}
