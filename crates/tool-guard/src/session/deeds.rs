//! Descriptions of a repair's actions and of damaged bytes.
use serde_json::Value;
use tr_integrity::ActionKind;

/// The description of an action, for display.
pub(crate) const fn done(action: ActionKind) -> &'static str {
    match action {
        ActionKind::RemoveOrphan => "remove the result without its call",
        ActionKind::RemoveEmptyMessage => "remove the message of which nothing is left",
        ActionKind::RemoveIncomplete => "remove the call without its result",
        ActionKind::AddUnknown => "answer the call: outcome unknown, may have run",
        ActionKind::MoveResult => "move the result to its call",
        ActionKind::OrphanToText => "turn the result without its call into text",
        ActionKind::RemoveSynthetic => "remove a made-up result",
        ActionKind::RemoveDuplicate => "remove the second, equal result",
        ActionKind::RenameId => "give the call an id of its own",
        ActionKind::RemoveEmptyText => "remove the text without text",
        ActionKind::RemoveReasoning => "remove the reasoning that nothing follows",
        ActionKind::WaiveThoughts => "ask for no thought that is not there",
        ActionKind::JoinMessages => "join the step to the message before it",
        ActionKind::AddUserMessage => "let the user speak before the step",
        ActionKind::CorrectMember => "write it as the provider takes it; it says the same",
        ActionKind::UnlinkItem => "take away the item's id",
        _ => "change",
    }
}

/// The description of bytes that are no record.
pub(crate) fn damage(fault: &Value) -> &'static str {
    match fault.as_str() {
        Some("nul") => "left by a crash or a full disk: they say nothing, and the session goes on",
        Some("torn") => {
            "half a record, as a crash leaves it: what it said is lost, and the session goes on"
        }
        _ => "these bytes are lost; the session goes on",
    }
}
