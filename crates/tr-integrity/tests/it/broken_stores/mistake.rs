//! What stores may do wrong.

macro_rules! mistakes {
    ($($(#[$doc:meta])* $mistake:ident,)*) => {
        /// What a store does wrong.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Mistake {
            /// Nothing.
            Sound,
            $($(#[$doc])* $mistake,)*
        }

        pub(crate) const ALL: &[Mistake] = &[$(Mistake::$mistake,)*];
    };
}

mistakes! {
    /// Appends without a look at the head.
    AppendsBlindly,
    /// Compares numbers only.
    IgnoresStamps,
    /// Looks at the head, and appends later.
    LooksThenAppends,
    /// The last writer of a number wins.
    OverwritesEntries,
    /// An entry sent again is a conflict.
    ForgetsItsEntries,
    /// An entry sent again is recognized as the last one only.
    RecognizesTheLastOnly,
    /// An entry sent again is recognized by its number.
    RecognizesByNumber,
    /// An entry sent again is added again.
    AppendsAgain,
    /// A conflict does not say what the head is.
    TellsNoHead,
    /// A conflict is told as another failure.
    TellsNoConflict,
    /// A session is begun by an entry behind any head.
    BeginsAnywhere,
    /// Bytes are kept as text.
    KeepsText,
    /// Long entries are cut.
    CutsBodies,
    /// Empty bodies are left out.
    DropsEmptyBodies,
    /// Stamps are kept as floating-point numbers.
    RoundsStamps,
    /// Entries come back by their stamps.
    SortsByStamp,
    /// Ids are compared without their case.
    FoldsCase,
    /// Ids lose the white space at their ends.
    TrimsIds,
    /// Ids end at a NUL.
    CutsIdsAtNul,
    /// Long ids are cut.
    CutsIds,
    /// Compaction does nothing.
    CompactsNothing,
    /// Compaction keeps the entries before the base.
    KeepsWhatIsBehind,
    /// Compaction looks at no head.
    CompactsBlindly,
    /// Compaction begins a session.
    CompactsNothingIntoSomething,
    /// A compacted session begins with a revision of its own.
    RenumbersBases,
    /// Compaction takes the sessions beside it too.
    CompactsAll,
    /// Deletion leaves the entries.
    DeletesNothing,
    /// Deletion finds its session by prefix.
    DeletesByPrefix,
    /// Deletion does not say whether there was one.
    SaysAlwaysDeleted,
    /// A list is in no order.
    ListsUnsorted,
    /// A list begins again with the session that it is to come after.
    ListsFromIncluded,
    /// A limit is not kept.
    ListsAll,
    /// A list tells the first entry.
    ListsFirstEntries,
    /// Deleted sessions are listed.
    ListsDeleted,
    /// A restart loses the last entry.
    LosesTheLastEntry,
    /// A client sees what it has read once.
    ReadsStale,
}
