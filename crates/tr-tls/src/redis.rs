//! Clients of Redis that talk TLS.
use crate::{Error, Settings};
use redis::{
    Client, ClientTlsConfig, ConnectionAddr, ConnectionInfo, IntoConnectionInfo as _,
    TlsCertificates,
};

/// What an address says. One with `rediss://` trusts and shows what the settings say.
///
/// # Errors
/// It is no address, wants certificates unverified (`#insecure`), or the settings cannot work.
pub fn connection_info(address: &str, settings: &Settings) -> Result<ConnectionInfo, Error> {
    let info = address.into_connection_info().map_err(|error| Error(error.to_string()))?;
    match info.addr() {
        ConnectionAddr::TcpTls { insecure: true, .. } => {
            Err(Error("`#insecure` in it: certificates are always verified; leave it out".into()))
        }
        ConnectionAddr::TcpTls { .. } => {
            // Wrong settings would be told when it first connects, and ring be no provider by then.
            settings.client_config()?;
            let Some(certificates) = certificates(settings) else { return Ok(info) };
            let client = Client::build_with_tls(info, certificates);
            let client = client.map_err(|error| Error(error.to_string()))?;
            Ok(client.get_connection_info().clone())
        }
        _ => Ok(info),
    }
}

/// Whether a client talks TLS there.
#[must_use]
pub fn is_secure(info: &ConnectionInfo) -> bool {
    matches!(info.addr(), ConnectionAddr::TcpTls { .. })
}

/// The settings as clients of Redis take them, where anything was set.
#[must_use]
pub fn certificates(settings: &Settings) -> Option<TlsCertificates> {
    let client_tls = settings.certificate().map(|(chain, key)| ClientTlsConfig {
        client_cert: chain.to_vec(),
        client_key: key.to_vec(),
    });
    let root_cert = settings.roots().map(<[u8]>::to_vec);
    (!settings.is_default()).then_some(TlsCertificates { client_tls, root_cert })
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
