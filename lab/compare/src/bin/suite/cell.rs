//! The result of a scenario: one cell for each subject, a row for each need, a section for each kind of layer.

/// What one subject did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cell {
    /// It does what is needed; this was seen.
    Passed(String),
    /// It does not; this was seen.
    Failed(String),
    /// It has nothing that the scenario could be run with.
    Without(&'static str),
}

impl Cell {
    /// What was seen, and whether it is what is needed.
    pub(crate) fn judge(good: bool, seen: impl Into<String>) -> Self {
        if good { Self::Passed(seen.into()) } else { Self::Failed(seen.into()) }
    }
}

/// One need, and what each subject of the section does about it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) need: &'static str,
    pub(crate) cells: Vec<Cell>,
}

/// The subjects of one kind, ours first, side by side.
#[derive(Debug)]
pub(crate) struct Section {
    pub(crate) title: &'static str,
    /// How the subjects were set up.
    pub(crate) setting: &'static str,
    pub(crate) subjects: Vec<Name>,
    pub(crate) rows: Vec<Row>,
    /// What the table does not say.
    pub(crate) notes: &'static str,
}

/// What a column is headed by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Name {
    /// The package that it comes from, whose version is shown too.
    pub(crate) package: &'static str,
    /// Which part of it, if it has several.
    pub(crate) part: &'static str,
}

impl Name {
    pub(crate) const fn of(package: &'static str, part: &'static str) -> Self {
        Self { package, part }
    }
}
