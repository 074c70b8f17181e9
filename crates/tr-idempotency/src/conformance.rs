//! The rules for record stores, each as a named case.
//!
//! # When to use
//!
//! To test a [`RecordStore`](crate::store::RecordStore) of your own: implement [`Subject`];
//! [`conformance!`] then writes a test for each case.
//!
//! ```
//! use std::{sync::Arc, time::Duration};
//! use tr_idempotency::{
//!     conformance::{self, Subject},
//!     store::{Memory, RecordStore},
//! };
//!
//! struct Mine(Memory);
//!
//! impl Subject for Mine {
//!     fn store(&self) -> Arc<dyn RecordStore> {
//!         Arc::new(self.0.clone())
//!     }
//!     async fn pass(&self, time: Duration) {
//!         tokio::time::sleep(time).await;
//!     }
//! }
//!
//! // In tests, one for each rule:
//! conformance::conformance! {
//!     #[tokio::test]
//!     async { Mine(Memory::new()) }
//! }
//!
//! // Or all of them:
//! # #[tokio::main(flavor = "current_thread", start_paused = true)] async fn main() {
//! conformance::check(async || Mine(Memory::new())).await.unwrap();
//! # }
//! ```
//!
//! Each case gets a subject of its own: an empty store, or one that does not use the case's random
//! keys. Cases count only their own sessions and tools, so a shared server works.
mod claims;
mod ends;
mod leases;
mod queries;
mod subject;
mod watching;

pub use self::subject::{RecordStoreExt, Subject};
pub use crate::conformance_tests as conformance;
pub use tr_core::conformance::{Violation, Violations};
#[doc(hidden)]
pub use tr_core::conformance_test;

use self::{claims::*, ends::*, leases::*, queries::*, subject::Case, watching::*};

/// Writes a test for each rule: attributes, then an `async` block that makes the [`Subject`]. Or passes the list of the
/// cases to another macro, after that macro's own arguments.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_tests {
    ($(#[$attribute:meta])* async $make:block) => {
        $crate::conformance_tests! {
            $crate::conformance::conformance_test:
            { $crate::conformance::run, $(#[$attribute])* async $make }
        }
    };
    ($to:path: $given:tt) => {
        $to! {
            $given
            a_new_key_is_granted
            a_claim_in_force_makes_others_busy
            a_claim_sent_again_is_the_same_claim
            a_claim_whose_reply_was_lost_is_recognized
            of_many_claims_one_is_granted
            other_params_are_a_conflict_in_every_state
            a_done_call_is_replayed
            a_failed_call_runs_again_as_its_record_says
            a_failed_call_is_corrected_by_one_with_other_params
            a_cancelled_call_runs_again
            a_claim_returns_the_former_state
            epochs_grow_past_deleted_records
            a_full_store_refuses_and_keeps_its_claims
            a_lease_that_ends_leaves_unknown
            a_lost_call_that_is_not_mutating_runs_again
            a_mutating_claim_of_a_lost_call_is_refused
            a_lapsed_claim_sent_again_gets_a_new_lease
            a_renewed_lease_lasts
            a_lapsed_lease_is_renewed_while_unclaimed
            a_lost_claim_is_not_renewed
            an_unknown_call_lasts_for_its_time
            a_record_lasts_for_its_time
            an_older_claim_neither_records_nor_deletes
            a_late_end_is_recorded_while_unclaimed
            an_end_sent_again_is_recognized
            the_first_end_is_kept
            bytes_come_back_as_they_are
            a_released_claim_leaves_nothing
            a_release_by_another_owner_does_nothing
            a_call_that_has_ended_is_not_released
            a_lapsed_claim_can_be_released
            an_unknown_call_is_settled_once
            only_unknown_calls_are_settled
            a_later_run_is_not_settled
            a_former_owner_records_nothing_once_settled
            a_cleared_record_is_gone_in_every_state
            a_watcher_wakes_when_the_call_ends
            a_watcher_wakes_when_the_claim_is_released
            a_watcher_wakes_when_the_record_is_cleared
            a_watcher_wakes_when_the_call_is_settled
            a_watcher_wakes_at_once_after_a_change
            a_renewal_is_no_change
            a_record_reads_as_it_stands
            records_are_found_by_key_session_and_tool
            records_are_found_by_a_range_of_keys
            stale_and_unknown_calls_are_found
            a_flush_keeps_calls_that_may_run_twice
            a_sweep_deletes_only_expired_records
            a_check_answers
            a_mark_is_set_once_and_stays
            records_survive_a_restart
        }
    };
}

conformance_tests! { tr_core::conformance_runner: {} }
