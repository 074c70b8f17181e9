//! The validator's state of a turn: whether its steps carry thought signatures, and uses of the
//! provider's own tools, which the provider answers in the same turn.
use super::Fault;
use crate::{
    message::{Kind, Message, Role},
    name::Name,
};
use std::{collections::HashMap, mem};

/// The current turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    /// One of its steps is signed.
    is_signed: bool,
    /// The first uses of unsigned steps, while no step is signed.
    unsigned: Vec<FaultyUse>,
}

/// A use with a fault: message, block, the fault, id and name.
pub(super) type FaultyUse = (usize, usize, Fault, Name, Box<str>);

impl Turn {
    /// Takes the message at `at`; returns the uses that lack a signature. If one step of a turn is
    /// signed, each must be: the model signs all of them or none.
    pub(super) fn take(&mut self, at: usize, message: &Message) -> Vec<FaultyUse> {
        if message.begins_turn() {
            *self = Self::default();
        }
        let mut blocks = message.blocks().iter().enumerate();
        let first = blocks.find_map(|(block, part)| {
            let Kind::Use { id, name, .. } = &part.kind else { return None };
            Some((at, block, Fault::MissingSignature, id.clone(), name.clone()))
        });
        let Some(first) = first else { return Vec::new() };
        self.is_signed |= message.body.is_signed;
        if !message.body.is_signed {
            self.unsigned.push(first);
        }
        if self.is_signed { mem::take(&mut self.unsigned) } else { Vec::new() }
    }
}

/// The uses of the turn that have no result yet.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerUses {
    open: HashMap<Name, FaultyUse>,
    /// No message before this one has such a use.
    pub(super) first: Option<usize>,
}

impl ServerUses {
    /// Those after these messages.
    pub(super) fn of(messages: &[Message]) -> Self {
        let from = messages.iter().rposition(ends_turn).map_or(0, |end| end + 1);
        let mut uses = Self::default();
        for (at, message) in messages.iter().enumerate().skip(from) {
            uses.take(at, message);
        }
        uses
    }

    /// Takes the message at `at`; returns the uses that stay without results: the provider runs the
    /// tool before the model's turn ends, perhaps after the results of other tools, so the result
    /// may come in a later message of the model's.
    pub(super) fn take(&mut self, at: usize, message: &Message) -> Vec<FaultyUse> {
        for (block, part) in message.blocks().iter().enumerate() {
            match &part.kind {
                Kind::ServerUse { id, name, is_direct } => {
                    let fault =
                        if *is_direct { Fault::UnansweredServerUse } else { Fault::OpenServerUse };
                    let used = (at, block, fault, id.clone(), name.clone());
                    self.open.insert(id.clone(), used);
                }
                Kind::ServerResult(id) => drop(self.open.remove(id)),
                _ => {}
            }
        }
        self.first = self.first.or(Some(at)).filter(|_| !self.open.is_empty());
        if self.first.is_none() || !ends_turn(message) {
            return Vec::new();
        }
        let mut open: Vec<_> = mem::take(self).open.into_values().collect();
        open.sort_unstable_by_key(|(message, block, ..)| (*message, *block));
        open
    }
}

/// Whether a message of the user's says more than results of tools.
fn ends_turn(message: &Message) -> bool {
    let mut blocks = message.blocks().iter();
    message.role() == Role::User && blocks.any(|block| !block.kind.is_result())
}
