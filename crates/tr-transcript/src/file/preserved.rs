//! What a compaction of Claude Code's keeps from before it, as the line of its boundary says.
use crate::{
    json::{self, Members},
    name::Name,
};

/// What a compaction keeps.
#[derive(Clone, Debug)]
pub(super) struct Preserved {
    /// The summary, behind which it is linked.
    pub(super) anchor: Name,
    pub(super) rows: Rows,
}

#[derive(Clone, Debug)]
pub(super) enum Rows {
    /// These, in this order.
    Listed(Vec<Name>),
    /// From the first to the last one, by their links.
    Between(Name, Name),
}

impl Preserved {
    /// Reads the member `compactMetadata`.
    pub(super) fn of(metadata: &str) -> Option<Self> {
        let wire = Members::of(metadata, &["preservedMessages", "preservedSegment"]).ok()?;
        let named = |wire: &Members<'_>, name| wire.string(name).map(|text| Name::from(&*text));
        if wire.present("preservedMessages").is_some() {
            let kept = wire.inside("preservedMessages", &["anchorUuid", "uuids"]);
            let listed = kept.get("uuids").and_then(|list| json::elements(list.get()).ok());
            let listed = listed?.into_iter().map(|id| serde_json::from_str::<String>(id).ok());
            let listed: Option<Vec<_>> = listed.map(|id| Some(Name::from(&*id?))).collect();
            return Some(Self { anchor: named(&kept, "anchorUuid")?, rows: Rows::Listed(listed?) });
        }
        let kept = wire.inside("preservedSegment", &["anchorUuid", "headUuid", "tailUuid"]);
        let rows = Rows::Between(named(&kept, "headUuid")?, named(&kept, "tailUuid")?);
        Some(Self { anchor: named(&kept, "anchorUuid")?, rows })
    }
}

/// The line of a boundary that keeps these entries.
pub(super) fn with(line: &str, ids: &[&str]) -> Option<String> {
    const METADATA: &str = "compactMetadata";
    let set = |text: &str, member: &str, inner: &str, value: &str| {
        let members = json::members(text).ok()?;
        Some(match members.get(member) {
            Some(raw) => json::set_member(text, member, &json::set_member(raw.get(), inner, value)),
            None => text.to_owned(),
        })
    };
    let list: Vec<_> = ids.iter().map(|id| json::quote(id)).collect();
    let mut metadata = json::members(line).ok()?.get(METADATA)?.get().to_owned();
    metadata = set(&metadata, "preservedMessages", "uuids", &format!("[{}]", list.join(",")))?;
    if let [first, .., last] | [first @ last] = &*list {
        metadata = set(&metadata, "preservedSegment", "headUuid", first)?;
        metadata = set(&metadata, "preservedSegment", "tailUuid", last)?;
    }
    Some(json::set_member(line, METADATA, &metadata))
}
