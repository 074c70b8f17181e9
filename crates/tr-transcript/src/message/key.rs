//! The key of a use or a result.
use super::Kind;
use crate::keys::Key;

impl Kind {
    /// The key of a use or a result; with `names_pair`, names are part of it.
    pub(crate) fn key(&self, names_pair: bool) -> Option<Key> {
        let (Self::Use { id, id_at, name, .. } | Self::Result { id, id_at, name, .. }) = self
        else {
            return None;
        };
        let name = if names_pair { name.clone() } else { Box::default() };
        Some(Key::new(id.clone(), id_at.is_some(), name))
    }
}
