//! Two clients at one guard: what one of them gets, ends or learns of the other's calls. The tool makes a secret,
//! another one at each execution, so an answer that crosses over is seen.
//!
//! The rules are §2 and §9 of the requirements. A weak id, an equal call and a call that was cut off belong to a
//! session and a conversation. Who continues a call that was cut off has its credential, and began after the cut.
//! Without a credential nothing passes but under an id that cannot be guessed.

mod calls;
mod expect;
mod reach;
mod rows;
mod scene;
mod table;
mod vault;

use crate::client::Era;
use scene::{Conversations, Credentials, Scene};

macro_rules! scenes {
    ($($name:ident: $scene:expr;)*) => {$(
        mod $name {
            #[allow(clippy::wildcard_imports)]
            use super::*;

            #[test]
            fn without_credentials() {
                table::check($scene, Credentials::None);
            }

            #[test]
            fn with_the_same_credential() {
                table::check($scene, Credentials::Same);
            }

            #[test]
            fn with_different_credentials() {
                table::check($scene, Credentials::Different);
            }
        }
    )*};
}

const UPSTREAM: Scene = Scene {
    is_command: false,
    era: Era::Legacy,
    has_sessions: false,
    conversations: Conversations::Unnamed,
    member: "",
};
const COMMAND: Scene = Scene { is_command: true, ..UPSTREAM };
const OPENCODE: &str = "ai.opencode/sessionID";
const CODEX: &str = "threadId";

const fn sessions(scene: Scene) -> Scene {
    Scene { has_sessions: true, ..scene }
}

const fn modern(scene: Scene) -> Scene {
    Scene { era: Era::Modern, ..scene }
}

const fn conversations(scene: Scene, member: &'static str, conversations: Conversations) -> Scene {
    Scene { member, conversations, ..scene }
}

scenes! {
    upstream_without_sessions: UPSTREAM;
    sessions_of_an_upstream: sessions(UPSTREAM);
    sessions_of_a_command: sessions(COMMAND);
    one_thread_in_sessions: conversations(sessions(UPSTREAM), CODEX, Conversations::Same);
    modern_upstream: modern(UPSTREAM);
    modern_command: modern(COMMAND);
    one_conversation_at_an_upstream: conversations(modern(UPSTREAM), OPENCODE, Conversations::Same);
    conversations_at_an_upstream: conversations(modern(UPSTREAM), OPENCODE, Conversations::Own);
    one_thread_at_a_command: conversations(modern(COMMAND), CODEX, Conversations::Same);
    threads_at_a_command: conversations(modern(COMMAND), CODEX, Conversations::Own);
}

/// One of both has a credential.
#[test]
fn one_without_a_credential() {
    for credentials in [Credentials::OnlyA, Credentials::OnlyB] {
        table::check(sessions(COMMAND), credentials);
        table::check(modern(UPSTREAM), credentials);
    }
}

#[test]
fn cookies_are_credentials() {
    table::check(modern(COMMAND), Credentials::Cookies);
}

#[test]
fn queries_are_credentials() {
    table::check(UPSTREAM, Credentials::Queries);
}

#[test]
fn ids_of_two_sessions() {
    for credentials in [Credentials::None, Credentials::Same, Credentials::Different] {
        rows::ids(&sessions(COMMAND).stage(credentials));
    }
}

#[test]
fn a_guard_that_is_started_again() {
    for credentials in [Credentials::None, Credentials::Same, Credentials::Different] {
        for is_ended in [false, true] {
            rows::restart(sessions(UPSTREAM).stage_with(credentials, &[]), is_ended);
        }
    }
}
