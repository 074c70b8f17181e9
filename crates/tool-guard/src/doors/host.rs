//! A host that runs its tools itself: it says which call it is about to make and how each ended, as lines of JSON.
pub(crate) mod calls;
pub(crate) mod decider;
pub(crate) mod events;
pub(crate) mod streams;
pub(crate) mod table;
