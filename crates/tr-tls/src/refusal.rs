//! Errors of a failed TLS handshake.
use rustls::Error as Tls;
use std::{error::Error, io, sync::Arc};

/// Whether the client refused the server in the handshake, because of its certificate or its
/// protocol versions. Nothing was sent then. Also checks the error's sources.
///
/// Errors that may also end an established connection do not count.
#[must_use]
pub fn is_refusal(error: &(dyn Error + 'static)) -> bool {
    if let Some(tls) = error.downcast_ref::<Tls>() {
        return is_of_handshake(tls);
    }
    // These two do not list their content among their sources.
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

    /// As Redis clients keep errors.
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
        // These may also occur later.
        let odd = Tls::InvalidMessage(InvalidMessage::InvalidContentType);
        assert!(!is_refusal(&io::Error::other(odd)));
        assert!(!is_refusal(&io::Error::other(Tls::DecryptError)));
    }
}
