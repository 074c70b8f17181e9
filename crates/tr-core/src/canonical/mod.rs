//! Canonical JSON, the digests of it, and the keys made from those.
