//! A [`Query`] as a condition on the rows of `calls`.
use super::row::time;
use crate::store::{Query, Selector, StateFilter};
use tr_core::canonical::Key;
use tr_sqlite::rusqlite::{ToSql, types::Value};

/// The condition of the index of open calls; SQLite uses the index only if a query repeats it.
pub(super) const OPEN: &str = "state IN ('inflight', 'unknown')";

/// Open, or in a state that this version cannot read. SQLite uses the index of these calls only if a query repeats it.
pub(super) const UNENDED: &str =
    "state NOT IN ('done', 'failed_never', 'failed_when_asked', 'failed_freely', 'cancelled')";

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
    params: Vec<(&'static str, Value)>,
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
                selection.params.push((":at_least", time(at_least).into()));
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
            selection.sql = format!("{} AND {UNENDED}", selection.sql);
        }
        selection
    }

    fn of_selector(selector: &Selector) -> Self {
        let text = |text: &str| Value::from(text.to_owned());
        let bytes = |bytes: &[u8; 32]| Value::from(bytes.to_vec());
        let key = |key: &Key| bytes(key.as_bytes());
        let (rows, values) = match selector {
            Selector::All => ("", vec![]),
            Selector::Key(one) => (" AND key = :first", vec![key(one)]),
            Selector::Keys(keys) => {
                (" AND key BETWEEN :first AND :second", vec![key(keys.start()), key(keys.end())])
            }
            Selector::Session(session) => (" AND session = :first", vec![text(session)]),
            Selector::Equal(session, digest) => {
                let values = vec![text(session), bytes(digest.as_bytes())];
                (" AND session = :first AND digest = :second", values)
            }
            Selector::Tool(prefix) => match past(prefix) {
                Some(past) => {
                    (" AND tool >= :first AND tool < :second", vec![text(prefix), past.into()])
                }
                None => (" AND tool >= :first", vec![text(prefix)]),
            },
        };
        let params = [":first", ":second"].into_iter().zip(values).collect();
        Self { sql: format!("{}{rows}", Self::TIMES), params }
    }

    pub(super) fn params<'p>(
        &'p self,
        times: &'p [(&'static str, i64)],
    ) -> Vec<(&'static str, &'p dyn ToSql)> {
        let own = self.params.iter().map(|(name, value)| (*name, value as &dyn ToSql));
        times.iter().map(|(name, time)| (*name, time as &dyn ToSql)).chain(own).collect()
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
