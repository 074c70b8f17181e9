//! How far writes are replicated.
use std::{num::NonZeroU8, time::Duration};

/// How long to wait for replicas by default.
const WITHIN: Duration = Duration::from_millis(250);

/// How far a claim, a renewal and an end are replicated before they count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Durability {
    /// Only on the primary. A failover may lose it.
    #[default]
    Local,
    /// On this many replicas. If they take longer, the operation fails as
    /// [`Uncertain`](crate::store::StoreErrorKind::Uncertain): a mutating call is not run.
    ///
    /// A failover then loses nothing if one of these replicas is promoted. With one replica, wait
    /// for it. With two, waiting for one is enough if the replica with more writes is promoted, as
    /// sentinels do if they reach it, and the former primary does not return before the other
    /// replica has left it. Waiting for both is always enough, and refuses mutating calls while one
    /// of them is away.
    Wait {
        /// How many replicas.
        replicas: NonZeroU8,
        /// How long to wait for them.
        within: Duration,
    },
}

impl Durability {
    /// Waits for this many replicas, for 250 ms at most.
    #[must_use]
    pub const fn wait_for(replicas: NonZeroU8) -> Self {
        Self::Wait { replicas, within: WITHIN }
    }

    pub(super) const fn waits(self) -> bool {
        matches!(self, Self::Wait { .. })
    }
}
