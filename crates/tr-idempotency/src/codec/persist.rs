//! Responses as bytes.
use super::outcome;
use serde::{Serialize, de::DeserializeOwned};
use std::io::Write;
use tr_core::{AsJson, BoxError, Json, ToolOutcome};

/// A stored response that can be written as bytes: what a policy's
/// [`StoreResponse`](tr_core::StoreResponse) keeps.
///
/// # When to use
///
/// Implemented for [`ToolOutcome`], `Vec<u8>`, `String`, [`Json`], [`AsJson<T>`](AsJson) for every `T` with
/// serde's impls and, with the feature `bytes`, `bytes::Bytes`. Implement it for the `Stored` of your own
/// codec to use a [`RecordStore`](crate::store::RecordStore). The bytes outlive the program: a later version must
/// read them, or return an error. The layer adds version, checksum and encryption.
///
/// ```
/// use std::io::Write;
/// use tr_core::BoxError;
/// use tr_idempotency::store::Persist;
///
/// #[derive(Clone)]
/// struct Receipt(u64);
///
/// impl Persist for Receipt {
///     fn write_to(&self, out: &mut dyn Write) -> Result<(), BoxError> {
///         Ok(out.write_all(&self.0.to_le_bytes())?)
///     }
///     fn from_bytes(bytes: &[u8]) -> Result<Self, BoxError> {
///         Ok(Self(u64::from_le_bytes(bytes.try_into()?)))
///     }
/// }
/// ```
pub trait Persist: Sized {
    /// Writes the response as bytes, which need not be in memory together: of one that is too large for a
    /// record only a digest is kept.
    ///
    /// # Errors
    /// If it cannot be written as bytes. The call is then recorded without its response.
    fn write_to(&self, out: &mut dyn Write) -> Result<(), BoxError>;

    /// The response from its bytes.
    ///
    /// # Errors
    /// If these are not the bytes of a response. The call is not run again then.
    fn from_bytes(bytes: &[u8]) -> Result<Self, BoxError>;
}

impl Persist for ToolOutcome {
    fn write_to(&self, out: &mut dyn Write) -> Result<(), BoxError> {
        outcome::write(self, out)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, BoxError> {
        outcome::read(bytes)
    }
}

impl Persist for Vec<u8> {
    fn write_to(&self, out: &mut dyn Write) -> Result<(), BoxError> {
        Ok(out.write_all(self)?)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, BoxError> {
        Ok(bytes.to_vec())
    }
}

#[cfg(feature = "bytes")]
impl Persist for bytes::Bytes {
    fn write_to(&self, out: &mut dyn Write) -> Result<(), BoxError> {
        Ok(out.write_all(self)?)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, BoxError> {
        Ok(Self::copy_from_slice(bytes))
    }
}

impl Persist for String {
    fn write_to(&self, out: &mut dyn Write) -> Result<(), BoxError> {
        Ok(out.write_all(self.as_bytes())?)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, BoxError> {
        Ok(str::from_utf8(bytes)?.to_owned())
    }
}

impl Persist for Json {
    fn write_to(&self, out: &mut dyn Write) -> Result<(), BoxError> {
        Ok(out.write_all(self.get().as_bytes())?)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, BoxError> {
        Ok(Self::from_text(str::from_utf8(bytes)?)?)
    }
}

impl<T: Serialize + DeserializeOwned> Persist for AsJson<T> {
    fn write_to(&self, out: &mut dyn Write) -> Result<(), BoxError> {
        Ok(serde_json::to_writer(out, &self.0)?)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, BoxError> {
        Ok(Self(serde_json::from_slice(bytes)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Debug;

    fn survives<T: Persist + PartialEq + Debug>(value: &T, bytes: &[u8]) {
        let mut written = Vec::new();
        value.write_to(&mut written).unwrap();
        assert_eq!(written, bytes);
        assert_eq!(&T::from_bytes(bytes).unwrap(), value);
    }

    #[test]
    fn bytes_text_and_json_come_back_as_they_were() {
        survives(&vec![0_u8, 255], &[0, 255]);
        survives(&"paid — é".to_owned(), "paid — é".as_bytes());
        survives(&Json::from_text(r#"{"b": 1.0,"a":2}"#).unwrap(), br#"{"b": 1.0,"a":2}"#);
        survives(&AsJson((7_u32, Some("x".to_owned()))), br#"[7,"x"]"#);
        #[cfg(feature = "bytes")]
        survives(&bytes::Bytes::from_static(b"\0"), b"\0");
    }

    #[test]
    fn bytes_of_another_form_are_refused() {
        assert!(String::from_bytes(&[0xff]).is_err());
        assert!(Json::from_bytes(b"{").is_err());
        assert!(AsJson::<u32>::from_bytes(b"\"7\"").is_err());
    }
}
