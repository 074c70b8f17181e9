//! Reads what `cargo test` prints: each test's result and the totals.

use std::ops::AddAssign;

/// How many tests passed and failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Those that passed.
    pub passed: u64,
    /// Those that failed.
    pub failed: u64,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
    }
}

/// The totals of one test binary, from its closing line.
pub fn closing(line: &str) -> Option<Tally> {
    let totals = line.strip_prefix("test result: ")?;
    let (_, counts) = totals.split_once(". ")?;
    let mut counts = counts.split("; ");
    let mut count = |what| counts.next()?.strip_suffix(what)?.trim().parse().ok();
    Some(Tally { passed: count("passed")?, failed: count("failed")? })
}

/// The last part of a test's path and its result, from its own line.
pub fn result(line: &str) -> Option<(&str, &str)> {
    let (name, result) = line.strip_prefix("test ")?.split_once(" ... ")?;
    let name = name.split(' ').next()?;
    Some((name.rsplit("::").next()?, result))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closing_lines_are_read_and_nothing_else() {
        let line = "test result: FAILED. 12 passed; 1 failed; 0 ignored; 0 measured; 3 filtered out; finished in 0.02s";
        assert_eq!(closing(line), Some(Tally { passed: 12, failed: 1 }));
        assert_eq!(closing("test result: unknown"), None);
        assert_eq!(closing("running 3 tests"), None);
    }

    #[test]
    fn totals_add_up() {
        let mut all = Tally { passed: 1, failed: 0 };
        all += Tally { passed: 2, failed: 3 };
        assert_eq!(all, Tally { passed: 3, failed: 3 });
    }

    #[test]
    fn a_result_has_the_bare_name() {
        assert_eq!(result("test service::tests::tr_07_x ... ok"), Some(("tr_07_x", "ok")));
        assert_eq!(result("test eh_1_1 - should panic ... FAILED"), Some(("eh_1_1", "FAILED")));
        assert_eq!(result("test result: ok. 1 passed; 0 failed"), None);
    }
}
