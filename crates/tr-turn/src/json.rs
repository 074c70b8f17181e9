//! Places in plans, as faults name them.
use std::fmt;

/// The pointer of a member or an element of what is at `parent`.
pub(crate) fn below(parent: &str, token: impl fmt::Display) -> String {
    format!("{parent}/{}", token.to_string().replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(below("/calls/3", "a/b"), "/calls/3/a~1b");
    }
}
