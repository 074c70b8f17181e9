//! Answers as bytes.
use super::outcome;
use tr_core::{BoxError, ToolOutcome};

/// An answer that a store can keep: what a [`Codec`](tr_core::Codec) stores, as bytes.
///
/// # When to use
///
/// Implemented for [`ToolOutcome`]; implement it for the `Stored` of your own codec to use a
/// [`RecordStore`](crate::store::RecordStore). The bytes outlive the program: a later version of
/// it must read them, or say that it cannot. Version, checksum and encryption are added around
/// them.
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
    /// The answer as bytes.
    ///
    /// # Errors
    /// If it has no such form. The call is recorded all the same, without its answer.
    fn to_bytes(&self) -> Result<Vec<u8>, BoxError>;

    /// The answer again.
    ///
    /// # Errors
    /// If these are not the bytes of one. The call is not run again for that.
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
