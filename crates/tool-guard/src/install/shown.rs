//! A client's file as it may be shown: with the commands of its servers, and without what may be secret.
use super::{
    client::Form,
    edit::{Splice, spliced},
    servers::{Entry, Guarded, Reached, entries},
    tree::{Node, Refusal, Syntax, Value, read},
};
use std::ops::Range;

/// In place of what is not shown.
const HIDDEN: &str = "\"***\"";

/// The text with its names, its commands and the guard's words; other values and comments are hidden.
pub(crate) fn shown(text: &str, form: &Form) -> Result<String, Refusal> {
    let root = read(text, form.syntax)?;
    let mut open = Vec::new();
    for entry in entries(root.as_ref(), form)? {
        // A server that is refused shows nothing.
        if let Ok(reached) = entry.reached(form) {
            add_visible(&entry, &reached, form, &mut open);
        }
    }
    let mut walk = Walk { text, open: &open, tokens: Vec::new(), splices: Vec::new() };
    if let Some(root) = &root {
        walk.node(root);
    }
    walk.tokens.sort_by_key(|token| token.start);
    let mut at = 0;
    for token in std::mem::take(&mut walk.tokens) {
        if at < token.start {
            walk.between(at..token.start, form.syntax);
        }
        at = at.max(token.end);
    }
    walk.between(at..text.len(), form.syntax);
    Ok(spliced(text, walk.splices))
}

/// A value that is shown: whole, or only where its URL leads.
struct Visible {
    range: Range<usize>,
    origin: Option<String>,
}

fn add_visible(entry: &Entry<'_>, reached: &Reached<'_>, form: &Form, open: &mut Vec<Visible>) {
    let is_ours = reached.guarded() == Guarded::Installed;
    let words = reached.words();
    let is_url = is_ours && words.get(2) == Some(&"--upstream");
    // The guard's words, and behind them the server's program.
    let most = match (is_ours, is_url, words.get(2)) {
        (true, false, Some(&"--")) => 4,
        (true, _, _) => 3,
        (false, ..) => 1,
    };
    let nodes = reached.nodes();
    if let Reached::Http { url, .. } = reached {
        let origin = Some(origin(url.value.text().unwrap_or_default()));
        open.push(Visible { range: url.value.range.clone(), origin });
    }
    let mut whole = |node: &Node| open.push(Visible { range: node.range.clone(), origin: None });
    nodes.iter().take(most).for_each(|node| whole(node));
    if let Some(transport) = form.transport
        && let Ok(Some((found, _))) = entry.text(transport.member)
    {
        whole(&found.value);
    }
    if is_url && let Some(url) = nodes.get(3) {
        let origin = Some(origin(url.text().unwrap_or_default()));
        open.push(Visible { range: url.range.clone(), origin });
    }
}

/// The scheme and the host of a URL, quoted.
fn origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return HIDDEN.into() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    serde_json::Value::from(format!("{scheme}://{host}/***")).to_string()
}

struct Walk<'w> {
    text: &'w str,
    open: &'w [Visible],
    /// Names and values, between which are brackets and comments.
    tokens: Vec<Range<usize>>,
    splices: Vec<Splice>,
}

impl Walk<'_> {
    fn node(&mut self, node: &Node) {
        match &node.value {
            Value::Object(members) => {
                for member in members {
                    self.tokens.push(member.key.clone());
                    self.node(&member.value);
                }
            }
            Value::List(list) => list.iter().for_each(|it| self.node(it)),
            Value::Text(_) | Value::Bool(_) | Value::Other => {
                self.tokens.push(node.range.clone());
                let open = self.open.iter().find(|open| open.range == node.range);
                let new = match open {
                    Some(open) => open.origin.clone(),
                    None if matches!(node.value, Value::Bool(_)) => None,
                    None => Some(HIDDEN.into()),
                };
                if let Some(new) = new {
                    self.splices.push((node.range.clone(), new));
                }
            }
        }
    }

    /// Hides the comments between two tokens.
    fn between(&mut self, gap: Range<usize>, syntax: Syntax) {
        let text = &self.text[gap.clone()];
        let mut block = false;
        let mut at = gap.start;
        for line in text.split_inclusive('\n') {
            let body = line.trim_end_matches(['\n', '\r']);
            let start = match syntax {
                _ if block => Some(0),
                Syntax::Toml => body.find('#'),
                Syntax::Json | Syntax::Json5 => body.find('/'),
            };
            if let Some(start) = start {
                let new =
                    body[start..].chars().take_while(|c| "/*# \t".contains(*c)).collect::<String>();
                self.splices.push((at + start..at + body.len(), new + "***"));
                let is_block = block || body[start..].starts_with("/*");
                block = is_block && !body[start..].contains("*/");
            }
            at += line.len();
        }
    }
}
