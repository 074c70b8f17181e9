//! How often a test repeats: a few rounds in every run, many in a soak.

use std::env;

/// The environment variable for the full number of rounds: `TR_SOAK=1`, as `cargo lab soak` sets
/// it.
pub const SOAK: &str = "TR_SOAK";

/// `quick` rounds, or `full` ones where [`SOAK`] is set to `1`.
///
/// ```
/// use tr_testkit::rounds;
///
/// for round in 0..rounds(50, 1_000) {
///     // … a child process killed at one point, say.
/// }
/// ```
pub fn rounds(quick: u64, full: u64) -> u64 {
    if env::var_os(SOAK).is_some_and(|soak| soak == "1") { full } else { quick }
}
