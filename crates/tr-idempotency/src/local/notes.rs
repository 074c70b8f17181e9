//! Notes about a record's request, for operators.
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use tr_core::{CallInfo, DedupeScope, RecordRef};

/// A buffer that grew beyond this is shrunk.
const KEPT: usize = 1024;

const FIELDS: usize = 7;

/// Seven optional texts in one buffer, which the next record in this slot reuses.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    text: String,
    /// Where each present field ends.
    ends: [u32; FIELDS],
    /// Which fields are present, as bits.
    there: u8,
    is_global: bool,
}

/// Who made a request: what a record shows of it, and a store keeps beside the tool.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(crate) struct RequestNote<'n> {
    #[serde(skip)]
    pub(crate) tool: Cow<'n, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) session: Option<Cow<'n, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) actor: Option<Cow<'n, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<Cow<'n, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tool_call_id: Option<Cow<'n, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) key: Option<Cow<'n, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) about: Option<Cow<'n, str>>,
}

impl Notes {
    pub(crate) fn set(&mut self, info: &CallInfo<'_>, record: &RecordRef<'_>, scope: DedupeScope) {
        self.text.clear();
        if self.text.capacity() > KEPT {
            self.text.shrink_to(KEPT);
        }
        let fields = [
            Some(info.tool),
            info.session,
            info.request_id,
            info.tool_call_id,
            record.key,
            record.actor,
            record.about,
        ];
        self.is_global = scope == DedupeScope::Global;
        self.there = 0;
        for (n, field) in fields.into_iter().enumerate() {
            if let Some(field) = field {
                self.text.push_str(field);
                self.there |= 1 << n;
                self.ends[n] = u32::try_from(self.text.len()).unwrap_or(u32::MAX);
            }
        }
    }

    fn field(&self, n: usize) -> Option<&str> {
        let is_there = |n: &usize| self.there & (1 << n) != 0;
        let start = (0..n).rev().find(is_there).map_or(0, |before| self.ends[before] as usize);
        is_there(&n).then(|| self.text.get(start..self.ends[n] as usize).unwrap_or_default())
    }

    pub(crate) fn tool(&self) -> &str {
        self.field(0).unwrap_or_default()
    }

    /// For whose calls the record is replayed.
    pub(crate) const fn scope(&self) -> DedupeScope {
        if self.is_global { DedupeScope::Global } else { DedupeScope::Session }
    }

    pub(crate) fn session(&self) -> Option<&str> {
        self.field(1)
    }

    /// What a record shows of them.
    pub(crate) fn shown(&self) -> RequestNote<'_> {
        let field = |n| self.field(n).map(Into::into);
        RequestNote {
            tool: self.tool().into(),
            session: field(1),
            request_id: field(2),
            tool_call_id: field(3),
            key: field(4),
            actor: field(5),
            about: field(6),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_and_absent_ones_stay_absent() {
        let mut notes = Notes::default();
        let mut info = CallInfo::of("pay");
        info.session = Some("");
        notes.set(
            &info,
            &RecordRef { key: Some("k"), ..RecordRef::default() },
            DedupeScope::Global,
        );
        assert_eq!(notes.scope(), DedupeScope::Global);
        let shown = notes.shown();
        let (session, key) = (shown.session.as_deref(), shown.key.as_deref());
        assert_eq!((&*shown.tool, session, key), ("pay", Some(""), Some("k")));
        assert_eq!((shown.request_id, shown.tool_call_id, shown.actor), (None, None, None));
    }
}
