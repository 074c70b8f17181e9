//! The rules for a store of sessions, each as a named test case.
//!
//! # When to use
//!
//! Against a [`SessionStore`](crate::store::SessionStore) of your own: implement [`Subject`] and
//! let [`conformance!`] write a test for each case.
//!
//! ```
//! use std::sync::Arc;
//! use tr_integrity::{
//!     conformance::{self, Subject},
//!     store::{Memory, SessionStore},
//! };
//!
//! struct Mine(Memory);
//!
//! impl Subject for Mine {
//!     fn store(&self) -> Arc<dyn SessionStore> {
//!         Arc::new(self.0.clone())
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
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! conformance::check(async || Mine(Memory::new())).await.unwrap();
//! # }
//! ```
//!
//! Each case gets a subject of its own: an empty store, or one in which the random session ids of
//! the case are not in use. So a shared server is fine.
mod appending;
mod queries;
mod subject;
mod whole_sessions;

pub use self::subject::Subject;
pub use crate::conformance_tests as conformance;
pub use tr_core::conformance::{Violation, Violations};
#[doc(hidden)]
pub use tr_core::conformance_test;

use self::{appending::*, queries::*, subject::Case, whole_sessions::*};

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
            an_unknown_session_has_no_entries
            entries_come_back_in_order_and_as_they_are
            long_entries_come_back_whole
            any_stamp_comes_back
            another_client_sees_what_was_appended
            an_entry_behind_an_old_head_is_a_conflict
            an_entry_behind_no_head_is_a_conflict_if_there_is_one
            an_entry_behind_a_head_that_is_not_there_is_a_conflict
            another_writers_entry_of_the_same_number_is_a_conflict
            of_many_writers_one_wins
            writers_of_different_sessions_do_not_meet
            an_entry_sent_again_is_recognized
            an_entry_sent_again_is_recognized_behind_others
            an_append_that_was_dropped_is_there_or_not
            a_session_created_after_a_deletion_is_another_one
            odd_ids_are_different_sessions
            a_compacted_session_is_its_base
            a_compacted_session_goes_on
            a_base_of_another_head_is_a_conflict
            a_base_of_no_session_is_a_conflict
            a_compaction_sent_again_changes_nothing
            a_compaction_spares_other_sessions
            a_deleted_session_is_gone
            a_writer_of_a_deleted_session_gets_a_conflict
            a_deletion_spares_other_sessions
            sessions_are_listed_in_the_order_of_their_bytes
            sessions_are_listed_in_pages
            a_list_tells_the_last_entry
            a_check_answers
            entries_survive_a_restart
        }
    };
}

conformance_tests! { tr_core::conformance_runner: {} }
