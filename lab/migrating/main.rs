//! The Rust of `docs/migrating.md` compiles, that of the peers too. That is the test.

/// One function for each block: `migrating_24` begins on line 24.
#[allow(clippy::all, clippy::needless_pass_by_value)]
#[allow(non_local_definitions, unnameable_test_items, unused)]
mod rust {
    use tower::BoxError;

    type HyperClient = hyper_util::client::legacy::Client<
        hyper_util::client::legacy::connect::HttpConnector,
        http_body_util::Full<bytes::Bytes>,
    >;

    include!(concat!(env!("OUT_DIR"), "/guide.rs"));
}
