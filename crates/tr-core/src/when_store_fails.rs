//! What a store's failure means for a call.

/// What to do with a call that a layer's store cannot record: the store is unavailable, or refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenStoreFails {
    /// Refuse it: the tool does not run, and the model is not called.
    #[default]
    Refuse,
    /// Run it without a record.
    ///
    /// Of records of calls, only duplicates in this process join it. A mutating call that the store has reported as
    /// running, or as of unknown outcome, is refused nevertheless.
    ///
    /// Of sessions, the change is recorded in memory, and written once the store is back; if the process dies
    /// before that, no record shows that the tool ran. A call that finds another writer's change is refused in both
    /// cases.
    Run,
}
