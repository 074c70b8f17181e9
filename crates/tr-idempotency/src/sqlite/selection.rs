//! A [`Query`] as a condition on the rows of `calls`.
use super::row::time;
use crate::store::{Query, Selector, StateFilter};
use tr_sqlite::rusqlite::ToSql;

/// The condition of the index of open calls; SQLite uses the index only if a query repeats it.
pub(super) const OPEN: &str = "state IN ('inflight', 'unknown')";

/// The states that this version can read. A macro, so that `concat!` can use it.
macro_rules! known_states {
    () => {
        "state IN ('inflight', 'done', 'failed_never', 'failed_when_asked', 'failed_freely', \
         'cancelled', 'unknown')"
    };
}
pub(super) use known_states;

/// A condition and its parameters, except `:now`.
pub(super) struct Selection {
    pub(super) sql: String,
    params: Vec<(&'static str, Box<dyn ToSql + Send>)>,
}

impl Selection {
    /// Not [`is_pinned`](crate::protocol::Record::is_pinned), as the record stands now.
    pub(super) const FREE: &str = concat!(
        "((pinned = 0 AND ",
        known_states!(),
        ") OR (state = 'inflight' AND until <= :now AND NOT mutating))"
    );

    /// Every selection has the parameters `:now` and `:ran`.
    pub(super) const TIMES: &str = ":now + :ran IS NOT NULL";

    /// The records that match, except that leases of dead processes count until they are ended.
    pub(super) fn of(query: &Query) -> Self {
        let mut selection = Self::of_selector(&query.selector);
        selection.sql += " AND (over_at > :now OR over_ran > :ran)";
        if query.state != StateFilter::Any {
            selection.sql = format!("{} AND {OPEN}", selection.sql);
        }
        match query.state {
            StateFilter::Any => {}
            StateFilter::Inflight { at_least } => {
                selection.sql += " AND state = 'inflight' AND until > :now AND \
                                  max(:now - claimed_at, 0) >= :at_least";
                selection.params.push((":at_least", Box::new(time(at_least))));
            }
            StateFilter::Unknown => {
                selection.sql +=
                    " AND (state = 'unknown' OR (state = 'inflight' AND until <= :now))";
            }
        }
        selection
    }

    /// All records that may match, those that cannot be read included.
    pub(super) fn of_any(query: &Query) -> Self {
        let mut selection = Self::of_selector(&query.selector);
        if query.state != StateFilter::Any {
            let known = known_states!();
            selection.sql = format!("{} AND ({OPEN} OR NOT ({known}))", selection.sql);
        }
        selection
    }

    fn of_selector(selector: &Selector) -> Self {
        let mut params: Vec<(&str, Box<dyn ToSql + Send>)> = Vec::new();
        let mut sql = Self::TIMES.to_owned();
        match selector {
            Selector::All => {}
            Selector::Key(key) => {
                sql += " AND key = :key";
                params.push((":key", Box::new(*key.as_bytes())));
            }
            Selector::Keys(keys) => {
                sql += " AND key BETWEEN :first AND :last";
                params.push((":first", Box::new(*keys.start().as_bytes())));
                params.push((":last", Box::new(*keys.end().as_bytes())));
            }
            Selector::Session(session) => {
                sql += " AND session = :session";
                params.push((":session", Box::new(session.clone())));
            }
            Selector::Equal(session, digest) => {
                sql += " AND session = :session AND digest = :digest";
                params.push((":session", Box::new(session.clone())));
                params.push((":digest", Box::new(*digest.as_bytes())));
            }
            Selector::Tool(prefix) => {
                sql += " AND tool >= :tool";
                params.push((":tool", Box::new(prefix.clone())));
                if let Some(past) = past(prefix) {
                    sql += " AND tool < :past";
                    params.push((":past", Box::new(past)));
                }
            }
        }
        Self { sql, params }
    }

    pub(super) fn params<'p>(
        &'p self,
        [now, ran]: &'p [i64; 2],
    ) -> Vec<(&'static str, &'p dyn ToSql)> {
        let mut params: Vec<(_, &dyn ToSql)> = vec![(":now", now), (":ran", ran)];
        params.extend(self.params.iter().map(|(name, value)| (*name, &**value as &dyn ToSql)));
        params
    }
}

/// The first text after all that begin with `prefix`; `None` if there is none.
fn past(prefix: &str) -> Option<String> {
    let mut past = prefix.to_owned();
    while let Some(last) = past.pop() {
        // Steps over the surrogates, which are no characters.
        if let Some(next) = (last..=char::MAX).nth(1) {
            past.push(next);
            return Some(past);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::past;

    #[test]
    fn what_begins_so_lies_before_its_past() {
        for prefix in ["pay", "pay.", "z", "\u{d7ff}", "a\u{10ffff}", "é"] {
            let past = past(prefix).unwrap();
            assert!(*prefix < *past);
            assert!(format!("{prefix}\u{10ffff}\u{10ffff}") < past);
            assert!(!past.starts_with(prefix));
        }
        assert_eq!(past(""), None);
        assert_eq!(past("\u{10ffff}"), None);
        assert_eq!(past("a\u{10ffff}").as_deref(), Some("b"));
    }
}
