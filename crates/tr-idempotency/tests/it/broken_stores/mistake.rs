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
    /// A claim sent again is taken for another's.
    ForgetsOwners,
    /// Everybody is granted.
    GrantsAll,
    /// Records are found by key alone.
    IgnoresDigests,
    /// A lease that ends leaves nothing.
    LeaseEndsRecord,
    /// A call of unknown outcome runs again, whatever its effect.
    RunsUnknownAgain,
    /// A record that is not mutating is run again, even for a mutating claim.
    TrustsTheRecordsEffect,
    /// Leases never end.
    LeasesLast,
    /// The epoch starts again with each record.
    EpochsStartOver,
    /// Renewals do nothing.
    RenewsNothing,
    /// Any owner may renew.
    RenewsAnybody,
    /// Ends are recorded without a look at the token.
    RecordsAnybody,
    /// Only the epoch is compared.
    ComparesEpochsOnly,
    /// Only the owner is compared.
    ComparesOwnersOnly,
    /// A late end is refused.
    RefusesLateEnds,
    /// An end sent again counts as lost.
    ForgetsItsEnds,
    /// The last end stands.
    OverwritesEnds,
    /// A failed claim deletes the record of its owner.
    ReleasesAnybody,
    /// Ended calls can be released.
    ReleasesEnded,
    /// Releases do nothing.
    ReleasesNothing,
    /// Any record can be settled.
    SettlesAll,
    /// A finding about one run settles another.
    SettlesAnyRun,
    /// The mark is set whatever it was.
    MarksOver,
    /// Settling leaves the claim to its holder.
    SettlesWithoutTaking,
    /// Records never end.
    RecordsLast,
    /// Bytes are kept as text.
    KeepsText,
    /// An empty body is none.
    DropsEmptyBodies,
    /// Answers are cut.
    CutsBodies,
    /// What was noted first stays.
    KeepsOldNotes,
    /// Ends do not wake watchers.
    WakesNobody,
    /// A watch misses changes from before it began.
    MissesThePast,
    /// Renewals count as changes.
    CountsRenewals,
    /// Clearing skips calls in flight.
    SparesInflight,
    /// Flushing forgets whatever is meant.
    FlushesPinned,
    /// Flushing one record forgets it, whatever it says.
    FlushesTheNamed,
    /// Tools are found by pattern.
    MatchesPatterns,
    /// A limit is not kept.
    ListsAll,
    /// Leases that have ended are listed as in flight.
    ListsLapsedAsInflight,
    /// Sweeping forgets leases that have ended.
    SweepsLapsed,
    /// Counts are of something else.
    Miscounts,
    /// A full store evicts any record.
    EvictsClaims,
    /// What is read has no digest.
    LosesDigests,
}
