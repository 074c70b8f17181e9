//! Messages as bytes: read and written here, decided nowhere.
pub(crate) mod batch;
pub(crate) mod elements;
pub(crate) mod http_names;
pub(crate) mod jsonrpc;
pub(crate) mod lines;
pub(crate) mod mark;
pub(crate) mod mirrored;
pub(crate) mod params;
pub(crate) mod scan;
pub(crate) mod sse;
