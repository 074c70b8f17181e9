//! Who may use the admin page: decides from a request's address, `host`, token and origin. The admin page
//! and the guard's page of metrics ask it before they read anything else of a request.
use http::{HeaderMap, header, request::Parts};
use std::{
    fmt,
    net::{IpAddr, SocketAddr},
};

/// Where a request comes from: a listener puts it among the request's extensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer(pub SocketAddr);

pub(super) fn peer(head: &Parts) -> Option<SocketAddr> {
    head.extensions.get::<Peer>().map(|peer| peer.0)
}

/// Which requests are allowed. With a token: those that send it. Without one (the default): those that only
/// read (`GET`, `HEAD`), from this machine, to `localhost` or a loopback address. Those of another site's web
/// page never.
#[derive(Default)]
pub struct Access(Option<Box<[u8]>>);

impl Access {
    /// Requires this token, which is compared in constant time.
    ///
    /// # Errors
    /// If it has less than 16 bytes, or is no visible ASCII: a header could not carry it.
    pub fn token(token: &str) -> Result<Self, WeakToken> {
        let is_good = token.len() >= 16 && token.bytes().all(|byte| byte.is_ascii_graphic());
        if is_good { Ok(Self(Some(token.as_bytes().into()))) } else { Err(WeakToken(())) }
    }

    /// Checks a request, with its [`Peer`] among the extensions.
    ///
    /// # Errors
    /// Why it is refused.
    pub fn check(&self, head: &Parts) -> Result<(), &'static str> {
        if is_cross_site(head) {
            return Err("a cross-site browser request is not allowed");
        }
        match &self.0 {
            Some(token) => match bearer(&head.headers) {
                Some(given) if same(given, token) => Ok(()),
                _ => Err("send the token as `authorization: Bearer …`"),
            },
            None if !peer(head).is_some_and(|peer| peer.ip().to_canonical().is_loopback()) => {
                Err("without a token, only requests from this machine are allowed")
            }
            None if !host(head).is_some_and(is_local) => {
                Err("`host` must name this machine, such as localhost")
            }
            None if !head.method.is_safe() => Err(
                "orders need a token, which this program was not given: without one, only GET is allowed",
            ),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "token" } else { "loopback" })
    }
}

/// The error for a token that is too short or not visible ASCII.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid token: use 16 or more visible ASCII characters without spaces")]
pub struct WeakToken(());

/// Whether both are the same. Constant time, so that the duration does not reveal how much of a guess is right.
#[must_use]
pub fn same(given: &[u8], token: &[u8]) -> bool {
    constant_time_eq::constant_time_eq(given, token)
}

fn bearer(headers: &HeaderMap) -> Option<&[u8]> {
    let value = headers.get(header::AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then_some(token.trim_ascii())
}

/// The host that the client wants, its port left out. More than one is none.
fn host(head: &Parts) -> Option<&str> {
    let mut hosts = head.headers.get_all(header::HOST).iter();
    let authority = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok()?,
        (None, None) => head.uri.authority()?.as_str(),
        _ => return None,
    };
    Some(without_port(authority))
}

/// The host of `host:port`.
#[must_use]
pub fn without_port(authority: &str) -> &str {
    match authority.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or(rest),
        None => authority.split(':').next().unwrap_or(authority),
    }
}

/// Whether the host is this machine's own name or address.
#[must_use]
pub fn is_local(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// Whether a page of another site made a browser send this.
fn is_cross_site(head: &Parts) -> bool {
    let text = |name| head.headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    let fetched =
        text("sec-fetch-site").is_some_and(|site| !matches!(site, "same-origin" | "none"));
    let origin = text("origin").is_some_and(|origin| {
        let origin = origin.split_once("://").map_or(origin, |(_, authority)| authority);
        let hosts = head.headers.get(header::HOST).and_then(|host| host.to_str().ok());
        !hosts.is_some_and(|host| host.eq_ignore_ascii_case(origin))
    });
    fetched || origin
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn head(peer: Option<&str>, headers: &[(&'static str, &str)]) -> Parts {
        let mut request = Request::get("/debug/tool-reliability");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        if let Some(peer) = peer {
            head.extensions.insert(Peer(peer.parse().unwrap()));
        }
        head
    }

    const HERE: Option<&str> = Some("127.0.0.1:5000");

    #[test]
    fn without_a_token_only_this_machine_may_under_its_own_name() {
        let may =
            |peer, host: &str| Access::default().check(&head(peer, &[("host", host)])).is_ok();
        for host in ["localhost", "LOCALHOST:9000", "127.0.0.1:1", "127.3.2.1", "[::1]:80", "[::1]"]
        {
            assert!(may(HERE, host), "{host}");
            assert!(may(Some("[::1]:5"), host) && may(Some("[::ffff:127.0.0.1]:5"), host));
        }
        for host in
            ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "", "[::2]"]
        {
            assert!(!may(HERE, host), "{host}");
        }
        assert!(!may(None, "localhost") && !may(Some("10.0.0.7:5"), "localhost"));
        let twice = head(HERE, &[("host", "localhost"), ("host", "evil.example")]);
        assert!(Access::default().check(&twice).is_err());
        assert!(Access::default().check(&head(HERE, &[])).is_err());
    }

    #[test]
    fn with_a_token_whoever_has_it_may() {
        let access = Access::token("0123456789abcdef").unwrap();
        let may = |value: &str| access.check(&head(None, &[("authorization", value)])).is_ok();
        assert!(may("Bearer 0123456789abcdef") && may("bearer 0123456789abcdef"));
        for bad in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcdeX",
            "Bearer 0123456789abcdef0",
            "Basic 0123456789abcdef",
        ] {
            assert!(!may(bad), "{bad}");
        }
        assert!(access.check(&head(HERE, &[("host", "localhost")])).is_err());
        assert_eq!(format!("{access:?}"), "token");
    }

    #[test]
    fn a_page_of_another_site_may_not_even_with_a_token() {
        let token = ("authorization", "Bearer 0123456789abcdef");
        let may = |more: &[(&'static str, &str)]| {
            let access = Access::token("0123456789abcdef").unwrap();
            access
                .check(&head(HERE, &[&[token, ("host", "localhost:9000")], more].concat()))
                .is_ok()
        };
        assert!(may(&[]) && may(&[("sec-fetch-site", "none")]));
        assert!(may(&[("origin", "http://localhost:9000"), ("sec-fetch-site", "same-origin")]));
        for bad in ["https://evil.example", "null", "http://localhost:9001", "http://localhost"] {
            assert!(!may(&[("origin", bad)]), "{bad}");
        }
        assert!(
            !may(&[("sec-fetch-site", "cross-site")]) && !may(&[("sec-fetch-site", "same-site")])
        );
    }
}
