//! What clients saw, and how it may differ behind the guard.
use crate::world::Way;
use serde_json::Value;

/// What says that words are the guard's.
const MARK: &str = "tool-reliability/guard";

/// What a client saw on each way: the step, and what came of it.
#[derive(Debug, Default)]
pub(crate) struct Seen(Vec<(String, String, Value)>);

impl Seen {
    /// Reads the lines that a client prints.
    pub(crate) fn read(printed: &str) -> Self {
        let line = |line| {
            let [way, step, seen]: [Value; 3] = serde_json::from_str(line).unwrap();
            (way.as_str().unwrap().into(), step.as_str().unwrap().into(), seen)
        };
        Self(printed.lines().map(line).collect())
    }

    pub(crate) fn note(&mut self, way: &str, step: &str, seen: Value) {
        self.0.push((way.into(), step.into(), seen));
    }

    /// What came of the step with this name, on all ways.
    pub(crate) fn all(self, step: &str) -> Vec<(String, Value)> {
        let of_step = self.0.into_iter().filter(|(_, it, _)| it == step);
        of_step.map(|(way, _, seen)| (way, seen)).collect()
    }

    /// What was seen on one way, in order.
    pub(crate) fn on(&self, way: Way) -> Vec<(&str, &Value)> {
        let name = format!("{way:?}");
        let on = self.0.iter().filter(|(way, ..)| *way == name);
        on.map(|(_, step, seen)| (&**step, seen)).collect()
    }
}

impl FromIterator<Self> for Seen {
    fn from_iter<I: IntoIterator<Item = Self>>(all: I) -> Self {
        Self(all.into_iter().flat_map(|seen| seen.0).collect())
    }
}

/// An answer without the notes that the guard adds to failures.
pub(crate) fn without_notes(seen: &Value) -> Value {
    let mut seen = seen.clone();
    if seen["isError"] == true
        && let Some(blocks) = seen["content"].as_array_mut()
    {
        blocks.retain(|block| block["type"] != "text" || block["_meta"][MARK] != true);
    }
    seen
}

#[test]
fn only_marked_notes_on_failures_are_left_out() {
    use serde_json::json;
    let note = json!({ "type": "text", "text": "[N]", "_meta": { MARK: true } });
    let own = json!({ "type": "text", "text": "no" });
    let answer =
        |is_error: bool, blocks: &[&Value]| json!({ "isError": is_error, "content": blocks });
    assert_eq!(without_notes(&answer(true, &[&own, &note])), answer(true, &[&own]));
    let well = answer(false, &[&own, &note]);
    assert_eq!(without_notes(&well), well);
}
