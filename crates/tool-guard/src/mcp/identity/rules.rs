//! The operator's rules: the members of `_meta` by which calls are recognised.
use tool_reliability::config::IdentityConfig;

/// The members of `_meta` that name a call and its conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdentityRule {
    pub(crate) call: Option<Box<str>>,
    pub(crate) conversation: Option<Box<str>>,
    /// Whether an id names one call forever; if not set, random ids do.
    pub(crate) strong: Option<bool>,
}

/// Members by which calls are recognised without a rule.
const KNOWN: [&str; 3] = ["idempotencyKey", "callId", "claudecode/toolUseId"];

/// Members that several calls share: each names a conversation.
const CONVERSATIONS: [&str; 5] = [
    "threadId",
    "vscode.conversationId",
    "ai.opencode/sessionID",
    "agent-session-id",
    "antigravity.google/conversation_id",
];

/// Members that name neither a call nor a conversation.
const NEITHER: [&str; 3] = ["vscode.requestId", "traceparent", "progressToken"];

/// The rules of a configuration.
///
/// # Errors
/// Reports every mistake, with its place.
pub(crate) fn rules(
    config: &[(Box<str>, IdentityConfig)],
) -> Result<Vec<IdentityRule>, Vec<String>> {
    let faults: Vec<_> = config.iter().flat_map(|(name, rule)| faults(name, rule)).collect();
    if !faults.is_empty() {
        return Err(faults);
    }
    let rule = |(_, rule): &(_, IdentityConfig)| IdentityRule {
        call: rule.call.clone(),
        conversation: rule.conversation.clone(),
        strong: rule.strong,
    };
    Ok(config.iter().map(rule).collect())
}

fn faults(name: &str, rule: &IdentityConfig) -> Vec<String> {
    let at = |key: &str, said: &str| format!("/identity/{name}{key}: {said}");
    let mut faults = Vec::new();
    match rule.call.as_deref() {
        Some(call) if KNOWN.contains(&call) => faults.push(at(
            "/call",
            &format!("{call:?} is recognised without a rule: remove the rule"),
        )),
        Some(call) if CONVERSATIONS.contains(&call) => faults.push(at(
            "/call",
            &format!("{call:?} names a conversation, whose calls would all count as one: name the member that differs between calls"),
        )),
        Some(call) if NEITHER.contains(&call) => faults.push(at(
            "/call",
            &format!("{call:?} is not the same when a call comes again, or is shared by several calls: name the client's id of the call"),
        )),
        None if rule.conversation.is_none() => faults.push(at(
            "",
            "expected `call`, `conversation` or both: the members of `_meta` that name them",
        )),
        None if rule.strong.is_some() => faults
            .push(at("/strong", "applies to the ids of `call`: add `call`, or remove it")),
        _ => {}
    }
    if let Some(member) = rule.conversation.as_deref()
        && (NEITHER.contains(&member) || KNOWN.contains(&member))
    {
        faults.push(at("/conversation", &format!("{member:?} names no conversation: remove it")));
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(call: Option<&str>, conversation: Option<&str>, strong: Option<bool>) -> Vec<String> {
        let mut rule = IdentityConfig::default();
        (rule.call, rule.conversation) = (call.map(Into::into), conversation.map(Into::into));
        rule.strong = strong;
        rules(&[("acme".into(), rule)]).err().unwrap_or_default()
    }

    #[test]
    fn rules_that_name_new_members_are_taken() {
        for (call, conversation, strong) in [
            (Some("acme/call"), None, None),
            (None, Some("acme/chat"), None),
            (Some("acme/call"), Some("threadId"), Some(true)),
        ] {
            assert_eq!(rule(call, conversation, strong), Vec::<String>::new());
        }
    }

    #[test]
    fn a_rule_that_would_mix_calls_up_is_refused_with_what_to_write() {
        for (call, conversation, strong, place, said) in [
            (None, None, None, "/identity/acme: ", "expected `call`"),
            (None, Some("acme/chat"), Some(true), "/identity/acme/strong: ", "add `call`"),
            (Some("callId"), None, None, "/identity/acme/call: ", "remove the rule"),
            (Some("threadId"), None, None, "/identity/acme/call: ", "differs between calls"),
            (Some("progressToken"), None, None, "/identity/acme/call: ", "client's id of the call"),
            (Some("a"), Some("traceparent"), None, "/identity/acme/conversation: ", "remove it"),
        ] {
            let faults = rule(call, conversation, strong);
            assert_eq!(faults.len(), 1, "{faults:?}");
            assert!(faults[0].starts_with(place) && faults[0].contains(said), "{faults:?}");
        }
    }
}
