//! The statements of one transaction, at one time.
use super::{
    owners::Owners,
    row::{columns, holder, over_ran, stored, time},
    selection::{OPEN, Selection, known_states},
    time::{Clocks, Times},
};
use crate::{
    protocol::{Millis, Phase},
    record::{RecordState, StateCount},
    store::{Listing, Query, Stored, StoredRecord, UnreadableRecord},
};
use std::time::Duration;
use tr_core::{DedupeScope, canonical::Key};
use tr_sqlite::{
    Result,
    rusqlite::{CachedStatement, Connection, OptionalExtension, Row, params},
};

/// The record has expired, in terms of the index. One whose state this version does not know may be that of a
/// call that may have run, and stays.
const ENDED: &str =
    concat!("pinned IN (0, 1) AND over_ran <= :ran AND over_at <= :now AND ", known_states!());

/// Deletes the rows that match a condition.
fn removal(rows: &str) -> String {
    let times = Selection::TIMES;
    format!("DELETE FROM calls WHERE rowid IN (SELECT rowid FROM calls WHERE {times} AND {rows})")
}

/// The statements that evict one record, in the order in which they are tried.
pub(super) fn evictions() -> [String; 3] {
    [
        removal(&format!("{ENDED} LIMIT 1")),
        removal(concat!("pinned = 0 AND ", known_states!(), " ORDER BY over_ran LIMIT 1")),
        removal(&format!("{OPEN} AND {} LIMIT 1", Selection::FREE)),
    ]
}

/// The table of calls within one transaction.
pub(super) struct Table<'c> {
    connection: &'c Connection,
    pub(super) head: Head,
    pub(super) times: Times,
    /// The store's time.
    pub(super) now: Millis,
    /// The processes that share the file, if [`Owners`] is in use.
    owners: Option<&'c Owners>,
}

/// The counters of the table.
pub(super) struct Head {
    /// The epoch of the last claim or settlement, of any key.
    pub(super) epoch: u64,
    /// The time of the last claim or settlement.
    pub(super) clock: Millis,
    pub(super) records: u64,
    /// How long the file had been in use when that was last written.
    ran: Millis,
}

/// How often the time in use is written where nothing else is, in milliseconds.
const NOTED: Millis = 60_000;

/// How long the file has been in use.
pub(super) fn ran(connection: &Connection) -> Result<Millis> {
    let ran = connection.query_row("SELECT ran FROM calls_head", [], |row| row.get(0));
    Ok(ran.map(i64::cast_unsigned)?)
}

/// Under which key the records were written.
pub(super) fn mark(table: &Table<'_>) -> Result<Vec<u8>> {
    Ok(table.prepare("SELECT mark FROM calls_head")?.query_row([], |row| row.get(0))?)
}

/// Ends the leases of processes that have ended.
pub(super) fn end_dead_leases(table: &Table<'_>) -> Result<()> {
    let Some(owners) = table.owners else { return Ok(()) };
    let [held, end] = dead_leases();
    let mut held = table.prepare(&held)?;
    let held = held.query_map([time(table.now)], |row| row.get(0))?;
    let held = held.collect::<std::result::Result<Vec<i64>, _>>()?;
    for dead in held.into_iter().filter(|owner| owners.is_dead(*owner)) {
        table.prepare(&end)?.execute(params![time(table.now), dead])?;
    }
    Ok(())
}

/// Who holds leases, and the statement that ends those of one of them.
pub(super) fn dead_leases() -> [String; 2] {
    let held = format!("{OPEN} AND state = 'inflight' AND until > ?1 AND holder");
    [
        format!("SELECT DISTINCT holder FROM calls WHERE {held} IS NOT NULL"),
        format!("UPDATE calls SET until = ?1 WHERE {held} = ?2"),
    ]
}

/// The number of records of each tool that stand, by scope and state. States that this version does not know
/// are left out.
pub(super) fn state_counts(table: &Table<'_>) -> Result<Vec<StateCount>> {
    let mut counts = table.prepare(
        "SELECT tool, session IS NULL AND NOT mutating, state, count(*), \
         sum(state = 'inflight' AND until <= :now), max(until - changed_at) \
         FROM calls WHERE over_at > :now OR over_ran > :ran GROUP BY 1, 2, 3",
    )?;
    let mut rows = counts.query(&table.times()[..])?;
    let mut counts = Vec::new();
    while let Some(row) = rows.next()? {
        let is_global: bool = row.get(1)?;
        let whole = |at| row.get::<_, i64>(at).map(|it| it.max(0).cast_unsigned());
        let phase: String = row.get(2)?;
        let Ok(phase) = phase.parse() else { continue };
        counts.push(StateCount {
            tool: row.get(0)?,
            scope: if is_global { DedupeScope::Global } else { DedupeScope::Session },
            state: RecordState::of(phase),
            records: whole(3)?,
            stale: whole(4)?,
            ttl: Duration::from_millis(whole(5)?),
        });
    }
    Ok(counts)
}

impl<'c> Table<'c> {
    pub(super) fn new(
        connection: &'c Connection,
        clocks: &Clocks,
        owners: Option<&'c Owners>,
    ) -> Result<Self> {
        let mut head =
            connection.prepare_cached("SELECT epoch, clock, records, ran FROM calls_head")?;
        let head = head.query_row([], |row| {
            let whole = |at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
            let [epoch, clock, records, ran] = [whole(0)?, whole(1)?, whole(2)?, whole(3)?];
            Ok(Head { epoch, clock, records, ran })
        })?;
        let times = clocks.read(head.clock, head.ran);
        Ok(Self { connection, times, now: times.now, head, owners })
    }

    fn prepare(&self, sql: &str) -> Result<CachedStatement<'c>> {
        Ok(self.connection.prepare_cached(sql)?)
    }

    /// Writes the last epoch and the times.
    pub(super) fn note(&self, epoch: u64) -> Result<()> {
        let mut note = self.prepare("UPDATE calls_head SET epoch = ?1, clock = ?2, ran = ?3")?;
        note.execute(params![epoch.cast_signed(), time(self.now), time(self.times.ran)])?;
        Ok(())
    }

    /// Sets the mark if it is `from`, and returns it.
    pub(super) fn set_mark(&self, from: &[u8], to: &[u8]) -> Result<Vec<u8>> {
        self.prepare("UPDATE calls_head SET mark = ?2 WHERE mark = ?1")?.execute([from, to])?;
        mark(self)
    }

    /// The record of this key as it was written, except that a lease ends with its owner.
    pub(super) fn find(&self, key: &Key) -> Result<Option<Stored>> {
        let mut find =
            self.prepare(concat!("SELECT ", columns!(), " FROM calls WHERE key = ?1"))?;
        let mut rows = find.query([key.as_bytes()])?;
        rows.next()?.map(|row| self.stored(row)).transpose()
    }

    /// The record of a row as it was written, except that a lease ends with its owner, and that a jump of
    /// the machine's clock does not end it.
    fn stored(&self, row: &Row<'_>) -> Result<Stored> {
        let mut found = stored(row, self.now)?;
        let record = &mut found.record;
        if let (Phase::Inflight, Some(owners)) = (record.state.phase(), self.owners)
            && record.until > self.now
            && holder(row)?.is_some_and(|owner| owners.is_dead(owner))
        {
            record.until = self.now;
        }
        self.times.keep(record, over_ran(row)?);
        Ok(found)
    }

    /// Whether the process that last claimed this key is alive, if that is known.
    pub(super) fn is_owner_alive(&self, key: &Key) -> Result<Option<bool>> {
        let Some(owners) = self.owners else { return Ok(None) };
        let mut holder = self.prepare("SELECT holder FROM calls WHERE key = ?1")?;
        let holder = holder.query_row([key.as_bytes()], |row| row.get::<_, Option<i64>>(0));
        Ok(holder.optional()?.flatten().map(|owner| !owners.is_dead(owner)))
    }

    /// The record of this key as it stands now.
    pub(super) fn standing(&self, key: &Key) -> Result<Option<Stored>> {
        Ok(self.find(key)?.and_then(|stored| stored.at(self.now)))
    }

    pub(super) fn insert(&self, stored: &Stored) -> Result<()> {
        let mut insert = self.prepare(concat!(
            "INSERT INTO calls (",
            columns!(),
            ") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        ))?;
        let Stored { key, record, tool, session, notes, .. } = stored;
        insert.execute(params![
            key.as_bytes(),
            record.digest.as_bytes(),
            record.mutating,
            record.state.phase().as_str(),
            record.token.epoch.cast_signed(),
            record.token.owner.cast_signed(),
            record.version.cast_signed(),
            record.runs,
            time(record.claimed_at),
            time(record.changed_at),
            time(record.until),
            time(record.unknown_ttl),
            tool,
            session,
            notes,
            record.state.body(),
            self.owners.map(|owners| owners.own),
            time(self.times.over_ran(record)),
        ])?;
        Ok(())
    }

    /// Writes the fields that change with the state.
    pub(super) fn update(&self, key: &Key, record: &StoredRecord) -> Result<()> {
        let mut update = self.prepare(
            "UPDATE calls SET state = ?2, epoch = ?3, owner = ?4, version = ?5, changed_at = ?6, \
             until = ?7, body = ?8, over_ran = ?9 WHERE key = ?1",
        )?;
        update.execute(params![
            key.as_bytes(),
            record.state.phase().as_str(),
            record.token.epoch.cast_signed(),
            record.token.owner.cast_signed(),
            record.version.cast_signed(),
            time(record.changed_at),
            time(record.until),
            record.state.body(),
            time(self.times.over_ran(record)),
        ])?;
        Ok(())
    }

    /// Deletes the record of this key; `false` if there is none, or it has expired.
    pub(super) fn clear(&self, key: &Key) -> Result<bool> {
        let [(_, now), (_, ran)] = self.times();
        let cleared = "DELETE FROM calls WHERE key = ?1 RETURNING over_at > ?2 OR over_ran > ?3";
        let mut clear = self.prepare(cleared)?;
        let cleared = clear.query_row(params![key.as_bytes(), now, ran], |row| row.get(0));
        Ok(cleared.optional()?.unwrap_or(false))
    }

    /// The parameters that are times.
    fn times(&self) -> [(&'static str, i64); 2] {
        [(":now", time(self.now)), (":ran", time(self.times.ran))]
    }

    /// Evicts the settled record that expires next.
    pub(super) fn evict(&self) -> Result<bool> {
        for evict in evictions() {
            if self.removed(&evict)? > 0 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Deletes up to `limit` expired records.
    pub(super) fn sweep(&self, limit: usize) -> Result<u64> {
        if self.times.ran >= self.head.ran.saturating_add(NOTED) {
            self.note(self.head.epoch)?;
        }
        Ok(self.removed(&removal(&format!("{ENDED} LIMIT {limit}")))? as u64)
    }

    /// Runs a [`removal`], and returns how many records it deleted.
    fn removed(&self, removal: &str) -> Result<usize> {
        Ok(self.prepare(removal)?.execute(&self.times()[..])?)
    }

    /// Up to `limit` records that match, and up to `limit` of those that cannot be read, of the rows before
    /// the last of these. Brief, it reads no answers of calls that are done.
    pub(super) fn listing(&self, query: &Query, limit: usize, is_brief: bool) -> Result<Listing> {
        let selection = Selection::of_any(query);
        let columns = match is_brief {
            true => {
                columns!().replace(" body,", " CASE state WHEN 'done' THEN NULL ELSE body END,")
            }
            false => columns!().to_owned(),
        };
        let mut list =
            self.prepare(&format!("SELECT {columns} FROM calls WHERE {}", selection.sql))?;
        let mut rows = list.query(&*selection.params(&self.times()))?;
        let mut listing = Listing::default();
        let Listing { records, unreadable } = &mut listing;
        while records.len() < limit
            && let Some(row) = rows.next()?
        {
            match self.stored(row).map(|stored| stored.at(self.now)) {
                Ok(stored) => records.extend(stored.filter(|stored| query.matches(stored))),
                // A row without a key of this length is no call's.
                Err(why) if unreadable.len() < limit => {
                    unreadable.extend(row.get(0).ok().map(|key| UnreadableRecord {
                        key: Key::from_bytes(key),
                        tool: row.get(12).ok(),
                        changed_at: row.get(9).ok().map(i64::cast_unsigned),
                        why: why.to_string(),
                    }));
                }
                Err(_) => {}
            }
        }
        Ok(listing)
    }

    pub(super) fn count(&self, selection: &Selection) -> Result<u64> {
        let mut count =
            self.prepare(&format!("SELECT count(*) FROM calls WHERE {}", selection.sql))?;
        let params = self.times();
        Ok(count
            .query_row(&*selection.params(&params), |row| row.get(0).map(i64::cast_unsigned))?)
    }

    /// Deletes up to `limit` matching records, and no pinned ones.
    pub(super) fn flush(&self, selection: &Selection, limit: usize) -> Result<u64> {
        let (selected, free) = (&selection.sql, Selection::FREE);
        let mut flush = self.prepare(&removal(&format!("{selected} AND {free} LIMIT {limit}")))?;
        Ok(flush.execute(&*selection.params(&self.times()))? as u64)
    }
}
