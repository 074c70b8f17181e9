//! The schema versions of the file's parts, and the migrations between them.
use crate::error::{Error, ErrorKind, Result};
use rusqlite::{Connection, OptionalExtension};

/// The tables of one part of the program, as a list of migrations.
///
/// Each step is a batch of SQL that brings the part's schema from version `n` to `n + 1`. Add new steps at
/// the end only, and never change a released step.
///
/// ```
/// use tr_sqlite::Schema;
///
/// const NOTES: Schema = Schema::new(
///     "notes",
///     &[
///         "CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL) STRICT",
///         "ALTER TABLE notes ADD COLUMN at INTEGER NOT NULL DEFAULT 0",
///     ],
/// );
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    name: &'static str,
    steps: &'static [&'static str],
}

/// The table of the parts' formats.
const TABLE: &str = "CREATE TABLE IF NOT EXISTS tr_schema (
    part TEXT NOT NULL PRIMARY KEY,
    format INTEGER NOT NULL
) STRICT, WITHOUT ROWID";

impl Schema {
    /// The part called `name`, which these steps create.
    #[must_use]
    pub const fn new(name: &'static str, steps: &'static [&'static str]) -> Self {
        Self { name, steps }
    }

    /// The steps, for tests.
    #[must_use]
    pub const fn steps(&self) -> &'static [&'static str] {
        self.steps
    }

    /// Applies the missing steps. The caller holds the transaction.
    pub(crate) fn migrate(&self, connection: &Connection) -> Result<()> {
        connection.execute_batch(TABLE)?;
        let (found, known) = self.formats(connection)?;
        for step in &self.steps[found as usize..] {
            connection.execute_batch(step)?;
        }
        if found < known {
            connection.execute(
                "INSERT INTO tr_schema (part, format) VALUES (?1, ?2)
                 ON CONFLICT (part) DO UPDATE SET format = excluded.format",
                (self.name, known),
            )?;
        }
        Ok(())
    }

    /// Refuses a file with missing steps, for read-only use.
    pub(crate) fn require(&self, connection: &Connection) -> Result<()> {
        let has_parts = has_table(connection, "tr_schema")?;
        let (found, known) = if has_parts { self.formats(connection)? } else { (0, self.known()) };
        if found < known {
            return Err(Error::new(ErrorKind::Older { part: self.name.into(), found, known }));
        }
        Ok(())
    }

    /// The format of the file, and the newest known one; refuses a newer file.
    fn formats(&self, connection: &Connection) -> Result<(u32, u32)> {
        let sql = "SELECT format FROM tr_schema WHERE part = ?1";
        let found =
            connection.query_row(sql, [self.name], |row| row.get::<_, u32>(0)).optional()?;
        let (found, known) = (found.unwrap_or(0), self.known());
        if found > known {
            return Err(Error::new(ErrorKind::Newer { part: self.name.into(), found, known }));
        }
        Ok((found, known))
    }

    fn known(&self) -> u32 {
        u32::try_from(self.steps.len()).unwrap_or(u32::MAX)
    }
}

/// Whether the file, as it is seen, has this table.
pub(crate) fn has_table(connection: &Connection, name: &str) -> Result<bool> {
    let table = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
    Ok(connection.prepare(table)?.exists([name])?)
}
