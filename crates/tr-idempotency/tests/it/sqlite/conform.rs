//! The rules of all stores, on one file with two connections.
use super::subject::File;
use tr_idempotency::conformance::conformance;

conformance! {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async { File::new().await }
}
