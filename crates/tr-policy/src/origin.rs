//! One spelling for the origin of a URL: `https://api.example.com`, `http://[::1]:8080`.
//!
//! Scheme and host in lower case, no user, no dot at the end of the host, and a port only where it
//! is not the scheme's own. It is made of its parts when it is needed, so that a
//! [`KeyRef`](crate::KeyRef) can borrow them from a request.
use std::str;

/// Origins up to this length are spelled without an allocation.
const USUAL: usize = 128;

/// The host and the port in an authority or a `host` header, without the user.
#[must_use]
pub fn without_user(authority: &str) -> &str {
    authority.rsplit_once('@').map_or(authority, |(_, host)| host)
}

/// Calls `read` with the spelling. Without a scheme there is no default port either.
pub(crate) fn spelled<R>(scheme: &str, host_and_port: &str, read: impl FnOnce(&str) -> R) -> R {
    let (host, port) = split(host_and_port);
    let default = match () {
        () if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("ws") => "80",
        () if scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("wss") => "443",
        () => "",
    };
    let port = if port == default { "" } else { port };
    let parts = [
        scheme,
        if scheme.is_empty() { "" } else { "://" },
        host,
        if port.is_empty() { "" } else { ":" },
        port,
    ];
    let length = parts.iter().map(|part| part.len()).sum();
    let (mut usual, mut long) = ([0; USUAL], Vec::new());
    let spelling: &mut [u8] = match usual.get_mut(..length) {
        Some(spelling) => spelling,
        None => {
            long.resize(length, 0);
            &mut long
        }
    };
    let bytes = parts.iter().flat_map(|part| part.bytes());
    for (place, byte) in spelling.iter_mut().zip(bytes) {
        *place = byte.to_ascii_lowercase();
    }
    read(str::from_utf8(spelling).expect("texts in lower case, one after the other"))
}

/// The host, and the port or nothing. Brackets are part of the host.
fn split(host_and_port: &str) -> (&str, &str) {
    let is_port = |port: &str| port.is_empty() || port.parse::<u16>().is_ok();
    let (host, port) = match host_and_port.rsplit_once(':') {
        // Not the last part of an IPv6 address.
        Some((host, port)) if !port.contains(']') && is_port(port) => (host, port),
        _ => (host_and_port, ""),
    };
    let digits = port.trim_start_matches(['+', '0']);
    let port = if digits.is_empty() && !port.is_empty() { "0" } else { digits };
    (host.strip_suffix('.').filter(|host| !host.is_empty()).unwrap_or(host), port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_spelling() {
        let long = "a".repeat(200);
        let cases = [
            ("https", "api.example.com", "https://api.example.com"),
            ("https", "api.example.com:443", "https://api.example.com"),
            ("HTTPS", "API.Example.com:0443", "https://api.example.com"),
            ("https", "api.example.com.", "https://api.example.com"),
            ("https", "api.example.com.:443", "https://api.example.com"),
            ("https", "api.example.com:", "https://api.example.com"),
            ("https", "api.example.com:80", "https://api.example.com:80"),
            ("http", "localhost", "http://localhost"),
            ("http", "localhost:80", "http://localhost"),
            ("http", "localhost:65535", "http://localhost:65535"),
            ("wss", "localhost:443", "wss://localhost"),
            ("http", "[::1]", "http://[::1]"),
            ("http", "[::1]:80", "http://[::1]"),
            ("http", "[FE80::1]:8080", "http://[fe80::1]:8080"),
            ("h2c", "localhost:80", "h2c://localhost:80"),
            ("http", "localhost:0", "http://localhost:0"),
            ("http", "localhost:+0081", "http://localhost:81"),
            ("", "Example.org.:443", "example.org:443"),
            ("", "", ""),
            ("", ".", "."),
            ("http", "localhost:http", "http://localhost:http"),
            ("http", "localhost:99999", "http://localhost:99999"),
            ("http", &long, &format!("http://{long}")),
        ];
        for (scheme, authority, spelling) in cases {
            spelled(scheme, authority, |read| assert_eq!(read, spelling, "{authority}"));
        }
    }

    #[test]
    fn who_asks_is_no_part_of_it() {
        assert_eq!(without_user("ada:secret@example.org:8080"), "example.org:8080");
        assert_eq!(without_user("ada@b@example.org"), "example.org");
        assert_eq!(without_user("example.org"), "example.org");
    }
}
