//! The elements of an array in a line, which need not be JSON.
use super::{jsonrpc, scan::bare};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The elements of the array in `line`; `None` if the line is no complete array. They are not collected, so a
/// line of millions takes no memory.
pub(crate) fn elements(line: &[u8]) -> Option<Elements<'_>> {
    let all = unchecked_elements(line)?;
    let mut looked = all.clone();
    looked.by_ref().for_each(drop);
    (!looked.torn).then_some(all)
}

/// The same, also of an array that [is torn](Elements::torn).
pub(crate) fn unchecked_elements(line: &[u8]) -> Option<Elements<'_>> {
    let inside = bare(line).strip_prefix(b"[")?.strip_suffix(b"]")?;
    Some(Elements { rest: Some(inside), torn: false })
}

/// The end of a string, behind its quotation mark; `text` begins inside of it. `None` if it does not end.
pub(crate) fn string_end(text: &[u8]) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + memchr::memchr2(b'"', b'\\', text.get(from..)?)?;
        match text[at] {
            b'"' => return Some(at + 1),
            _ => from = at + 2,
        }
    }
}

#[derive(Deserialize)]
struct List<'l> {
    #[serde(borrow)]
    tools: &'l RawValue,
}

/// The elements of a page of a server's list of tools.
pub(crate) fn listed_tools(page: &RawValue) -> impl Iterator<Item = &str> {
    let list = jsonrpc::object::<List<'_>>(page.get()).ok();
    // It is JSON, so its elements are.
    let tools = list.and_then(|list| unchecked_elements(list.tools.get().as_bytes()));
    tools.into_iter().flatten().filter_map(|tool| str::from_utf8(tool).ok())
}

/// Advances to the next comma.
#[derive(Clone, Debug)]
pub(crate) struct Elements<'l> {
    rest: Option<&'l [u8]>,
    /// Whether a bracket or a string did not end, or ended without a beginning.
    pub(crate) torn: bool,
}

impl<'l> Iterator for Elements<'l> {
    type Item = &'l [u8];

    fn next(&mut self) -> Option<&'l [u8]> {
        let rest = self.rest.take()?;
        let (mut depth, mut at) = (0_usize, 0);
        while let Some(byte) = rest.get(at) {
            at += 1;
            match byte {
                b'"' => match string_end(&rest[at..]) {
                    Some(end) => at += end,
                    None => {
                        self.torn = true;
                        break;
                    }
                },
                b'{' | b'[' => depth += 1,
                b'}' | b']' => {
                    self.torn |= depth == 0;
                    depth = depth.saturating_sub(1);
                }
                b',' if depth == 0 => {
                    self.rest = Some(&rest[at..]);
                    return Some(rest[..at - 1].trim_ascii());
                }
                _ => {}
            }
        }
        self.torn |= depth > 0;
        Some(rest.trim_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_array_is_split_whatever_its_elements_are() {
        let split = |line: &str| -> Option<Vec<String>> {
            let all = elements(line.as_bytes())?;
            Some(all.map(|part| String::from_utf8_lossy(part).into_owned()).collect())
        };
        let whole = "\u{feff}[ {\"a\":[1,2],\"b\":\"],\\\"\"} ,NaN, [[],{}],\"\u{1},\" ]\n";
        let parts = ["{\"a\":[1,2],\"b\":\"],\\\"\"}", "NaN", "[[],{}]", "\"\u{1},\""];
        assert_eq!(split(whole).unwrap(), parts);
        assert_eq!(split("[]").unwrap(), [""]);
        for line in ["", "{}", "[", "[{]", "[1", "[\"]", "[1],[2]", "[}{]"] {
            assert_eq!(split(line), None, "{line}");
        }
    }
}
