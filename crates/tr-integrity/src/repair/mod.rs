//! Repairs an invalid transcript: plan first, then apply.
mod action;
mod as_text;
mod doubt;
mod items;
mod join;
mod left;
mod names;
mod order;
mod pairs;
mod preserve;
mod remove;

pub use self::action::{ActionKind, Loss, LossKind, RepairAction};
pub(crate) use self::names::Names;
use crate::{
    format::{Format, Results},
    json::Piece,
    message::{Message, Role},
    transcript::Transcript,
};
use left::Left;
use serde::{Deserialize, Serialize};
use std::{borrow::Borrow, ops::Range};

/// How a repair treats a use without a result, and a result without a use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RepairMode {
    /// Keeps every answer of a tool, and the record that a call may have run.
    #[default]
    Preserve,
    /// Removes both.
    Remove,
}

/// Settings of a repair. It is deterministic, idempotent, and uses no clock.
///
/// ```
/// use tr_integrity::{Repair, Transcript};
///
/// let mut transcript = Transcript::read(r#"[
///     {"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"pay","input":{}}]},
///     {"role":"user","content":"did it work?"}
/// ]"#)?;
/// let plan = Repair::preserve().plan(&transcript);
/// assert_eq!(plan.actions().len(), 1); // a dry run: nothing has changed yet
/// plan.apply(&mut transcript)?;
/// assert!(transcript.to_json().contains("outcome unknown, may have run"));
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Repair {
    mode: RepairMode,
    close_tail: bool,
    waive_thoughts: bool,
    members: bool,
}

/// The planned actions and losses of a repair.
#[derive(Clone, Debug)]
#[must_use]
pub struct RepairPlan {
    mode: RepairMode,
    before: Vec<Message>,
    after: Vec<Message>,
    actions: Vec<RepairAction>,
    losses: Vec<Loss>,
}

/// The result of a repair.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RepairResult {
    /// Whether anything was changed.
    pub repaired: bool,
    /// What was done.
    pub repairs: Vec<RepairAction>,
    /// The repaired messages.
    pub messages: Vec<Message>,
}

/// The transcript has changed since the repair was planned. The repair changed nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StalePlan(());

impl Repair {
    /// Keeps every answer of a tool, and the record that a call may have run.
    pub const fn preserve() -> Self {
        Self::new(RepairMode::Preserve)
    }

    /// Removes uses without results, and results without uses.
    pub const fn remove() -> Self {
        Self::new(RepairMode::Remove)
    }

    /// Uses this mode.
    pub const fn new(mode: RepairMode) -> Self {
        Self { mode, close_tail: false, waive_thoughts: false, members: false }
    }

    /// Also answers the uses of the live tail: no tool is running any more that could answer them.
    /// Without effect in mode `remove`.
    pub const fn close_tail(mut self) -> Self {
        self.close_tail = true;
        self
    }

    /// The mode.
    #[must_use]
    pub const fn mode(self) -> RepairMode {
        self.mode
    }

    /// Also removes the provider's reasons to demand missing thoughts. Only the provider knows
    /// which calls had thoughts, so use this for a session that it refused for that: items of
    /// OpenAI's Responses without reasoning before them lose their ids, and Gemini's steps without
    /// a signature get the provider's own placeholder. Off by default, and without effect in mode
    /// `remove`.
    pub const fn waive_thoughts(mut self) -> Self {
        self.waive_thoughts = true;
        self
    }

    /// Also corrects members that the provider refuses on their own, as far as this loses nothing:
    /// see [`Validator::with_members`](crate::Validator::with_members). Refused ids are replaced,
    /// and white-space texts and empty lists of calls removed. Off by default, because an agent
    /// that continues the session would not know the new ids. In mode `remove` only the messages of
    /// which nothing is left are removed.
    pub const fn with_members(mut self) -> Self {
        self.members = true;
        self
    }

    pub(crate) const fn has_members(self) -> bool {
        self.members
    }

    pub(crate) const fn waives_thoughts(self) -> bool {
        self.waive_thoughts
    }

    pub(crate) const fn closes_tail(self) -> bool {
        self.close_tail
    }

    /// Plans the repair of `transcript` without changing it.
    pub fn plan(self, transcript: &Transcript) -> RepairPlan {
        let mut log = Log::default();
        let after = match self.mode {
            RepairMode::Preserve if self.waive_thoughts => {
                let waived = waived(transcript, &mut log);
                preserve::repair(&waived, self, &mut log)
            }
            RepairMode::Preserve => preserve::repair(transcript, self, &mut log),
            RepairMode::Remove => remove::repair(transcript, self.members, &mut log),
        };
        let before = transcript.messages().to_vec();
        let mode = self.mode;
        RepairPlan { mode, before, after, actions: log.actions, losses: log.losses }
    }
}

impl RepairPlan {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// The planned actions.
    #[must_use]
    pub fn actions(&self) -> &[RepairAction] {
        &self.actions
    }

    /// For each action, the index of its message in the transcript before the repair. In mode
    /// `remove`, the actions' own indexes are counted after the removals before them.
    #[must_use]
    pub fn places(&self) -> Vec<usize> {
        let mut left = Left::of(self.before.len());
        let place = |action: &RepairAction| {
            let index = action.message_index;
            if self.mode == RepairMode::Preserve {
                return index;
            }
            let removes = action.action == ActionKind::RemoveEmptyMessage;
            if removes { left.remove(index) } else { left.place(index) }.unwrap_or(index)
        };
        self.actions.iter().map(place).collect()
    }

    /// What the session will no longer contain.
    #[must_use]
    pub fn losses(&self) -> &[Loss] {
        &self.losses
    }

    /// The messages after the repair.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.after
    }

    /// How many messages at the beginning stay unchanged.
    #[must_use]
    pub fn untouched(&self) -> usize {
        let same =
            self.before.iter().zip(&self.after).take_while(|(before, after)| before == after);
        same.count()
    }

    /// Applies the plan.
    ///
    /// # Errors
    /// If `transcript` has changed since it was planned; it is then left unchanged.
    pub fn apply(self, transcript: &mut Transcript) -> Result<RepairResult, StalePlan> {
        if transcript.messages() != self.before {
            return Err(StalePlan(()));
        }
        if !self.is_empty() {
            transcript.set_messages(self.after);
        }
        Ok(RepairResult {
            repaired: !self.actions.is_empty(),
            repairs: self.actions,
            messages: transcript.messages().to_vec(),
        })
    }
}

/// The actions and losses noted so far.
#[derive(Default)]
struct Log {
    actions: Vec<RepairAction>,
    losses: Vec<Loss>,
}

impl Log {
    fn act(&mut self, action: ActionKind, message_index: usize, id: Option<&str>) {
        let tool_use_id = id.map(Into::into);
        self.actions.push(RepairAction { action, message_index, tool_use_id, new_id: None });
    }

    fn rename(&mut self, message_index: usize, id: &str, new_id: &str) {
        self.act(ActionKind::RenameId, message_index, Some(id));
        self.actions.last_mut().expect("was pushed").new_id = Some(new_id.into());
    }

    fn lose(&mut self, what: LossKind, message_index: usize, id: &str, tool: Option<&str>) {
        let tool = tool.map(Into::into);
        self.losses.push(Loss { what, message_index, tool_use_id: id.into(), tool });
    }
}

/// The content of a message whose results all moved, and which stays for its other members.
fn in_place_of_moved(format: Format) -> Vec<Piece> {
    let title = "[the results that were here stand with their calls]";
    let texts = format.form().result_as_text(title, "{}", None);
    texts.into_iter().map(|text| Piece { was: None, text }).collect()
}

/// The transcript without reasons to demand missing thoughts.
fn waived(transcript: &Transcript, log: &mut Log) -> Transcript {
    let (format, mut messages) = (transcript.format(), transcript.messages().to_vec());
    for (at, raw) in format.form().waive_thoughts(&messages) {
        log.act(ActionKind::WaiveThoughts, at, None);
        messages[at] = messages[at].with_raw_of(format.own(raw));
    }
    let mut waived = transcript.clone();
    waived.set_messages(messages);
    waived
}

/// The range of messages that may answer the step that begins at `at`, by their position.
pub(crate) fn zone<M: Borrow<Message>>(format: Format, messages: &[M], at: usize) -> Range<usize> {
    let count = |from: usize, role: Role| {
        messages[from..].iter().take_while(|message| M::borrow(message).role() == role).count()
    };
    let (start, len) = match format.rules().results {
        Results::Blocks => {
            let rules = format.rules();
            let mut behind = messages[at + 1..].iter().map(M::borrow);
            let asides = behind.by_ref().take_while(|message| message.is_aside(rules)).count();
            let start = at + 1 + asides;
            let next: Option<&Message> = messages.get(start).map(M::borrow);
            (start, usize::from(next.is_some_and(|next| next.role() == Role::User)))
        }
        Results::Messages => (at + 1, count(at + 1, Role::Tool)),
        Results::Items => {
            let end = at + count(at, Role::Assistant);
            (end, count(end, Role::Tool))
        }
    };
    start..start + len
}

impl StalePlan {
    pub(crate) const fn new() -> Self {
        Self(())
    }
}

impl std::fmt::Display for StalePlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the transcript has changed since the repair was planned")
    }
}

impl std::error::Error for StalePlan {}
