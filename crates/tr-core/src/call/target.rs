//! Finds the one origin (`https://api.example.com`) that a call's params name. A breaker is kept for each
//! tool and origin, so the origin is part of its key (`KeyRef`).
use crate::{KeyRef, Params, ToolId, internal::members};
use std::ops::Range;
use tr_policy::origin;

/// The longest authority that is looked at, in bytes: longer than any host and port.
const MAX_AUTHORITY: usize = 300;

/// The position of an origin in a call's params, and the hash of its breaker's key.
#[derive(Clone, Debug)]
pub(super) struct Target {
    hash: u64,
    scheme: Range<usize>,
    host_and_port: Range<usize>,
}

impl Target {
    /// The origin that the params name: that of all strings at their top level which are absolute
    /// URLs with a host. `None` if there is no such string, or they name several origins. Skips
    /// sensitive members.
    pub(super) fn find(tool: &ToolId, params: &Params, sensitive: &[Box<str>]) -> Option<Self> {
        let text = params.get();
        let (scheme, authority) = origin_of(text, sensitive)?;
        let host_and_port = origin::without_user(authority);
        let place = |part: &str| {
            let start = part.as_ptr().addr() - text.as_ptr().addr();
            start..start + part.len()
        };
        Some(Self {
            hash: KeyRef::target_of(tool, scheme, authority).hash,
            scheme: place(scheme),
            host_and_port: place(host_and_port),
        })
    }

    /// The key of the tool's calls that name this origin in these params.
    pub(super) fn key<'r>(&self, tool: &'r ToolId, params: &'r Params) -> KeyRef<'r> {
        let part = |place: &Range<usize>| &params.get()[place.clone()];
        KeyRef::known_target(self.hash, tool, part(&self.scheme), part(&self.host_and_port))
    }
}

/// A fast check before [`Target::find`]: whether the params contain `:/` or `:\/`, as every URL in JSON does.
#[inline]
pub(super) fn may_name_origin(params: &Params) -> bool {
    let text = params.get().as_bytes();
    memchr::memchr(b'/', text).is_some_and(|first| is_slash_after_colon(text, first))
}

#[cold]
fn is_slash_after_colon(text: &[u8], first: usize) -> bool {
    let is_after_colon = |at: usize| {
        let before = &text[..first + at];
        before.strip_suffix(b"\\").unwrap_or(before).ends_with(b":")
    };
    memchr::memchr_iter(b'/', &text[first..]).any(is_after_colon)
}

/// The scheme and the authority of the one origin that the members of an object name.
fn origin_of<'t>(params: &'t str, sensitive: &[Box<str>]) -> Option<(&'t str, &'t str)> {
    let mut one: Option<(&str, &str)> = None;
    for (name, value) in members(params).ok()? {
        if sensitive.iter().any(|hidden| **hidden == *name) {
            continue;
        }
        match Url::read(value.get()) {
            None => {}
            Some(Url::Unclear) => return None,
            Some(Url::Of(scheme, authority)) => {
                let origin = KeyRef::origin(scheme, authority);
                if one.is_some_and(|(known, host)| KeyRef::origin(known, host) != origin) {
                    return None;
                }
                one = Some((scheme, authority));
            }
        }
    }
    one
}

/// An absolute URL with a host.
enum Url<'r> {
    /// Its authority has escapes or is too long: the call has no target.
    Unclear,
    /// Its scheme and its authority.
    Of(&'r str, &'r str),
}

impl<'r> Url<'r> {
    /// Reads a JSON value as it is written, if it is one.
    fn read(value: &'r str) -> Option<Self> {
        let text = value.strip_prefix('"')?.strip_suffix('"')?;
        let (scheme, rest) = text.split_once(':')?;
        let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b));
        // JSON may write `/` as `\/`.
        let slash = |text: &'r str| text.strip_prefix('/').or_else(|| text.strip_prefix("\\/"));
        let rest = slash(slash(rest)?)?;
        // A URL has no white space: this is a text that begins with one.
        let has_space = rest.contains(char::is_whitespace)
            || ["\\n", "\\r", "\\t"].iter().any(|space| rest.contains(space));
        if !is_scheme || has_space {
            return None;
        }
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        let has_host = !matches!(origin::without_user(authority).as_bytes(), [] | [b':', ..]);
        let is_escaped = rest.starts_with('\\') && !rest.starts_with("\\/");
        match () {
            () if is_escaped || authority.len() > MAX_AUTHORITY => Some(Self::Unclear),
            () if has_host => Some(Self::Of(scheme, authority)),
            () => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(params: &str) -> Option<String> {
        let (tool, params) = (ToolId::new("fetch"), Params::from_text(params).unwrap());
        let target = Target::find(&tool, &params, &["hidden".into()])?;
        assert!(may_name_origin(&params), "{}", params.get());
        Some(target.key(&tool, &params).to_string())
    }

    #[test]
    fn the_one_origin_of_all_urls_is_the_target() {
        let key = Some("fetch https://api.example.com".to_owned());
        for params in [
            r#"{"url":"https://api.example.com/v1?x=http://other/"}"#,
            r#"{"url":"HTTPS://ada:secret@API.example.com.:443"}"#,
            r#"{"url":"https:\/\/api.example.com\/v1"}"#,
            r#"{"n":1,"text":"see http://other/ for more","url":"https://api.example.com#x"}"#,
            r#"{"from":"https://api.example.com/a","to":"https://api.example.com:443/b"}"#,
            r#"{"hidden":"https://secret.example","url":"https://api.example.com/"}"#,
            r#"{"deep":{"url":"http://other/"},"url":"https://api.example.com/a\"b"}"#,
        ] {
            assert_eq!(named(params), key, "{params}");
        }
        assert_eq!(named(r#"{"u":"http://[::1]:80/"}"#).as_deref(), Some("fetch http://[::1]"));
        assert_eq!(named(r#"{"u":"s3://b\u00fc/x"}"#), None);
    }

    #[test]
    fn what_names_no_one_origin_has_no_target() {
        let long = format!(r#"{{"url":"http://{}/"}}"#, "a".repeat(301));
        for params in [
            "{}",
            "[]",
            r#""http://a/""#,
            r#"["http://a/"]"#,
            r#"{"from":"http://a/","to":"http://b/"}"#,
            r#"{"from":"http://a/","to":"https://a/"}"#,
            r#"{"from":"http://a/","to":"http://\u0062/"}"#,
            r#"{"deep":{"url":"http://a/"}}"#,
            r#"{"urls":["http://a/"]}"#,
            r#"{"path":"/etc/hosts","at":"10:/x"}"#,
            r#"{"url":"file:///etc/hosts"}"#,
            r#"{"url":"http://:80/"}"#,
            r#"{"url":"http://ada@/"}"#,
            r#"{"url":"mailto:ada@example.org"}"#,
            r#"{"url":"//example.org/x"}"#,
            r#"{"url":"1http://example.org/x"}"#,
            r#"{"text":"http://a/ is down"}"#,
            r#"{"text":"http://a/\nis down"}"#,
            r#"{"hidden":"http://a/"}"#,
            &long,
        ] {
            assert_eq!(named(params), None, "{params}");
        }
    }

    #[test]
    fn a_password_is_no_part_of_it() {
        let tool = ToolId::new("fetch");
        let params = Params::from_text(r#"{"u":"https://ada:secret@a.example/"}"#).unwrap();
        let target = Target::find(&tool, &params, &[]).unwrap();
        let key = target.key(&tool, &params);
        assert_eq!(key, KeyRef::target_of(&tool, "https", "a.example"));
        assert!(!format!("{key:?} {target:?}").contains("secret"));
    }
}
