//! Reads connection addresses and their TLS settings.
use super::fault::WithCause;
use std::{ops::Range, str::FromStr};
use tokio_postgres::{Config, config::SslMode};

/// The connection settings of an address, and whether connections use TLS; `is_asked` says that
/// another setting asks for TLS. Connections never fall back from TLS to plain text.
pub(super) fn read(address: &str, is_asked: bool) -> Result<(Config, bool), String> {
    let place = place_of_mode(address);
    let said = place.clone().map(|place| &address[place]);
    let is_secure = match said {
        None => None,
        Some("require" | "verify-full") => Some(true),
        Some("disable") if is_asked => {
            return Err("sslmode=disable contradicts the TLS settings: remove one of them".into());
        }
        Some("disable") => Some(false),
        Some("prefer") => {
            return Err("sslmode=prefer may fall back to an unencrypted connection: write require, or disable".into());
        }
        Some(_) => return Err("unknown sslmode: write disable, require or verify-full".into()),
    };
    // Both verify the certificate; the client only supports the first.
    let known = match place.filter(|_| is_secure == Some(true)) {
        Some(place) => [&address[..place.start], "require", &address[place.end..]].concat(),
        None => address.to_owned(),
    };
    let mut config = Config::from_str(&known).map_err(|error| WithCause(error).to_string())?;
    let is_secure =
        is_secure.unwrap_or_else(|| is_asked || config.get_ssl_mode() == SslMode::Require);
    config.ssl_mode(if is_secure { SslMode::Require } else { SslMode::Disable });
    Ok((config, is_secure))
}

/// The range of the last value of `sslmode`.
fn place_of_mode(address: &str) -> Option<Range<usize>> {
    let is_url = ["postgres://", "postgresql://"].iter().any(|scheme| address.starts_with(scheme));
    if is_url { in_url(address) } else { in_pairs(address) }
}

fn in_url(address: &str) -> Option<Range<usize>> {
    // A password may hold a question mark.
    let host = address.find('@').map_or(0, |at| at + 1);
    let mut at = host + address[host..].find('?')? + 1;
    let mut found = None;
    for parameter in address[at..].split('&') {
        if parameter.starts_with("sslmode=") {
            found = Some(at + "sslmode=".len()..at + parameter.len());
        }
        at += parameter.len() + 1;
    }
    found
}

/// Reads libpq's pairs: `key=value`, values with spaces in quotes, escapes with `\\`.
fn in_pairs(address: &str) -> Option<Range<usize>> {
    let (mut rest, mut found) = (address.trim_start(), None);
    while let Some(end) = rest.find(|c: char| c == '=' || c.is_whitespace()) {
        let (key, after) = rest.split_at(end);
        let Some(value) = after.trim_start().strip_prefix('=') else { break };
        let value = value.trim_start();
        let unquoted = value.strip_prefix('\'');
        let is_quoted = unquoted.is_some();
        let value = unquoted.unwrap_or(value);
        let mut is_escaped = false;
        let ends = |c: char| {
            let is_end = if is_quoted { c == '\'' } else { c.is_whitespace() };
            let ends = !is_escaped && is_end;
            is_escaped = !is_escaped && c == '\\';
            ends
        };
        let (value, after) = value.split_at(value.find(ends).unwrap_or(value.len()));
        let end = address.len() - after.len();
        if key == "sslmode" {
            found = Some(end - value.len()..end);
        }
        rest = after.strip_prefix('\'').filter(|_| is_quoted).unwrap_or(after).trim_start();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_secure(address: &str) -> Result<bool, String> {
        let read = read(address, false)?;
        let mode = if read.1 { SslMode::Require } else { SslMode::Disable };
        assert_eq!(read.0.get_ssl_mode(), mode);
        Ok(read.1)
    }

    #[test]
    fn tls_is_used_where_it_is_asked_for_and_never_perhaps() {
        for address in [
            "postgresql://me@host/db?sslmode=require",
            "postgres://me@host/db?application_name=a&sslmode=verify-full&connect_timeout=3",
            "postgresql://me:what?sslmode=disable@host/db?sslmode=verify-full",
            "postgresql://host?sslmode=disable&sslmode=require",
            "postgresql://host?ssl%6Dode=require",
            "host=host sslmode=verify-full",
            " host = host  sslmode = 'verify-full' user=me",
            "password='a \\' sslmode=disable' sslmode=require host=host",
            "password=a\\ sslmode=disable host=host sslmode=require",
        ] {
            assert_eq!(is_secure(address), Ok(true), "{address}");
        }
        for address in [
            "postgresql://host/db",
            "postgresql://host?sslmode=disable",
            "postgresql://me:sslmode=require@host",
            "host=host",
            "host=host sslmode=disable",
            "password='sslmode=require' host=host",
        ] {
            assert_eq!(is_secure(address), Ok(false), "{address}");
            assert!(read(address, true).map_or(address.contains("=disable"), |(_, it)| it));
        }
        for mode in ["prefer", "pre%66er", "allow", "verify-ca", "on", ""] {
            is_secure(&format!("postgresql://host?sslmode={mode}")).unwrap_err();
            is_secure(&format!("sslmode='{mode}' host=host")).unwrap_err();
            read(&format!("postgresql://host?sslmode={mode}"), true).unwrap_err();
        }
    }

    #[test]
    fn values_stand_as_they_were() {
        let config = read("password='a \\' b' sslmode=verify-full host=h", false).unwrap().0;
        assert_eq!(config.get_password(), Some(&b"a ' b"[..]));
        assert_eq!(config.get_hosts().len(), 1);
    }
}
