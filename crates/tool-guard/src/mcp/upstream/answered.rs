//! What a posted message asks for, and whether a message of the server's answers it.
use crate::mcp::{
    batch,
    message::{self, Guess, Line, Token},
};
use bytes::Bytes;

/// What a message asks for.
#[derive(Debug, Default)]
pub(super) struct Asks {
    /// The id of the answer, if it is one request.
    pub(super) id: Option<Token>,
    /// Whether it opens a session.
    pub(super) is_initialize: bool,
    /// Whether the stream of its answer lasts, and is never resumed.
    pub(super) is_subscription: bool,
}

impl Asks {
    pub(super) fn of(body: &[u8]) -> Self {
        let Line::One(message) = message::read(body) else { return Self::default() };
        let Some(method) = message.method.as_deref() else { return Self::default() };
        Self {
            id: message.token(),
            is_initialize: method == "initialize",
            is_subscription: method == "subscriptions/listen",
        }
    }
}

/// Whether the message is an answer under this id.
pub(super) fn answers(line: &Bytes, id: &Token) -> bool {
    match message::read(line) {
        Line::Batch => batch::parts(line).any(|part| {
            let guess = Guess::of(&part);
            guess.is_some_and(|guess| guess.is_answer && guess.id == *id)
        }),
        read => read.answered(line).as_ref() == Some(id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_id_of_the_request() {
        let id = Asks::of(br#"{"jsonrpc":"2.0","id":7,"method":"tools/call"}"#).id.unwrap();
        for line in [
            r#"{"id":7,"result":{}}"#,
            r#"{"id":7.0,"error":{}}"#,
            r#"{"id":7,"result":NaN}"#,
            r#"[{"id":6,"result":{}},{"id":7,"result":{}}]"#,
        ] {
            assert!(answers(&Bytes::from(line), &id), "{line}");
        }
        for line in [
            r#"{"id":8,"result":{}}"#,
            r#"{"id":"7","result":{}}"#,
            r#"{"id":7,"method":"ping"}"#,
            r#"{"id":null,"error":{}}"#,
            r#"{"id":8,"result":NaN}"#,
            r#"[{"id":7,"method":"ping"}]"#,
            "<html>",
            "",
        ] {
            assert!(!answers(&Bytes::from(line), &id), "{line}");
        }
    }

    #[test]
    fn only_a_request_is_answered() {
        for line in [
            r#"{"method":"notifications/initialized"}"#,
            r#"{"id":7,"result":{}}"#,
            r#"[{"id":7,"method":"ping"}]"#,
            "{",
        ] {
            assert_eq!(Asks::of(line.as_bytes()).id, None, "{line}");
        }
    }
}
