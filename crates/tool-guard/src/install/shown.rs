//! A client's file as it may be shown: with the commands of its servers, and without what may be secret.
use super::{
    client::Form,
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
    let mut tokens = Vec::new();
    if let Some(root) = &root {
        add_tokens(root, &open, &mut tokens);
    }
    tokens.sort_by_key(|(range, _)| range.start);
    let (mut out, mut at) = (String::with_capacity(text.len()), 0);
    for (range, new) in tokens {
        if at <= range.start {
            out += &without_comments(&text[at..range.start], form.syntax);
            out += new.as_deref().unwrap_or(&text[range.clone()]);
            at = range.end;
        }
    }
    Ok(out + &without_comments(&text[at..], form.syntax))
}

/// A name or a value, between which are brackets and comments, and what is shown in its place.
type Token = (Range<usize>, Option<String>);

/// Adds the values that are shown: whole, or only where their URL leads.
fn add_visible(entry: &Entry<'_>, reached: &Reached<'_>, form: &Form, open: &mut Vec<Token>) {
    let is_ours = reached.guarded() == Guarded::Installed;
    let words = reached.words();
    let own = 2 + reached.options();
    let is_url = is_ours && words.get(own) == Some(&"--upstream");
    // The guard's words, and behind them the server's program.
    let most = match words.get(own) {
        _ if !is_ours => 1,
        Some(&"--") => own + 2,
        _ => own + 1,
    };
    let nodes = reached.nodes();
    let url = match reached {
        Reached::Http { url, .. } => Some(&url.value),
        _ => nodes.get(own + 1).copied().filter(|_| is_url),
    };
    let origin = |url: &Node| Some(origin(url.text().unwrap_or_default()));
    open.extend(url.map(|url| (url.range.clone(), origin(url))));
    let mut whole = |node: &Node| open.push((node.range.clone(), None));
    nodes.iter().take(most).for_each(|node| whole(node));
    if let Some(transport) = form.transport
        && let Ok(Some((found, _))) = entry.text(transport.member)
    {
        whole(&found.value);
    }
}

/// The scheme and the host of a URL, quoted.
fn origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return HIDDEN.into() };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    serde_json::Value::from(format!("{scheme}://{host}/***")).to_string()
}

fn add_tokens(node: &Node, open: &[Token], tokens: &mut Vec<Token>) {
    match &node.value {
        Value::Object(members) => {
            for member in members {
                tokens.push((member.key.clone(), None));
                add_tokens(&member.value, open, tokens);
            }
        }
        Value::List(list) => list.iter().for_each(|it| add_tokens(it, open, tokens)),
        Value::Text(_) | Value::Bool(_) | Value::Other => {
            let new = match open.iter().find(|(range, _)| *range == node.range) {
                Some((_, origin)) => origin.clone(),
                None if matches!(node.value, Value::Bool(_)) => None,
                None => Some(HIDDEN.into()),
            };
            tokens.push((node.range.clone(), new));
        }
    }
}

/// What is between two tokens, without the words of comments.
fn without_comments(gap: &str, syntax: Syntax) -> String {
    let mut out = String::new();
    let mut block = false;
    for line in gap.split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        let start = match syntax {
            _ if block => Some(0),
            Syntax::Toml => body.find('#'),
            Syntax::Json | Syntax::Json5 => body.find('/'),
        };
        let (shown, comment) = body.split_at(start.unwrap_or(body.len()));
        out += shown;
        if start.is_some() {
            out.extend(comment.chars().take_while(|c| "/*# \t".contains(*c)));
            out += "***";
            block = (block || comment.starts_with("/*")) && !comment.contains("*/");
        }
        out += &line[body.len()..];
    }
    out
}
