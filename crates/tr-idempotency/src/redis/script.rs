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
    ($file:literal) => {
        script!("#!lua flags=allow-oom\n", "lua/head.lua", "lua/record.lua", $file)
    };
}

pub(super) static CLAIM: LazyLock<Script> =
    script!("", "lua/head.lua", "lua/claim_new.lua", "lua/record.lua", "lua/claim.lua");
pub(super) static FINALIZE: LazyLock<Script> = script!(
    "#!lua flags=allow-oom\n",
    "lua/head.lua",
    "lua/finalize_held.lua",
    "lua/record.lua",
    "lua/finalize.lua"
);
pub(super) static RENEW: LazyLock<Script> = script!("lua/renew.lua");
pub(super) static RELEASE: LazyLock<Script> = script!("lua/release.lua");
pub(super) static SETTLE: LazyLock<Script> = script!("lua/settle.lua");
pub(super) static CLEAR: LazyLock<Script> = script!("lua/clear.lua");
pub(super) static FLUSH: LazyLock<Script> = script!("lua/flush.lua");
pub(super) static MARK: LazyLock<Script> = script!("#!lua flags=allow-oom\n", "lua/mark.lua");
pub(super) static LOOK: LazyLock<Script> = script!("#!lua flags=no-writes\n", "lua/look.lua");

impl Script {
    fn new(code: &'static str) -> Self {
        Self { code, hash: redis::Script::new(code).get_hash().to_owned() }
    }
}
