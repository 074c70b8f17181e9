//! A call's params: JSON text, shared and never copied.
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::DeserializeOwned};
use serde_json::value::RawValue;
use std::{fmt, sync::Arc};

/// JSON text that travels shared: a clone is a reference count.
///
/// The text stays as it came, byte for byte. It may hold secrets, so [`Debug`](fmt::Debug)
/// prints only its length.
#[derive(Clone)]
// In an `Arc` of its own the text would be copied into it.
pub struct Json(Arc<Box<RawValue>>);

/// The params of a tool call.
pub type Params = Json;

impl Json {
    /// Takes JSON text as it is.
    ///
    /// # Errors
    /// If `text` is not JSON; the error says where.
    pub fn from_text(text: impl Into<String>) -> Result<Self, serde_json::Error> {
        RawValue::from_string(text.into()).map(Self::from)
    }

    /// Writes `value` as JSON.
    ///
    /// # Errors
    /// If `value` cannot be written as JSON (a map whose keys are not strings, say).
    pub fn from_value(value: &(impl Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self::from)
    }

    /// `{}`.
    #[must_use]
    pub fn empty_object() -> Self {
        Self::from_text("{}").expect("is JSON")
    }

    /// The text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.get()
    }

    /// The text as serde_json's own type.
    #[must_use]
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }

    /// Reads it into `T`.
    ///
    /// # Errors
    /// If the text does not have `T`'s form.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.get())
    }

    /// Whether both are the very same text in memory.
    #[must_use]
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl From<Box<RawValue>> for Json {
    fn from(raw: Box<RawValue>) -> Self {
        Self(Arc::new(raw))
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        Self::from_value(&value).expect("a Value is JSON")
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Json {}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Json({} bytes)", self.get().len())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}
