//! What clients saw, and how it may differ behind the guard.
use serde_json::Value;

/// What says that words are the guard's.
const MARK: &str = "tool-reliability/guard";

/// What a client saw on each way: the way, the step, and its result.
#[derive(Debug, Default)]
pub struct Seen(Vec<(String, String, Value)>);

impl Seen {
    /// Reads the lines that a client prints.
    #[must_use]
    pub fn read(printed: &str) -> Self {
        let line = |line| {
            let [way, step, seen]: [Value; 3] = serde_json::from_str(line).unwrap();
            (way.as_str().unwrap().into(), step.as_str().unwrap().into(), seen)
        };
        Self(printed.lines().map(line).collect())
    }

    /// Notes the result of a step on a way.
    pub fn note(&mut self, way: &str, step: &str, seen: Value) {
        self.0.push((way.into(), step.into(), seen));
    }

    /// What was seen on the way of this name, in order.
    #[must_use]
    pub fn on(&self, name: &str) -> Vec<(&str, &Value)> {
        let on = self.0.iter().filter(|(way, ..)| way == name);
        on.map(|(_, step, seen)| (&**step, seen)).collect()
    }
}

impl FromIterator<Self> for Seen {
    fn from_iter<I: IntoIterator<Item = Self>>(all: I) -> Self {
        Self(all.into_iter().flat_map(|seen| seen.0).collect())
    }
}

/// An answer without the notes that the guard adds to failures.
#[must_use]
pub fn without_notes(seen: &Value) -> Value {
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
