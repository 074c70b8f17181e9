//! What only `tool-guard` reads: where it records calls, by which members of `_meta` it recognizes them, and what the
//! statuses of its upstream say.
use super::limit::refuse_scheme;
use std::{path::PathBuf, str::FromStr};
use tr_wire::read::{At, Flag, Lenient, Map, Name, Node, Shape as _, Word, object, shape, words};

object! { strict
    /// Where calls are recorded, so that the records outlive the process. How long records are kept is in
    /// `idempotency`.
    pub struct RecordsConfig {
        /// A SQLite file (`~/` is the home folder), `redis://HOST:PORT`, `rediss://HOST:PORT` (TLS) or
        /// `memory`. Default of `tool-guard`: `tool-guard/records.db` in the user's state folder.
        "where" => place: Option<RecordPlace>, Lenient<Place> = "memory";
        /// Record answers (`full`), or only that the call ran (`digest`).
        "bodies" => bodies: Option<RecordBodies>, Lenient<Word<RecordBodies>> = "full";
        /// A file with the key that encrypts records: 64 hexadecimal digits.
        "key_file" => key_file: Option<Box<str>>, Lenient<Name>;
        /// The server's name in the records. Default: a digest of its command.
        "name" => name: Option<Box<str>>, Lenient<Name>;
    }
}

/// Whether answers are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordBodies {
    /// They are.
    Full,
    /// They are not: a duplicate learns only that the call ran.
    Digest,
}

object! { strict
    /// The members of `_meta` by which a repeated call of a client is recognized.
    pub struct IdentityConfig {
        /// The member with the call's id: unique to a call, the same in its repeats.
        "call" => call: Option<Box<str>>, Lenient<CallMember>;
        /// The member that names the conversation.
        "conversation" => conversation: Option<Box<str>>, Lenient<ConversationMember>;
        /// The client never reuses an id. Default: if the id looks random.
        "strong" => strong: Option<bool>, Lenient<Flag>;
    }
}

object! { strict
    /// What `tool-guard mcp` knows of the server at `--upstream`.
    pub struct UpstreamConfig {
        /// Whether a mutating call may have run after this HTTP status, 400 to 599. Default: yes after most.
        "status" => status: Option<Vec<(u16, StatusMeaning)>>, Lenient<Statuses>;
    }
}

/// What an HTTP status says of a mutating call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMeaning {
    /// The tool did not run.
    NotRun,
    /// The tool may have run.
    Unknown,
}

words! {
    StatusMeaning { NotRun = "not_run", Unknown = "unknown" }
}

words! {
    RecordBodies { Full = "full", Digest = "digest" }
}

/// Where records are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordPlace {
    /// In the process; they end with it.
    Memory,
    /// In a SQLite file, shared by the processes of one machine.
    File(PathBuf),
    /// In the Redis server at this address, shared by processes of several machines.
    Redis(Box<str>),
}

impl FromStr for RecordPlace {
    type Err = String;

    /// Reads `memory`, an address that begins with `redis://` or `rediss://`, or a file.
    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once("://") {
            _ if text.is_empty() => Err(format!("give {}", Place::expected())),
            Some(("redis" | "rediss", _)) => Ok(Self::Redis(text.into())),
            Some(_) => Err(format!(
                "only redis:// and rediss:// are supported: give {}",
                Place::expected()
            )),
            None if text == "memory" => Ok(Self::Memory),
            None => Ok(Self::File(text.into())),
        }
    }
}

shape! {
    Place => RecordPlace, "a file, redis://HOST:PORT or memory",
    |node, faults| {
        let text = Name::read(node, faults)?;
        let read = text.parse().ok();
        read.or_else(|| refuse_scheme(node, &text, Self::expected(), &["redis", "rediss"], faults))
    },
    { "type": "string", "minLength": 1 }
}

/// Members by which calls are recognized without a rule.
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

shape! {
    CallMember => Box<str>, "the member with the client's id of a call",
    |node, faults| {
        let name = Name::read(node, faults)?;
        let why = match &*name {
            known if KNOWN.contains(&known) => "is recognized without a rule: remove the rule",
            shared if CONVERSATIONS.contains(&shared) => {
                "names a conversation, whose calls would all count as one: name the member that \
                 differs between calls"
            }
            other if NEITHER.contains(&other) => {
                "is not the same when a call comes again, or is shared by several calls"
            }
            _ => return Some(name),
        };
        node.refuse_found(Self::expected(), format!("{name:?}, which {why}"), faults)
    },
    { "type": "string", "minLength": 1 }
}

shape! {
    ConversationMember => Box<str>, "the member that names the conversation",
    |node, faults| {
        let name = Name::read(node, faults)?;
        if !NEITHER.contains(&&*name) && !KNOWN.contains(&&*name) {
            return Some(name);
        }
        node.refuse_found(Self::expected(), format!("{name:?}, which names none: remove it"), faults)
    },
    { "type": "string", "minLength": 1 }
}

shape! {
    /// Statuses by their numbers, as text.
    pub(super) Statuses => Vec<(u16, StatusMeaning)>, "an object of statuses, such as `503 = \"not_run\"`",
    |node, faults| {
        let named = Map::<Lenient<Word<StatusMeaning>>>::read(node, faults)?;
        let read = |(name, meaning): (Box<str>, Option<StatusMeaning>)| {
            let is_code = name.len() == 3 && name.bytes().all(|byte| byte.is_ascii_digit());
            let code = name.parse().ok().filter(|code| is_code && (400..600).contains(code));
            if code.is_none() {
                let found = format!("{name:?}");
                faults.push(node.fault("statuses from 400 to 599", found, faults));
            }
            code.zip(meaning)
        };
        // All of them first: each may have a fault.
        let statuses: Vec<_> = named.into_iter().map(read).collect();
        statuses.into_iter().collect()
    },
    |generator| {
        "type": "object",
        "propertyNames": { "pattern": "^[45][0-9][0-9]$" },
        "additionalProperties": (Word::<StatusMeaning>::schema(generator))
    }
}

shape! {
    /// A rule that names something.
    pub(super) Rule as IdentityConfig => IdentityConfig,
    |node, faults| {
        let rule = IdentityConfig::read(node, faults)?;
        // A member that was refused is there, too.
        let member = |name| node.source.member(name);
        match (member("call"), member("conversation"), member("strong")) {
            (None, None, _) => node.refuse_found(
                "`call`, `conversation` or both: the members of `_meta` that name them",
                "neither",
                faults,
            ),
            (None, _, Some(strong)) => {
                let at = At::Member(node.at, "strong");
                let strong = Node::new(&at, strong);
                strong.refuse_found("`call` beside it, to whose ids it applies", "none", faults)
            }
            _ => Some(rule),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places() {
        let place = |text: &str| text.parse::<RecordPlace>();
        assert_eq!(place("memory"), Ok(RecordPlace::Memory));
        assert_eq!(place("redis://h:1/2"), Ok(RecordPlace::Redis("redis://h:1/2".into())));
        assert_eq!(place("./memory"), Ok(RecordPlace::File("./memory".into())));
        for bad in ["", "postgres://h/db", "file://x"] {
            assert!(place(bad).is_err(), "{bad}");
        }
    }
}
