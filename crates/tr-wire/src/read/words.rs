//! Enums as words, those of the contract included.
use super::{Node, Shape, Write};
use crate::fault::Faults;
use serde::Serialize;
use std::{borrow::Cow, marker::PhantomData};
use tr_core::{
    BreakerHint, BreakerState, Capability, DedupeMode, DedupeScope, Effect, MatchedOn, Priority,
    Ran, Status, manifest::BreakerOrder,
};

#[cfg(feature = "schema")]
use schemars::{Schema, SchemaGenerator, json_schema};

/// One of a few words.
pub trait Words {
    /// What they stand for.
    type Value: Copy + PartialEq + 'static;

    /// Each word and what it stands for; where two stand for the same, the first is written.
    const WORDS: &'static [(&'static str, Self::Value)];

    /// The word that is written for this value.
    fn word(value: Self::Value) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, of)| *of == value);
        found.map_or("", |(word, _)| word)
    }
}

/// Says which words stand for the values of an enum on the wire. For an enum of another crate,
/// `Name for path::Enum` makes the type `Name` to say it of.
#[doc(hidden)]
#[macro_export]
macro_rules! __words {
    (@impl $name:ty, $type:ty { $($variant:ident = $word:literal $(| $alias:literal)*),* $(,)? }) => {
        impl $crate::read::Words for $name {
            type Value = $type;

            const WORDS: &'static [(&'static str, $type)] =
                &[$(($word, <$type>::$variant), $(($alias, <$type>::$variant),)*)*];
        }
    };
    ($($name:ident for $type:ty { $($words:tt)* })*) => {$(
        #[derive(Debug)]
        pub(crate) struct $name;

        $crate::read::words! { @impl $name, $type { $($words)* } }
    )*};
    ($($name:ty { $($words:tt)* })*) => {
        $($crate::read::words! { @impl $name, Self { $($words)* } })*
    };
}

pub use __words as words;

#[derive(Debug)]
pub struct Word<T>(PhantomData<T>);

impl<T: Words> Shape for Word<T> {
    type Value = T::Value;

    fn expected() -> Cow<'static, str> {
        let words: Vec<_> = T::WORDS.iter().map(|(word, _)| format!("{word:?}")).collect();
        match &*words {
            [first @ .., last] if !first.is_empty() => {
                format!("{} or {last}", first.join(", ")).into()
            }
            words => words.concat().into(),
        }
    }

    fn read(node: &Node<'_>, faults: &mut Faults) -> Option<T::Value> {
        let text = node.source.text();
        let found = T::WORDS.iter().find(|(word, _)| text.as_deref() == Some(*word));
        found.map(|(_, value)| *value).or_else(|| node.refuse_word(Self::expected(), faults))
    }

    #[cfg(feature = "schema")]
    fn schema(_: &mut SchemaGenerator) -> Schema {
        let words: Vec<_> = T::WORDS.iter().map(|(word, _)| *word).collect();
        json_schema!({ "type": "string", "enum": words })
    }
}

impl<T: Words> Write for Word<T> {
    fn write(value: &T::Value) -> impl Serialize {
        T::word(*value)
    }
}

words! {
    Status {
        Success = "success", Error = "error", RetriableError = "retriable_error",
        RetryExhausted = "retry_exhausted", CircuitOpen = "circuit_open", Timeout = "timeout",
    }
    MatchedOn { Inflight = "inflight", Completed = "completed" }
    BreakerState {
        Closed = "CLOSED", Open = "OPEN", HalfOpen = "HALF_OPEN", ForcedOpen = "FORCED_OPEN",
    }
    Ran { No = "no", Yes = "yes", Unknown = "unknown" }
    DedupeMode { Enforced = "enforced" | "enabled", BestEffort = "bestEffort", Disabled = "disabled" }
    DedupeScope { Session = "session", Global = "global" }
    BreakerOrder { ForcedOpen = "forced_open", Disabled = "disabled", Shadow = "shadow" }
    BreakerHint { Tool = "tool", Dependency = "dependency", Global = "global" }
    Priority { Low = "low", Normal = "normal", High = "high" }
    Effect { ReadOnly = "read_only", Idempotent = "idempotent", Mutating = "mutating" }
    Capability {
        Streaming = "streaming", Idempotency = "idempotency", Caching = "caching",
        OwnRetries = "own_retries",
    }
}
