//! Trusted authorities and the client certificate.
use crate::Error;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use std::{fmt, sync::Arc};

/// The authorities that a client trusts, and its own certificate. By default it trusts the system's
/// authorities and has no certificate.
#[derive(Clone, Default)]
pub struct Settings {
    pub(crate) roots: Option<Vec<u8>>,
    /// The chain, and its key.
    pub(crate) certificate: Option<(Vec<u8>, Vec<u8>)>,
}

impl Settings {
    /// Trusts the authorities of this PEM text instead of the system's.
    pub fn set_roots(&mut self, pem: impl Into<Vec<u8>>) {
        self.roots = Some(pem.into());
    }

    /// Presents this certificate chain to servers that ask for one. Both are PEM texts.
    pub fn set_certificate(&mut self, chain: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) {
        self.certificate = Some((chain.into(), key.into()));
    }

    /// Whether nothing was set.
    #[must_use]
    pub const fn is_default(&self) -> bool {
        self.roots.is_none() && self.certificate.is_none()
    }

    /// The rustls configuration of these settings.
    ///
    /// # Errors
    /// If a text is not valid PEM, an authority's certificate cannot be used, the certificate and
    /// its key do not match, or the system has no authorities.
    pub fn client_config(&self) -> Result<ClientConfig, Error> {
        self.client_config_with(&[])
    }

    /// The rustls configuration of these settings, which trusts the authorities of this PEM text, too.
    ///
    /// # Errors
    /// As [`client_config`](Self::client_config). An empty text adds nothing.
    pub fn client_config_with(&self, more_roots: &[u8]) -> Result<ClientConfig, Error> {
        let provider = provider();
        let config =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let config = config.map_err(|error| Error(format!("TLS: {error}")))?;
        let config = config.with_root_certificates(self.trusted(more_roots)?);
        let Some((chain, key)) = &self.certificate else {
            return Ok(config.with_no_client_auth());
        };
        let chain = certificates(chain, "invalid client certificate")?;
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|_| {
            Error("invalid client key: the text is not a private key in PEM".into())
        })?;
        let config = config.with_client_auth_cert(chain, key);
        config.map_err(|error| Error(format!("invalid client certificate or key: {error}")))
    }

    fn trusted(&self, more: &[u8]) -> Result<RootCertStore, Error> {
        let mut store = RootCertStore::empty();
        for pem in self.roots.as_deref().into_iter().chain((!more.is_empty()).then_some(more)) {
            for root in certificates(pem, "invalid authorities")? {
                store.add(root).map_err(|error| Error(format!("invalid authorities: {error}")))?;
            }
        }
        if self.roots.is_some() {
            return Ok(store);
        }
        let system = rustls_native_certs::load_native_certs();
        // Some system certificates cannot be read by rustls.
        store.add_parsable_certificates(system.certs);
        if store.is_empty() {
            let why = system.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
            return Err(Error(format!(
                "the system has no trusted authorities{why}: install them, or set your own"
            )));
        }
        Ok(store)
    }
}

/// The process's crypto provider. If there is none, this installs ring, as rustls does itself where
/// ring is the only one built in.
fn provider() -> Arc<CryptoProvider> {
    if CryptoProvider::get_default().is_none() {
        // Another thread may have installed one first.
        let _ = ring::default_provider().install_default();
    }
    let provider = CryptoProvider::get_default().cloned();
    provider.unwrap_or_else(|| Arc::new(ring::default_provider()))
}

fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let all = all.map_err(|error| Error(format!("{what}: {error}")))?;
    if all.is_empty() {
        return Err(Error(format!("{what}: there is no certificate in the PEM text")));
    }
    Ok(all)
}

/// Without the key.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Settings")
            .field("has_own_roots", &self.roots.is_some())
            .field("has_certificate", &self.certificate.is_some())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tr_testkit::tls::Authority;

    #[test]
    fn what_cannot_work_is_told_before_any_connection() {
        let authority = Authority::new();
        let (one, other) = (authority.issue(["a"]), authority.issue(["b"]));
        let mut good = Settings::default();
        assert!(good.is_default());
        good.set_roots(authority.pem());
        good.set_certificate(one.certificate(), one.key());
        good.client_config().unwrap();
        assert!(!format!("{good:?}").contains("KEY"));

        let wrong = |change: &dyn Fn(&mut Settings)| {
            let mut settings = good.clone();
            change(&mut settings);
            settings.client_config().unwrap_err().to_string()
        };
        for pem in ["", "no PEM", one.key()] {
            assert!(wrong(&|it| it.set_roots(pem)).contains("no certificate"), "{pem}");
        }
        assert!(good.client_config_with(b"no PEM").is_err());
        good.client_config_with(Authority::new().pem().as_bytes()).unwrap();
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        assert!(wrong(&|it| it.set_roots(broken)).starts_with("invalid authorities: "));
        let cut = &authority.pem()[..100];
        assert!(wrong(&|it| it.set_roots(cut)).starts_with("invalid authorities: "));
        let no_key = wrong(&|it| it.set_certificate(one.certificate(), "no key"));
        assert!(no_key.starts_with("invalid client key: "), "{no_key}");
        let not_a_pair = wrong(&|it| it.set_certificate(one.certificate(), other.key()));
        assert!(not_a_pair.starts_with("invalid client certificate or key: "), "{not_a_pair}");
    }
}
