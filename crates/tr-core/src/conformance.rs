//! What the conformance suites of stores share: a finding, all of them, and a test for each case.
use crate::BoxError;
use std::{error::Error, fmt};

/// A rule that a store breaks: the case, and what the store did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{case}: {what}")]
pub struct Violation {
    case: &'static str,
    what: String,
}

/// The result of a case, and of what it needs.
#[doc(hidden)]
pub type Verdict<T = ()> = Result<T, BoxError>;

/// Every rule that a store breaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violations(Vec<Violation>);

impl Violation {
    #[doc(hidden)]
    #[must_use]
    pub const fn new(case: &'static str, what: String) -> Self {
        Self { case, what }
    }

    /// The case that found it.
    #[must_use]
    pub const fn case(&self) -> &'static str {
        self.case
    }
}

impl Violations {
    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &Violation> {
        self.0.iter()
    }
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|violation| writeln!(f, "{violation}"))
    }
}

impl Error for Violations {}

/// Runs every case.
///
/// # Errors
/// The rules that are broken, all at once.
pub async fn check(
    cases: &[&'static str],
    run: impl AsyncFn(&'static str) -> Result<(), Violation>,
) -> Result<(), Violations> {
    let mut broken = Vec::new();
    for case in cases {
        broken.extend(run(case).await.err());
    }
    if broken.is_empty() { Ok(()) } else { Err(Violations(broken)) }
}

/// A test for each case: the function that runs it, attributes, and the block that makes its subject.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_test {
    ({ $run:path, $(#[$attribute:meta])* async $make:block }) => {};
    ({ $run:path, $(#[$attribute:meta])* async $make:block } $case:ident $($rest:ident)*) => {
        $(#[$attribute])*
        async fn $case() {
            let subject = async $make.await;
            if let Err(violation) = $run(stringify!($case), &subject).await {
                panic!("{violation}");
            }
        }
        $crate::conformance_test! { { $run, $(#[$attribute])* async $make } $($rest)* }
    };
}

/// The list of all cases, and the function that runs one, for a module with `Case`, `Subject` and a function for each case.
#[doc(hidden)]
#[macro_export]
macro_rules! conformance_runner {
    ({} $($case:ident)*) => {
        /// The names of the cases.
        pub const CASES: &[&str] = &[$(stringify!($case),)*];

        /// Runs the case of this name.
        ///
        /// # Errors
        /// What the store did that breaks the rule.
        ///
        /// # Panics
        /// If there is no case of this name.
        pub async fn run<S: Subject>(case: &str, subject: &S) -> Result<(), Violation> {
            let cx = Case::new(subject);
            let (case, end) = match case {
                $(stringify!($case) => (stringify!($case), $case(&cx).await),)*
                _ => panic!("there is no case named {case}"),
            };
            end.map_err(|why| Violation::new(case, why.to_string()))
        }

        /// Runs every case against a subject that `make` makes for it.
        ///
        /// # Errors
        /// The rules that the store breaks, all at once.
        pub async fn check<S: Subject>(make: impl AsyncFn() -> S) -> Result<(), Violations> {
            $crate::conformance::check(CASES, async |case| run(case, &make().await).await).await
        }
    };
}
