//! A record as a row of `calls`, and back.
use crate::{
    protocol::{Millis, Phase, Record, State, Token},
    store::Stored,
};
use tr_core::canonical::{Digest, Key};
use tr_sqlite::{Error, Result, rusqlite::Row};

/// In the order in which [`stored`] reads them. A macro, so that `concat!` can use it.
macro_rules! columns {
    () => {
        "key, digest, mutating, state, epoch, owner, version, runs, claimed_at, changed_at, \
         until, unknown_ttl, tool, session, notes, body, holder, over_ran"
    };
}
pub(super) use columns;

/// The latest time: two of them can be added without overflowing SQLite's integers.
const LATEST: u64 = i64::MAX.cast_unsigned() / 2;

/// A time as a column.
pub(super) fn time(at: Millis) -> i64 {
    at.min(LATEST).cast_signed()
}

/// Which process holds the claim of a row of [`columns`], if that is known.
pub(super) fn holder(row: &Row<'_>) -> Result<Option<i64>> {
    Ok(row.get(16)?)
}

/// Until when the record of a row of [`columns`] is kept, by the time that the file has been in use.
pub(super) fn over_ran(row: &Row<'_>) -> Result<Millis> {
    Ok(row.get::<_, i64>(17)?.cast_unsigned())
}

/// Reads a row of [`columns`] as it was written.
pub(super) fn stored(row: &Row<'_>, now: Millis) -> Result<Stored> {
    let whole = |at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
    let phase = row.get_ref(3)?.as_str().map_err(Error::unreadable)?;
    let phase = phase.parse::<Phase>().map_err(Error::unreadable)?;
    Ok(Stored {
        key: Key::from_bytes(row.get(0)?),
        record: Record {
            digest: Digest::from_bytes(row.get(1)?),
            mutating: row.get(2)?,
            state: State::of(phase, row.get(15)?),
            token: Token { epoch: whole(4)?, owner: whole(5)? },
            version: whole(6)?,
            runs: row.get(7)?,
            claimed_at: whole(8)?,
            changed_at: whole(9)?,
            until: whole(10)?,
            unknown_ttl: whole(11)?,
        },
        tool: row.get(12)?,
        session: row.get(13)?,
        notes: row.get(14)?,
        now,
    })
}
