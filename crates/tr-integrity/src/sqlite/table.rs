//! The SQL statements within one transaction.
use crate::store::{Entry, Head, Revision};
use tr_sqlite::{
    Error, Result,
    rusqlite::{self, Connection, OptionalExtension, Row, params},
};

/// The session tables within one transaction.
pub(super) struct Table<'c>(pub(super) &'c Connection);

/// Success, or the head that caused the refusal.
pub(super) type CompareResult = std::result::Result<(), Option<Revision>>;

pub(super) const HEAD: &str = "SELECT number, revision, stamp \
     FROM sessions JOIN session_log ON place BETWEEN first AND last \
     WHERE id = ?1 ORDER BY place DESC LIMIT 1";
pub(super) const ENTRIES: &str = "SELECT revision, stamp, at, body \
     FROM sessions JOIN session_log ON place BETWEEN first AND last \
     WHERE id = ?1 ORDER BY place";
pub(super) const LIST: &str = "SELECT id, revision, stamp, at \
     FROM sessions JOIN session_log \
     ON place = (SELECT max(place) FROM session_log WHERE place BETWEEN first AND last) \
     WHERE id >= ?1 ORDER BY id LIMIT ?2";
pub(super) const EMPTY: &str = "DELETE FROM session_log \
     WHERE place BETWEEN ?1 << 32 AND (?1 << 32) + 4294967295";

const FULL: &str = "the session has 4294967295 entries, no more can follow";

/// The log key of an entry. `None` past the last number of its session.
fn place(session: i64, number: u64) -> Option<i64> {
    u32::try_from(number).ok().map(|number| session << 32 | i64::from(number))
}

fn revision(row: &Row<'_>, at: usize) -> rusqlite::Result<Revision> {
    let whole = |at: usize| row.get::<_, i64>(at).map(i64::cast_unsigned);
    Ok(Revision { number: whole(at)?, stamp: whole(at + 1)? })
}

impl Table<'_> {
    pub(super) fn load(&self, session: &str) -> Result<Vec<Entry>> {
        let mut load = self.0.prepare_cached(ENTRIES)?;
        let entries = load.query_map([session], |row| {
            let at = row.get::<_, i64>(2)?.cast_unsigned();
            Ok(Entry { revision: revision(row, 0)?, at, body: row.get(3)? })
        })?;
        Ok(entries.collect::<rusqlite::Result<_>>()?)
    }

    pub(super) fn append(
        &self,
        session: &str,
        after: Option<Revision>,
        entry: &Entry,
    ) -> Result<CompareResult> {
        let (number, head) = self.head(session)?.unzip();
        if head != after {
            let is_there = match number {
                Some(number) => self.has(number, entry.revision)?,
                None => false,
            };
            return Ok(if is_there { Ok(()) } else { Err(head) });
        }
        let number = match number {
            Some(number) => number,
            None => self.begin(session)?,
        };
        self.insert(number, entry)?;
        Ok(Ok(()))
    }

    pub(super) fn compact(&self, session: &str, base: &Entry) -> Result<CompareResult> {
        let head = self.head(session)?;
        let Some((number, _)) = head.filter(|(_, head)| *head == base.revision) else {
            return Ok(Err(head.map(|(_, head)| head)));
        };
        self.empty(number)?;
        self.insert(number, base)?;
        Ok(Ok(()))
    }

    pub(super) fn list(&self, after: Option<&str>, limit: usize) -> Result<Vec<Head>> {
        let mut list = self.0.prepare_cached(LIST)?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        // No id is between this one and `after`; the first of all is the empty one.
        let from = after.map_or_else(String::new, |after| format!("{after}\0"));
        let heads = list.query_map(params![from, limit], |row| {
            let at = row.get::<_, i64>(3)?.cast_unsigned();
            Ok(Head { session: row.get(0)?, revision: revision(row, 1)?, at })
        })?;
        Ok(heads.collect::<rusqlite::Result<_>>()?)
    }

    pub(super) fn delete(&self, session: &str) -> Result<bool> {
        let mut find = self.0.prepare_cached("SELECT number FROM sessions WHERE id = ?1")?;
        let Some(number) = find.query_row([session], |row| row.get(0)).optional()? else {
            return Ok(false);
        };
        self.empty(number)?;
        self.forget(number)?;
        Ok(true)
    }

    /// Writes a row and rolls it back, to check that the file is writable.
    pub(super) fn try_writing(&self) -> Result<()> {
        self.0.execute("INSERT INTO sessions (id) VALUES (hex(randomblob(16)))", [])?;
        self.forget(self.0.last_insert_rowid())
    }

    fn head(&self, session: &str) -> Result<Option<(i64, Revision)>> {
        let mut head = self.0.prepare_cached(HEAD)?;
        let head = head.query_row([session], |row| Ok((row.get(0)?, revision(row, 1)?)));
        Ok(head.optional()?)
    }

    fn has(&self, session: i64, revision: Revision) -> Result<bool> {
        let sql = "SELECT 1 FROM session_log WHERE place = ?1 AND stamp = ?2";
        let mut has = self.0.prepare_cached(sql)?;
        // An entry without a place does not exist.
        Ok(has.exists(params![place(session, revision.number), revision.stamp.cast_signed()])?)
    }

    fn begin(&self, session: &str) -> Result<i64> {
        self.0.prepare_cached("INSERT INTO sessions (id) VALUES (?1)")?.execute([session])?;
        Ok(self.0.last_insert_rowid())
    }

    fn insert(&self, session: i64, entry: &Entry) -> Result<()> {
        let sql = "INSERT INTO session_log (place, stamp, at, body) VALUES (?1, ?2, ?3, ?4)";
        let Entry { revision: Revision { number, stamp }, at, body } = entry;
        let place = place(session, *number).ok_or_else(|| Error::refused(FULL))?;
        let mut insert = self.0.prepare_cached(sql)?;
        insert.execute(params![place, stamp.cast_signed(), at.cast_signed(), body])?;
        Ok(())
    }

    fn forget(&self, number: i64) -> Result<()> {
        self.0.prepare_cached("DELETE FROM sessions WHERE number = ?1")?.execute([number])?;
        Ok(())
    }

    fn empty(&self, number: i64) -> Result<()> {
        self.0.prepare_cached(EMPTY)?.execute([number])?;
        Ok(())
    }
}
