//! The mark by which a client distinguishes the guard's words from the server's: members of `_meta` that the
//! guard removes from every line of the server's.
use super::{elements::string_end, jsonrpc};
use bytes::Bytes;
use memchr::{memchr, memmem};
use std::ops::Range;

/// The member's name. `true` in a block of content: the guard wrote the block. In an error's data: the lines
/// that the guard added to the message.
pub(crate) const NAME: &str = "tool-reliability/guard";

/// `false` in the `_meta` of an answer, or of an error's data: the call's end is not recorded.
pub(crate) const RECORDED: &str = "tool-reliability/recorded";

/// The common prefix of both.
const PREFIX: &str = "tool-reliability/";

/// A line of the server's without the marks in its `_meta` members, at any depth. The line need not be JSON,
/// since other readers may accept what ours does not.
pub(crate) fn without(line: &Bytes) -> Bytes {
    if !may_have(line) {
        return line.clone();
    }
    let cuts = cuts(line);
    if cuts.is_empty() { line.clone() } else { jsonrpc::splice(line, &cuts) }
}

/// Whether the line may contain one of the names. All of their letters are ASCII, so of JSON's escapes only
/// these two kinds can spell one.
fn may_have(line: &[u8]) -> bool {
    let has = |part: &[u8]| memmem::find(line, part).is_some();
    has(PREFIX.as_bytes()) || memchr(b'\\', line).is_some() && (has(b"\\u00") || has(b"\\/"))
}

/// A `_meta` that is being read.
struct Meta {
    /// The depth of its members.
    depth: usize,
    /// The end of the last member that stays, or the beginning of the object.
    kept_to: usize,
    /// The position of the mark that is being read.
    mark: Option<usize>,
}

/// The ranges of the marks, each with an adjacent comma, all to be removed. A `_meta` within a `_meta` is
/// ignored: clients do not look for the mark there.
fn cuts(line: &[u8]) -> Vec<(Range<usize>, &'static str)> {
    let mut cuts: Vec<(Range<usize>, _)> = Vec::new();
    let mut meta: Option<Meta> = None;
    let (mut at, mut depth) = (0, 0_usize);
    // The previous string, and whether the next token is the value of a `_meta`.
    let (mut name, mut is_meta) = (None, false);
    while let Some(byte) = line.get(at) {
        let here = at;
        at += 1;
        let inside = meta.as_mut().filter(|meta| meta.depth == depth);
        match byte {
            b'"' => {
                at = string_end(&line[at..]).map_or(line.len(), |end| at + end);
                (name, is_meta) = (Some(here..at), false);
                continue;
            }
            byte if byte.is_ascii_whitespace() => continue,
            b':' => {
                if let Some(name) = name.take() {
                    match inside {
                        Some(meta) if is_ours(&line[name.clone()]) => {
                            // In invalid JSON one may begin within another.
                            meta.mark.get_or_insert(name.start);
                        }
                        Some(_) => {}
                        None => is_meta = meta.is_none() && spells(&line[name], "_meta"),
                    }
                    continue;
                }
            }
            b'{' | b'[' => {
                depth += 1;
                if is_meta && *byte == b'{' {
                    meta = Some(Meta { depth, kept_to: at, mark: None });
                }
            }
            b',' => {
                if let Some(meta) = inside {
                    match meta.mark.take() {
                        Some(start) => cuts.push((start..at, "")),
                        None => meta.kept_to = here,
                    }
                }
            }
            b'}' | b']' => {
                if let Some(Meta { kept_to, mark, .. }) = meta.take_if(|meta| meta.depth == depth)
                    && mark.is_some()
                {
                    // Including the comma before it, and everything between.
                    while cuts.pop_if(|(cut, _)| cut.start >= kept_to).is_some() {}
                    cuts.push((kept_to..here, ""));
                }
                depth = depth.saturating_sub(1);
            }
            _ => {}
        }
        (name, is_meta) = (None, false);
    }
    cuts
}

fn is_ours(name: &[u8]) -> bool {
    spells(name, NAME) || spells(name, RECORDED)
}

/// Whether a string in JSON is `word`, however it is spelled.
fn spells(string: &[u8], word: &str) -> bool {
    // An escape takes six bytes.
    if string.len() > 6 * word.len() + 2 {
        return false;
    }
    string.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\"")) == Some(word.as_bytes())
        || serde_json::from_slice::<String>(string).is_ok_and(|read| read == word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn stripped(text: &str) -> String {
        let line = without(&Bytes::copy_from_slice(text.as_bytes()));
        String::from_utf8(line.to_vec()).unwrap()
    }

    #[test]
    fn a_mark_within_a_mark_goes_with_it() {
        let mark = r#""tool-reliability/guard":"#;
        let text = format!(r#"{{"_meta":{{{mark}tr{mark}true,"a":0}}}}"#);
        assert_eq!(stripped(&text), r#"{"_meta":{"a":0}}"#);
        let text = format!(r#"{{"_meta":{{"a":0,{mark}tr{mark}true}}}}"#);
        assert_eq!(stripped(&text), r#"{"_meta":{"a":0}}"#);
    }

    #[test]
    fn a_mark_goes_with_one_comma_and_all_else_stays() {
        let mark = r#""tool-reliability/guard":true"#;
        for (meta, rest) in [
            ("{MARK}", "{}"),
            ("{ MARK }", "{}"),
            ("{MARK,\"a\":1}", "{\"a\":1}"),
            ("{\"a\": 1 , MARK }", "{\"a\": 1 }"),
            ("{\"a\":1,MARK,\"b\":2}", "{\"a\":1,\"b\":2}"),
            ("{MARK,MARK}", "{}"),
            ("{MARK,\"a\":1,MARK,MARK}", "{\"a\":1}"),
            ("{\"tool-reliability/guard\" : {\"x\":[1,{\"y\":\"}\"}]},\"a\":1}", "{\"a\":1}"),
            (r#"{"tool-reliability\/gu\u0061rd":1}"#, "{}"),
            (
                r#"{"tool-reliability/error":{"ran":"no"},MARK}"#,
                r#"{"tool-reliability/error":{"ran":"no"}}"#,
            ),
        ] {
            for around in [
                r#"{"id":1,"result":{"content":[{"type":"text","_meta":META,"text":"a"}]}}"#,
                r#"{"id":1,"result":{"_meta":META,"x":NaN}}"#,
                r#"[{"id":1,"error":{"code":1,"data":{"_meta" :META}}},{"\u005fmeta":META}]"#,
                "\u{feff}{\"result\":{\"_meta\":META},\"result\":{\"_meta\":META}}",
            ] {
                let sent = around.replace("META", &meta.replace("MARK", mark));
                assert_eq!(stripped(&sent), around.replace("META", rest), "{sent}");
            }
        }
    }

    #[test]
    fn what_is_no_mark_stays() {
        for line in [
            r#"{"text":"\"_meta\":{\"tool-reliability/guard\":true}"}"#,
            r#"{"tool-reliability/guard":true,"meta":{"tool-reliability/guard":true}}"#,
            r#"{"_meta":["tool-reliability/guard",true]}"#,
            r#"{"_meta":{"a":{"tool-reliability/guard":true}}}"#,
            r#"{"_meta":{"x":"tool-reliability/guard"}}"#,
            r#"{"_meta":"tool-reliability/guard","x":{"a":"\u0041\/"}}"#,
            "tool-reliability/guard",
            "{\"_meta\":{\"tool-reliability/guard\":true",
        ] {
            assert_eq!(stripped(line), line);
        }
    }

    /// Any JSON, with many a mark.
    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), "[a\"\\\\\u{1}]{0,3}".prop_map(Value::from)];
        leaf.prop_recursive(5, 40, 4, |inner| {
            let name = prop_oneof![Just("_meta"), Just(NAME), Just("a"), Just("b")];
            let members = prop::collection::vec((name, inner.clone()), 0..4);
            prop_oneof![
                prop::collection::vec(inner, 0..4).prop_map(Value::from),
                members.prop_map(|all| all.into_iter().map(|(n, v)| (n.to_owned(), v)).collect()),
            ]
        })
    }

    /// What has to be left, of a tree.
    fn cleaned(value: &mut Value) {
        match value {
            Value::Array(all) => all.iter_mut().for_each(cleaned),
            Value::Object(members) => {
                for (name, value) in members {
                    match value {
                        Value::Object(meta) if name == "_meta" => drop(meta.remove(NAME)),
                        _ => cleaned(value),
                    }
                }
            }
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn no_mark_is_left_and_nothing_else_is_lost(value in json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) };
            let mut expected = value;
            cleaned(&mut expected);
            let left: Value = serde_json::from_str(&stripped(&text.unwrap())).unwrap();
            prop_assert_eq!(left, expected);
        }
    }
}
