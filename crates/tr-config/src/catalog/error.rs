//! What is wrong with a catalog, line by line.
use std::{error::Error, fmt};
use tr_wire::{EnvelopeFault, read::Faults};

/// A catalog, or a [configuration](crate::stack), with mistakes: all of them, each with its line.
///
/// ```
/// use tr_config::ToolCatalog;
///
/// let error = ToolCatalog::from_json(r#"{
///     "tools": {
///         "search": {"timeuot_ms": 5000},
///         "book": {"effect": "sometimes", "depends_on": ["serch"]}
///     }
/// }"#).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     r#"the tool catalog has 3 mistakes
/// line 3, column 34: /tools/search/timeuot_ms: expected a known key, found the unknown key "timeuot_ms" (did you mean "timeout_ms"?)
/// line 4, column 28: /tools/book/effect: expected "read_only", "idempotent" or "mutating", found "sometimes"
/// line 4, column 56: /tools/book/depends_on/0: expected the name of a tool of this catalog, found "serch" (did you mean "search"?)"#,
/// );
/// ```
///
/// Its `Debug` says the same, for programs that return it from `main`.
pub struct CatalogError {
    what: &'static str,
    mistakes: Vec<Mistake>,
    more: usize,
}

/// One mistake of a catalog or a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mistake {
    /// The line and the column, from 1; `None` if the mistake is in no text, or the place is not known.
    pub place: Option<(usize, usize)>,
    /// The fault, with its JSON pointer.
    pub fault: EnvelopeFault,
}

impl CatalogError {
    pub(super) fn new(faults: Faults, text: &str) -> Self {
        Self::of("the tool catalog", faults, text)
    }

    /// The mistakes of another text that is configuration.
    pub(crate) fn of(what: &'static str, faults: Faults, text: &str) -> Self {
        let (faults, more) = faults.into_sorted();
        let place =
            |fault: &EnvelopeFault| fault.offset().map(|offset| line_and_column(text, offset));
        let mistakes =
            faults.into_iter().map(|fault| Mistake { place: place(&fault), fault }).collect();
        Self { what, mistakes, more }
    }

    /// Every mistake, in the order of the text. Past 100 they are only counted.
    #[must_use]
    pub fn mistakes(&self) -> &[Mistake] {
        &self.mistakes
    }
}

fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        self.fault.fmt(f)
    }
}

impl fmt::Debug for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for CatalogError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.mistakes.len() + self.more {
            1 => write!(f, "{} has a mistake", self.what)?,
            count => write!(f, "{} has {count} mistakes", self.what)?,
        }
        self.mistakes.iter().try_for_each(|mistake| write!(f, "\n{mistake}"))?;
        match self.more {
            0 => Ok(()),
            more => write!(f, "\nand {more} more"),
        }
    }
}

impl Error for CatalogError {}
