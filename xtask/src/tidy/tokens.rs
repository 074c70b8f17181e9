//! A Rust file as a flat list of tokens, so that no comment, doc or string is taken for code.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The tokens of a file in their order.
#[derive(Debug)]
pub(super) struct Tokens(Vec<Token>);

#[derive(Debug)]
struct Token {
    text: String,
    line: usize,
    /// Where it ends.
    last: usize,
    /// Whether it is compiled for tests only.
    test: bool,
}

/// Which tokens a search looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Everywhere,
    OutsideTests,
    InTests,
}

impl Tokens {
    pub(super) fn of(path: &str, text: &str) -> Result<Self, String> {
        let stream: TokenStream = text.parse().map_err(|error| format!("{error}"))?;
        let mut tokens = Vec::new();
        flatten(stream, is_test_file(path), &mut tokens);
        Ok(Self(tokens))
    }

    /// Lines where `pattern`, tokens separated by spaces, begins.
    pub(super) fn find(&self, pattern: &str, look: Look) -> Vec<usize> {
        let pattern: Vec<_> = pattern.split(' ').collect();
        self.0
            .windows(pattern.len())
            .filter(|window| window.iter().zip(&pattern).all(|(token, text)| token.text == *text))
            .map(|window| &window[0])
            .filter(|token| token.is_seen(look))
            .map(|token| token.line)
            .collect()
    }

    /// Line and content of each string literal; comments that are docs are none.
    pub(super) fn strings(&self, look: Look) -> impl Iterator<Item = (usize, &str)> {
        let is_doc = |at: usize| at >= 2 && self.0[at - 2].text == "doc";
        let tokens =
            self.0.iter().enumerate().filter(move |(at, it)| it.is_seen(look) && !is_doc(*at));
        tokens.filter_map(|(_, token)| Some((token.line, content(&token.text)?)))
    }

    /// Lines that have code outside tests; those with comments or docs alone are none.
    pub(super) fn lines_of_code(&self) -> usize {
        let mut lines = std::collections::BTreeSet::new();
        let mut at = 0;
        while let Some(token) = self.0.get(at) {
            let texts = self.0[at..].iter().map(|token| &*token.text);
            at += match &*texts.take(4).collect::<Vec<_>>() {
                ["#", "[", "doc", "="] => 6,
                ["#", "!", "[", "doc"] => 7,
                // What follows says whether an attribute is of tests.
                ["#", ..] => 1,
                _ => {
                    let code = (!token.test).then_some(token.line..=token.last);
                    lines.extend(code.into_iter().flatten());
                    1
                }
            };
        }
        lines.len()
    }

    /// Whether the first token at or after a line is compiled for tests only.
    pub(super) fn is_test(&self, line: usize) -> bool {
        let next = self.0.partition_point(|token| token.line < line);
        self.0.get(next).is_some_and(|token| token.test)
    }
}

impl Token {
    fn is_seen(&self, look: Look) -> bool {
        look == Look::Everywhere || self.test == (look == Look::InTests)
    }
}

/// What stands between the quotes, if it is a string literal.
fn content(literal: &str) -> Option<&str> {
    let hashes = literal.trim_start_matches(['b', 'c', 'r']);
    let text = hashes.trim_start_matches('#').strip_prefix('"')?;
    Some(text.trim_end_matches('#').strip_suffix('"').unwrap_or(text))
}

/// Whether the whole file is compiled for tests only, as far as its path tells.
fn is_test_file(path: &str) -> bool {
    let mut parts = path.rsplit('/');
    let file = parts.next().unwrap_or_default();
    file == "tests.rs" || file.ends_with("_tests.rs") || parts.any(|folder| folder == "tests")
}

fn flatten(stream: TokenStream, test: bool, tokens: &mut Vec<Token>) {
    // After `#[cfg(test)]` everything up to the item's end is test code.
    let mut item = test;
    let mut hash = false;
    for tree in stream {
        let (line, last) = (tree.span().start().line, tree.span().end().line);
        let was_hash = std::mem::replace(
            &mut hash,
            matches!(&tree, TokenTree::Punct(p) if p.as_char() == '#'),
        );
        let mut push = |text: String, last, test| tokens.push(Token { text, line, last, test });
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = delimiters(group.delimiter());
                item |= was_hash && is_cfg_test(&group.stream().to_string());
                push(open.into(), line, item);
                flatten(group.stream(), item, tokens);
                let line = group.span_close().start().line;
                tokens.push(Token { text: close.into(), line, last: line, test: item });
                if group.delimiter() == Delimiter::Brace {
                    item = test;
                }
            }
            TokenTree::Punct(punct) => {
                push(punct.to_string(), last, item);
                if punct.as_char() == ';' {
                    item = test;
                }
            }
            TokenTree::Ident(ident) => push(ident.to_string(), last, item),
            TokenTree::Literal(literal) => push(literal.to_string(), last, item),
        }
    }
}

pub(super) fn is_cfg_test(attribute: &str) -> bool {
    let text: String = attribute.split_whitespace().collect();
    text == "cfg(test)" || text.starts_with("cfg(all(test,")
}

fn delimiters(delimiter: Delimiter) -> (&'static str, &'static str) {
    match delimiter {
        Delimiter::Parenthesis => ("(", ")"),
        Delimiter::Brace => ("{", "}"),
        Delimiter::Bracket => ("[", "]"),
        Delimiter::None => ("", ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, pattern: &str, look: Look) -> Vec<usize> {
        Tokens::of("src/lib.rs", text).unwrap().find(pattern, look)
    }

    #[test]
    fn comments_docs_and_strings_are_no_code() {
        let text = "//! spawn\n// spawn\n/// spawn\nfn f() {\n    g(\"spawn\"); /* spawn */\n    spawn();\n}\n";
        assert_eq!(lines(text, "spawn", Look::Everywhere), [6]);
    }

    #[test]
    fn a_pattern_is_several_tokens_whatever_the_spaces() {
        assert_eq!(lines("fn f() { Box :: pin(x) }", "Box : : pin", Look::Everywhere), [1]);
        assert_eq!(lines("fn f() { sleep(x); sleep_until(y) }", "sleep (", Look::Everywhere), [1]);
    }

    #[test]
    fn a_test_module_ends_with_its_brace() {
        let text = "fn a() { x }\n#[cfg(test)]\n#[path = \"p\"]\nmod tests {\n    fn b() { x }\n}\nfn c() { x }\n";
        assert_eq!(lines(text, "x", Look::OutsideTests), [1, 7]);
        assert_eq!(lines(text, "x", Look::InTests), [5]);
    }

    #[test]
    fn a_test_import_ends_with_its_semicolon() {
        let text = "#[cfg(test)]\nuse a::x;\nuse b::x;\n#[cfg(not(test))]\nuse c::x;\n";
        assert_eq!(lines(text, "x", Look::OutsideTests), [3, 5]);
    }

    #[test]
    fn test_files_are_known_by_their_path() {
        assert!(is_test_file("crates/a/tests/laws.rs"));
        assert!(is_test_file("crates/a/src/tests.rs"));
        assert!(is_test_file("crates/a/src/state/tests/window.rs"));
        assert!(!is_test_file("crates/a/src/contests.rs"));
    }

    #[test]
    fn strings_are_literals_of_any_kind_but_no_docs() {
        let text = "/// doc\nfn f() { g(\"a\", r#\"b\"#, b\"c\", '\"', 1) }\n#[cfg(test)]\nfn h() { g(\"d\") }\n#[doc = \"e\"]\nfn i() {}\n";
        let tokens = Tokens::of("src/lib.rs", text).unwrap();
        let strings: Vec<_> = tokens.strings(Look::OutsideTests).collect();
        assert_eq!(strings, [(2, "a"), (2, "b"), (2, "c")]);
    }

    #[test]
    fn a_line_is_a_test_if_what_follows_it_is() {
        let text = "// a\nfn f() {}\n#[cfg(test)]\nmod tests {\n    // b\n    fn g() {}\n}\n// c\n";
        let tokens = Tokens::of("src/lib.rs", text).unwrap();
        assert_eq!([1, 5, 8].map(|line| tokens.is_test(line)), [false, true, false]);
    }

    #[test]
    fn lines_of_code_are_neither_comments_nor_docs_nor_tests() {
        let text = "//! Does.\n\n/// Of f.\n// no\nfn f() { // yes\n    g(\"a\nb\"); /* and */\n}\n#[cfg(test)]\nfn t() {}\n";
        assert_eq!(Tokens::of("src/lib.rs", text).unwrap().lines_of_code(), 4);
    }

    #[test]
    fn what_does_not_parse_is_an_error() {
        assert!(Tokens::of("a.rs", "fn f( {").is_err());
    }
}
