//! TLS for Redis clients.
use crate::{Error, Settings};
use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _,
    TlsCertificates,
};

/// Parses an address, and applies the settings to one with `rediss://`.
///
/// # Errors
/// If the address is invalid or disables verification (`#insecure`), or the settings are invalid.
pub fn connection_info(address: &str, settings: &Settings) -> Result<ConnectionInfo, Error> {
    let info = address.into_connection_info().map_err(|error| Error(error.to_string()))?;
    match info.addr() {
        ConnectionAddr::TcpTls { insecure: true, .. } => Err(Error(
            "`#insecure` is not supported, certificates are always verified: remove it".into(),
        )),
        ConnectionAddr::TcpTls { .. } => {
            // Reports invalid settings before the first connection, and installs the crypto
            // provider.
            settings.client_config()?;
            let Some(certificates) = certificates(settings) else { return Ok(info) };
            let client = Client::build_with_tls(info, certificates);
            let client = client.map_err(|error| Error(error.to_string()))?;
            Ok(client.get_connection_info().clone())
        }
        _ => Ok(info),
    }
}

/// Whether the address uses TLS.
#[must_use]
pub fn is_secure(info: &ConnectionInfo) -> bool {
    matches!(info.addr(), ConnectionAddr::TcpTls { .. })
}

/// The settings as Redis clients take them; `None` if nothing was set.
#[must_use]
pub fn certificates(settings: &Settings) -> Option<TlsCertificates> {
    let Settings { roots, certificate } = settings.clone();
    let client_tls =
        certificate.map(|(client_cert, client_key)| ClientTlsConfig { client_cert, client_key });
    (!settings.is_default()).then_some(TlsCertificates { client_tls, root_cert: roots })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_switches_verification_off() {
        let mut settings = Settings::default();
        settings.set_roots(tr_testkit::tls::Authority::new().pem());
        for address in ["rediss://host/#insecure", "valkeys://host/#insecure"] {
            let error = connection_info(address, &settings).unwrap_err();
            assert!(error.to_string().contains("always verified"), "{error}");
        }
        assert!(is_secure(&connection_info("rediss://host", &settings).unwrap()));
        assert!(!is_secure(&connection_info("redis://host", &settings).unwrap()));
        settings.set_roots("none");
        connection_info("rediss://host", &settings).unwrap_err();
    }
}
