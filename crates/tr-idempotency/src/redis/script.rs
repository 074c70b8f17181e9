//! The transitions of the lease protocol as Lua scripts.
//!
//! Each is one script, one round trip, and atomic.
use std::sync::LazyLock;

/// A script and its hash.
pub(super) struct Script {
    pub(super) code: &'static str,
    pub(super) hash: String,
}

/// Prepends `head.lua` and `record.lua` to a script.
///
/// Scripts that end or delete a call may run when the server's memory is full. A claim has no
/// flags: then only its write is refused, and replays go on.
macro_rules! script {
    ($flags:literal, $($file:literal),+) => {
        LazyLock::new(|| Script::new(concat!($flags, $(include_str!($file)),+)))
    };
}

static CLAIM: LazyLock<Script> =
    script!("", "lua/head.lua", "lua/claim_new.lua", "lua/record.lua", "lua/claim.lua");
static FINALISE: LazyLock<Script> = script!(
    "#!lua flags=allow-oom\n",
    "lua/head.lua",
    "lua/finalise_held.lua",
    "lua/record.lua",
    "lua/finalise.lua"
);
static RENEW: LazyLock<Script> =
    script!("#!lua flags=allow-oom\n", "lua/head.lua", "lua/record.lua", "lua/renew.lua");
static RELEASE: LazyLock<Script> =
    script!("#!lua flags=allow-oom\n", "lua/head.lua", "lua/record.lua", "lua/release.lua");
static SETTLE: LazyLock<Script> =
    script!("#!lua flags=allow-oom\n", "lua/head.lua", "lua/record.lua", "lua/settle.lua");
static CLEAR: LazyLock<Script> =
    script!("#!lua flags=allow-oom\n", "lua/head.lua", "lua/record.lua", "lua/clear.lua");
static FLUSH: LazyLock<Script> =
    script!("#!lua flags=allow-oom\n", "lua/head.lua", "lua/record.lua", "lua/flush.lua");
static LOOK: LazyLock<Script> = script!("#!lua flags=no-writes\n", "lua/look.lua");

impl Script {
    fn new(code: &'static str) -> Self {
        Self { code, hash: redis::Script::new(code).get_hash().to_owned() }
    }

    pub(super) fn claim() -> &'static Self {
        &CLAIM
    }

    pub(super) fn finalise() -> &'static Self {
        &FINALISE
    }

    pub(super) fn renew() -> &'static Self {
        &RENEW
    }

    pub(super) fn release() -> &'static Self {
        &RELEASE
    }

    pub(super) fn settle() -> &'static Self {
        &SETTLE
    }

    pub(super) fn clear() -> &'static Self {
        &CLEAR
    }

    pub(super) fn flush() -> &'static Self {
        &FLUSH
    }

    pub(super) fn look() -> &'static Self {
        &LOOK
    }
}
