//! What the rules say of B's call, which equals one of A's.
use super::scene::{Began, Conversations, Credentials, Got, Ids, Scene};

/// What has become of A's call when B makes its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// A has its answer.
    Answered,
    /// It runs, and A waits.
    Running,
    /// A was told that its outcome is unknown.
    Unknown,
    /// A vanished, and it runs.
    CutRunning,
    /// A vanished, and it has ended.
    CutEnded,
    /// A vanished, and its outcome is unknown.
    CutUnknown,
}

/// What B may get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    /// B's call runs.
    Own,
    /// It does not run, and B gets A's answer.
    Theirs,
    /// It does not run, and B learns the state of A's.
    Refused,
    /// The rules leave open whether it runs; B never gets A's answer.
    NeverTheirs,
    /// The rules leave open whether B gets A's answer; it does not run.
    NeverRuns,
    /// The rules leave open whether it runs, or B gets A's answer; it is not refused.
    Answered,
}

/// What B is to A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kinship {
    /// Has another credential.
    Stranger,
    /// Has no credential, as A has none.
    Anonymous,
    /// The same, in another conversation; or one of both has a credential.
    Elsewhere,
    /// Has the same credential in a session that began before the cut or was not seen, or in another conversation.
    Neighbor,
    /// Has the same credential, no session, and a connection that began before the cut.
    Housemate,
    /// Has the same credential, and began after the cut.
    Heir,
}

impl Kinship {
    fn of(scene: Scene, credentials: Credentials, began: Began) -> Self {
        let is_elsewhere = scene.conversations == Conversations::Own;
        match credentials {
            Credentials::Different | Credentials::Cookies | Credentials::Queries => Self::Stranger,
            Credentials::OnlyA | Credentials::OnlyB => Self::Elsewhere,
            Credentials::None if is_elsewhere => Self::Elsewhere,
            Credentials::None => Self::Anonymous,
            Credentials::Same if is_elsewhere => Self::Neighbor,
            Credentials::Same if began == Began::After => Self::Heir,
            Credentials::Same if scene.has_sessions => Self::Neighbor,
            Credentials::Same => Self::Housemate,
        }
    }
}

impl Expect {
    pub(super) fn of(
        scene: Scene,
        credentials: Credentials,
        began: Began,
        ids: Ids,
        state: State,
    ) -> Self {
        let kinship = Kinship::of(scene, credentials, began);
        // A weak id belongs to a session and a conversation: where there are only conversations, one may be both clients'.
        let is_shared = !scene.has_sessions && scene.conversations == Conversations::Same;
        let is_named = scene.conversations == Conversations::Same;
        match (state, kinship) {
            // It may be the same client with a new token.
            (State::Unknown | State::CutUnknown, Kinship::Stranger) if is_named => {
                Self::NeverTheirs
            }
            (_, Kinship::Stranger) | (State::Answered, _) => Self::Own,
            (State::Running, _) if ids != Ids::Weak => Self::Own,
            (State::Running, Kinship::Anonymous) if is_shared => Self::NeverTheirs,
            (State::Running, Kinship::Housemate | Kinship::Heir) => Self::Answered,
            (State::Running, _) => Self::Own,
            (_, Kinship::Anonymous) => Self::Refused,
            (_, Kinship::Elsewhere | Kinship::Neighbor) => Self::NeverTheirs,
            (State::Unknown, Kinship::Heir) if scene.has_sessions => Self::NeverTheirs,
            (State::Unknown | State::CutUnknown, _) => Self::Refused,
            (_, Kinship::Housemate) => Self::NeverRuns,
            (_, Kinship::Heir) => Self::Theirs,
        }
    }

    pub(super) fn allows(self, got: &Got) -> bool {
        match got {
            Got::Own => matches!(self, Self::Own | Self::NeverTheirs | Self::Answered),
            Got::Theirs => matches!(self, Self::Theirs | Self::NeverRuns | Self::Answered),
            Got::Refused(_) => matches!(self, Self::Refused | Self::NeverTheirs | Self::NeverRuns),
            Got::Other(_) | Got::Nothing => false,
        }
    }

    /// Whether B's call may wait for the end of A's.
    pub(super) const fn may_wait(self) -> bool {
        matches!(self, Self::Theirs | Self::NeverRuns | Self::Answered)
    }
}

impl State {
    pub(super) const fn is_cut(self) -> bool {
        matches!(self, Self::CutRunning | Self::CutEnded | Self::CutUnknown)
    }

    pub(super) const fn is_unknown(self) -> bool {
        matches!(self, Self::Unknown | Self::CutUnknown)
    }

    /// Whether a refusal says that A's call is in this state. To those of A's credential it may say so in other words.
    pub(super) fn is_said(self, refusal: &str, credentials: Credentials) -> bool {
        match self {
            Self::CutRunning => refusal.contains("running"),
            Self::CutEnded => ends_at(refusal) && names_record(refusal),
            _ => {
                refusal.contains("unknown")
                    || credentials == Credentials::Same && refusal.contains("may have run")
            }
        }
    }
}

/// `ended at 12:03`.
fn ends_at(text: &str) -> bool {
    text.split("ended at ").skip(1).any(|rest| {
        let (hour, rest) = rest.split_once(':').unwrap_or_default();
        let minute = rest.get(..2).unwrap_or_default();
        [hour, minute]
            .iter()
            .all(|part| part.len() == 2 && part.bytes().all(|it| it.is_ascii_digit()))
    })
}

/// `record 3b2d…`.
fn names_record(text: &str) -> bool {
    text.split("record ").skip(1).any(|rest| {
        rest.get(..4).is_some_and(|id| id.bytes().all(|digit| digit.is_ascii_hexdigit()))
    })
}
