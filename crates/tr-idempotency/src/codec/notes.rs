//! Notes about the request of a store's record, for operators.
use super::{Found, Frames, Place, Unreadable};
use crate::store::Stored;
use serde::{Deserialize, Serialize};
use tr_core::{CallInfo, RecordRef};

/// Who made a request.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RequestNote {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<String>,
}

impl RequestNote {
    pub(crate) fn of(info: &CallInfo<'_>, record: &RecordRef<'_>) -> Self {
        let text = |text: Option<&str>| text.map(str::to_owned);
        Self {
            session: text(info.session),
            actor: text(record.actor),
            request_id: text(info.request_id),
            tool_call_id: text(info.tool_call_id),
            key: text(record.key),
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
