//! Errors by which no connection came about.
use rustls::Error as Tls;
use std::{error::Error, io, sync::Arc};

/// Whether the client refused the server in the handshake: its certificate, or what it offers.
/// Nothing was sent then. Looks into the sources, too.
///
/// Errors that may also end a connection that was made are none of these.
#[must_use]
pub fn is_refusal(error: &(dyn Error + 'static)) -> bool {
    if let Some(tls) = error.downcast_ref::<Tls>() {
        return is_of_handshake(tls);
    }
    // What these two hold is not among their sources.
    if let Some(shared) = error.downcast_ref::<Arc<dyn Error + Send + Sync>>() {
        return is_refusal(&**shared);
    }
    if let Some(held) = error.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        return is_refusal(held);
    }
    error.source().is_some_and(is_refusal)
}

const fn is_of_handshake(error: &Tls) -> bool {
    matches!(
        error,
        Tls::InvalidCertificate(_)
            | Tls::NoCertificatesPresented
            | Tls::PeerIncompatible(_)
            | Tls::UnsupportedNameType
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::{CertificateError, InvalidMessage};
    use std::fmt;

    /// As clients of Redis keep errors.
    #[derive(Debug)]
    struct Outer(Arc<dyn Error + Send + Sync>);

    impl fmt::Display for Outer {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("outer")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn only_what_ends_a_handshake_is_a_refusal() {
        let refused = || Tls::InvalidCertificate(CertificateError::UnknownIssuer);
        assert!(is_refusal(&refused()));
        assert!(is_refusal(&io::Error::other(refused())));
        assert!(is_refusal(&Outer(Arc::new(io::Error::other(refused())))));
        let reset = io::Error::from(io::ErrorKind::ConnectionReset);
        assert!(!is_refusal(&Outer(Arc::new(reset))));
        // These may also come later.
        let odd = Tls::InvalidMessage(InvalidMessage::InvalidContentType);
        assert!(!is_refusal(&io::Error::other(odd)));
        assert!(!is_refusal(&io::Error::other(Tls::DecryptError)));
    }
}
