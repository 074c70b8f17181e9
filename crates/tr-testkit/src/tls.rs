//! A test certificate authority and its certificates.
//!
//! # When to use
//!
//! To test which servers a client trusts: with a certificate of the right authority, of another
//! one, for another host.
//!
//! # Example
//!
//! ```
//! use tr_testkit::tls::Authority;
//!
//! let authority = Authority::new();
//! let server = authority.issue(["localhost", "127.0.0.1"]);
//! assert!(authority.pem().contains("BEGIN CERTIFICATE"));
//! assert!(server.key().contains("PRIVATE KEY"));
//! ```
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
#[cfg(all(unix, any(feature = "postgres", feature = "redis")))]
use std::{
    fs, io,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};

/// A new certificate authority.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, as PEM texts.
#[derive(Clone)]
pub struct Issued {
    certificate: String,
    key: String,
    #[cfg(all(unix, any(feature = "postgres", feature = "redis")))]
    authority: String,
}

impl Authority {
    /// Generates an authority.
    ///
    /// # Panics
    ///
    /// If there is no randomness for its key.
    #[expect(clippy::new_without_default, reason = "each is another one")]
    pub fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("there is randomness");
        // A unique name, since clients look issuers up by name.
        let name = format!("authority {:x?}", &key.public_key_raw()[1..9]);
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        Self(CertifiedIssuer::self_signed(params, key).expect("the parameters are sound"))
    }

    /// Its certificate as a PEM text, for clients that trust it.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// Issues a certificate for a server with these names or addresses, or for a client.
    ///
    /// # Panics
    ///
    /// If a name is invalid.
    pub fn issue<'n>(&self, names: impl IntoIterator<Item = &'n str>) -> Issued {
        let names: Vec<String> = names.into_iter().map(Into::into).collect();
        let mut params = CertificateParams::new(names).expect("they are names of hosts");
        // PostgreSQL reads this name from client certificates.
        params.distinguished_name.push(rcgen::DnType::CommonName, "postgres");
        let key = KeyPair::generate().expect("there is randomness");
        let certificate = params.signed_by(&key, &self.0).expect("the parameters are sound");
        let (certificate, key) = (certificate.pem(), key.serialize_pem());
        Issued {
            certificate,
            key,
            #[cfg(all(unix, any(feature = "postgres", feature = "redis")))]
            authority: self.pem(),
        }
    }
}

impl Issued {
    /// The certificate.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }

    /// Its private key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Writes the files of a server: its certificate, its key, its authority's certificate,
    /// readable by their owner only.
    #[cfg(all(unix, any(feature = "postgres", feature = "redis")))]
    pub(crate) fn write(&self, folder: &Path) -> io::Result<[PathBuf; 3]> {
        let files = ["tls.crt", "tls.key", "tls-authority.crt"].map(|name| folder.join(name));
        for (file, text) in files.iter().zip([&self.certificate, &self.key, &self.authority]) {
            let mut options = fs::OpenOptions::new();
            let mut file =
                options.write(true).create(true).truncate(true).mode(0o600).open(file)?;
            io::Write::write_all(&mut file, text.as_bytes())?;
        }
        Ok(files)
    }
}

// Without the key.
tr_core::debug_parts! { Authority, |_it|  }

// Without the key.
tr_core::debug_parts! { Issued, |_it|  }
