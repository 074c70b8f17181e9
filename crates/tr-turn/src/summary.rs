//! A turn in one sentence.
use crate::{report::CallReport, trace::Outcome};

/// If there are more, calls that did not time out are only counted.
const NAMED: usize = 8;

/// `Completed flight search, but hotel search and activity search timed out`.
pub(crate) fn sentence(calls: &[CallReport]) -> String {
    let of = |outcome| calls.iter().filter(move |call| call.outcome == outcome);
    let mut rest = Vec::new();
    let timed_out: Vec<_> = of(Outcome::TimedOut).map(|call| words(&call.name)).collect();
    if !timed_out.is_empty() {
        rest.push(format!("{} timed out", list(&timed_out)));
    }
    for (outcome, one, many) in [
        (Outcome::Failed, "failed", "failed"),
        (Outcome::Cancelled, "was cancelled", "were cancelled"),
        (Outcome::Skipped, "was skipped", "were skipped"),
    ] {
        let names: Vec<_> = of(outcome).map(|call| words(&call.name)).collect();
        if !names.is_empty() {
            rest.push(format!(
                "{} {}",
                short_list(&names),
                if names.len() == 1 { one } else { many }
            ));
        }
    }
    let completed: Vec<_> = of(Outcome::Success).map(|call| words(&call.name)).collect();
    let rest = rest.join(", ");
    match (completed.is_empty(), rest.is_empty()) {
        (false, true) => format!("Completed {}", short_list(&completed)),
        (false, false) => format!("Completed {}, but {rest}", short_list(&completed)),
        (true, _) => capitalized(&rest),
    }
}

/// `flight_search` as `flight search`.
pub(crate) fn words(name: &str) -> String {
    name.replace(['_', '-'], " ")
}

fn short_list(names: &[String]) -> String {
    if names.len() <= NAMED { list(names) } else { format!("{} calls", names.len()) }
}

fn list(names: &[String]) -> String {
    match names {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.concat(),
    }
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}
