//! Responses as bytes.
use super::outcome;
use tr_core::{BoxError, ToolOutcome};

/// A stored response that can be written as bytes: what a policy's
/// [`StoreResponse`](tr_core::StoreResponse) keeps.
///
/// # When to use
///
/// Implemented for [`ToolOutcome`]; implement it for the `Stored` of your own codec to use a
/// [`RecordStore`](crate::store::RecordStore). The bytes outlive the program: a later version must
/// read them, or return an error. The layer adds version, checksum and encryption.
///
/// ```
/// use tr_core::BoxError;
/// use tr_idempotency::store::Persist;
///
/// #[derive(Clone)]
/// struct Receipt(u64);
///
/// impl Persist for Receipt {
///     fn to_bytes(&self) -> Result<Vec<u8>, BoxError> {
///         Ok(self.0.to_le_bytes().to_vec())
///     }
///     fn from_bytes(bytes: &[u8]) -> Result<Self, BoxError> {
///         Ok(Self(u64::from_le_bytes(bytes.try_into()?)))
///     }
/// }
/// ```
pub trait Persist: Sized {
    /// The response as bytes.
    ///
    /// # Errors
    /// If it cannot be written as bytes. The call is then recorded without its response.
    fn to_bytes(&self) -> Result<Vec<u8>, BoxError>;

    /// The response from its bytes.
    ///
    /// # Errors
    /// If these are not the bytes of a response. The call is not run again then.
    fn from_bytes(bytes: &[u8]) -> Result<Self, BoxError>;
}

impl Persist for ToolOutcome {
    fn to_bytes(&self) -> Result<Vec<u8>, BoxError> {
        outcome::write(self)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, BoxError> {
        outcome::read(bytes)
    }
}
