//! What an HTTP request says about whose its call is, and which.
use crate::{
    engine::unknowns::Ended,
    front::listener::Connection,
    wire::http_names::{KEY, SESSION},
};
use hyper::{
    HeaderMap,
    header::{AUTHORIZATION, COOKIE, HeaderName},
    http::request::Parts,
};
use std::{str::Utf8Error, time::Duration};
use tr_core::canonical::Digest;

/// Where a call comes from. Credentials and session ids are digests here, and nowhere else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Via {
    /// Names who calls this server, whose credential may have been renewed since; those without one have one name.
    caller: Box<str>,
    /// Whether the session is another caller's, as far as is known.
    is_of_other: bool,
    /// The other credentials of its caller in this session.
    pub(crate) others: Vec<Digest>,
    /// Who calls, if the request has a credential.
    pub(crate) credential: Option<Digest>,
    /// The session, if there is one.
    pub(crate) session: Option<Box<str>>,
    /// The key in the request's header; an error if it is no text.
    pub(crate) key: Option<Result<Box<str>, Utf8Error>>,
    /// Its connection if it has no session: it tells clients without a credential apart.
    connection: Box<str>,
    /// For how long the call had run that it joined.
    pub(crate) joined: Option<Duration>,
    /// An equal call of another client that is in the way, and how it ended.
    pub(crate) in_the_way: Option<Option<Ended>>,
}

impl Via {
    /// Of a request to `server`.
    pub(crate) fn of(server: &str, request: &Parts) -> Self {
        let via = Self::at(server, request.uri.query(), &request.headers);
        match request.extensions.get().filter(|_| via.session.is_none()) {
            Some(Connection(number)) => {
                Self { connection: format!("connection-{number}").into(), ..via }
            }
            None => via,
        }
    }

    /// Of a request in a session that this caller began: of the same caller, who has these other credentials, or of
    /// another one. That gets nothing of the session's, but equal calls know of each other.
    pub(crate) fn in_session_of(self, caller: &str, is_its: bool, others: Vec<Digest>) -> Self {
        Self { caller: caller.into(), is_of_other: !is_its, others, ..self }
    }

    /// What these headers say. Some servers take a credential in the query.
    pub(crate) fn at(server: &str, query: Option<&str>, headers: &HeaderMap) -> Self {
        let key = blake3::derive_key("tool-guard 2026 callers of an MCP server", server.as_bytes());
        let digest = |names: &[HeaderName]| {
            let mut hasher = blake3::Hasher::new_keyed(&key);
            let mut any = false;
            for name in names {
                for value in headers.get_all(name) {
                    any = true;
                    hasher.update(name.as_str().as_bytes());
                    hasher.update(&(value.len() as u64).to_le_bytes());
                    hasher.update(value.as_bytes());
                }
            }
            if let Some(query) = query.filter(|_| names != [SESSION]) {
                any = true;
                hasher.update(b"?");
                hasher.update(query.as_bytes());
            }
            any.then(|| Digest::from_bytes(*hasher.finalize().as_bytes()))
        };
        // Proxies set and change cookies while a session lasts.
        let names = if headers.contains_key(AUTHORIZATION) { AUTHORIZATION } else { COOKIE };
        let credential = digest(&[names]);
        // Servers share records, so the name of those without a credential is another for each server, too.
        let anybody = || Digest::from_bytes(*blake3::keyed_hash(&key, b"").as_bytes());
        let caller = match &credential {
            Some(credential) => label("credential", credential),
            None => label("anybody", &anybody()),
        };
        let key = headers.get(KEY).map(|key| {
            let key = std::str::from_utf8(key.as_bytes())?;
            // A quoted string, as the draft has it, or bare.
            let quoted = key.strip_prefix('"').and_then(|key| key.strip_suffix('"'));
            Ok(quoted.unwrap_or(key).into())
        });
        Self {
            caller,
            credential,
            session: digest(&[SESSION]).map(|digest| label("session", &digest)),
            key,
            ..Self::default()
        }
    }

    /// Names to whom a call without a strong id belongs, with its cancellation and its answer: the session, else the
    /// credential, else the connection.
    pub(crate) fn owner(&self) -> &str {
        let caller = self.credential.as_ref().map_or(&*self.connection, |_| &*self.caller);
        self.session().unwrap_or(caller)
    }

    /// Names who may cancel the call in its session or connection.
    pub(crate) fn canceller(&self) -> String {
        match self.credential.filter(|_| self.is_of_other) {
            Some(credential) => label("credential", &credential).into(),
            None => self.caller.to_string(),
        }
    }

    /// Names the session or the connection.
    pub(crate) fn place(&self) -> &str {
        self.session().unwrap_or(&self.connection)
    }

    /// Names the caller.
    pub(crate) fn caller(&self) -> &str {
        &self.caller
    }

    /// Names the session.
    pub(crate) fn session(&self) -> Option<&str> {
        self.session.as_deref()
    }

    /// The digest of params as this caller sends them: a call of another caller is another call. Without a credential it
    /// is the session or connection that tells callers apart, if anybody could guess the call's id.
    pub(super) fn digest(&self, params: Digest, is_guessable: bool) -> Digest {
        let owner = match &self.credential {
            Some(credential) => return with_credential(params, credential),
            None if is_guessable => self.owner().as_bytes(),
            None => return params,
        };
        Digest::of_bytes([&params.as_bytes()[..], owner].concat())
    }
}

/// The digest of params as a caller with this credential sends them.
pub(crate) fn with_credential(params: Digest, credential: &Digest) -> Digest {
    Digest::of_bytes([&params.as_bytes()[..], credential.as_bytes()].concat())
}

/// A name of this kind, by the beginning of a digest.
pub(super) fn label(kind: &str, digest: &Digest) -> Box<str> {
    let digits = digest.to_string();
    format!("{kind}-{}", &digits[..32]).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn via(headers: &[(&str, &str)]) -> Via {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(
                HeaderName::from_bytes(name.as_bytes()).unwrap(),
                HeaderValue::from_str(value).unwrap(),
            );
        }
        Via::at("shop", None, &map)
    }

    #[test]
    fn callers_differ_by_their_credentials_and_by_nothing_else() {
        let [none, one, other] =
            [&[][..], &[("authorization", "Bearer a")], &[("authorization", "Bearer b")]].map(via);
        assert_ne!(one.caller(), other.caller());
        assert_ne!(one.caller(), none.caller());
        assert_eq!(one.caller(), via(&[("authorization", "Bearer a"), ("accept", "x")]).caller());
        assert_ne!(via(&[("cookie", "a")]).caller(), via(&[("authorization", "a")]).caller());
        let both = via(&[("cookie", "b"), ("authorization", "Bearer a")]);
        assert_eq!(both.caller(), one.caller(), "a cookie that a proxy sets");
        assert!(!format!("{one:?}{}", one.caller()).contains("Bearer"));
    }

    /// Their records may lie in one file, where conversations are compared.
    #[test]
    fn callers_of_two_servers_differ() {
        let mut headers = HeaderMap::new();
        headers.insert(SESSION, HeaderValue::from_static("s"));
        for credential in [None, Some("Bearer a")] {
            if let Some(credential) = credential {
                headers.insert(AUTHORIZATION, HeaderValue::from_static(credential));
            }
            let [shop, bank] = ["shop", "bank"].map(|server| Via::at(server, None, &headers));
            assert_ne!(shop.caller(), bank.caller(), "{credential:?}");
            assert_ne!(shop.session(), bank.session());
        }
    }

    #[test]
    fn a_query_may_be_a_credential() {
        let at = |query| Via::at("shop", query, &HeaderMap::new()).caller;
        assert_ne!(at(Some("key=a")), at(Some("key=b")));
        assert_ne!(at(Some("key=a")), at(None));
        let session = |query| {
            let mut headers = HeaderMap::new();
            headers.insert(SESSION, HeaderValue::from_static("s"));
            Via::at("shop", query, &headers).session().map(str::to_owned)
        };
        assert_eq!(session(Some("key=a")), session(None));
    }

    #[test]
    fn a_key_is_any_text() {
        let of = |key: &[u8]| {
            let mut headers = HeaderMap::new();
            headers.insert(KEY, HeaderValue::from_bytes(key).unwrap());
            Via::at("shop", None, &headers)
        };
        let via = of("zahlung-\u{fc}-1".as_bytes());
        assert_eq!(via.key.unwrap().as_deref(), Ok("zahlung-\u{fc}-1"));
        let via = of(b"zahlung-\xfc-1");
        assert!(via.key.unwrap().is_err());
    }

    #[test]
    fn a_key_may_be_quoted() {
        for key in ["k-1", "\"k-1\""] {
            assert_eq!(via(&[("idempotency-key", key)]).key.unwrap().as_deref(), Ok("k-1"));
        }
    }
}
