//! Notes about the request of a store's record, for operators.
use super::{Found, Frames, Place, Unreadable};
use crate::{local::notes::RequestNote, store::Stored};
use tr_core::{CallInfo, RecordRef};

impl<'n> RequestNote<'n> {
    pub(crate) fn of(info: &CallInfo<'n>, record: &RecordRef<'n>) -> Self {
        Self {
            tool: info.tool.into(),
            session: info.session.map(Into::into),
            actor: record.actor.map(Into::into),
            request_id: info.request_id.map(Into::into),
            tool_call_id: info.tool_call_id.map(Into::into),
            key: record.key.map(Into::into),
            about: record.about.map(Into::into),
        }
    }

    pub(crate) fn write(&self, place: &Place, frames: &Frames) -> Vec<u8> {
        let json = serde_json::to_vec(self).expect("texts are JSON");
        frames.wrap(&place.key, &place.notes(), json)
    }

    pub(crate) fn read(stored: &Stored, frames: &Frames) -> Result<Self, Unreadable> {
        let found = Found::notes(&stored.key, &stored.record);
        let json = frames.unwrap(&found, &stored.notes)?;
        serde_json::from_slice(&json).map_err(|error| Unreadable::Foreign(error.to_string()))
    }
}
