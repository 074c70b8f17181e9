//! The rules for stores.
use super::subject::InFile;

tr_integrity::conformance::conformance! {
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async { InFile::new().await }
}
