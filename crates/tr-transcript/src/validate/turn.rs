//! The validator's state for a turn whose steps may carry thought signatures.
use crate::{
    message::{Kind, Message},
    name::Name,
};
use std::mem;

/// The current turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    /// One of its steps is signed.
    is_signed: bool,
    /// The first uses of unsigned steps, while no step is signed.
    unsigned: Vec<FirstUse>,
}

/// The first use of a step: message, block, id and name.
pub(super) type FirstUse = (usize, usize, Name, Box<str>);

impl Turn {
    /// Takes the message at `at`; returns the uses that lack a signature. If one step of a turn is
    /// signed, each must be: the model signs all of them or none.
    pub(super) fn take(&mut self, at: usize, message: &Message) -> Vec<FirstUse> {
        if message.begins_turn() {
            *self = Self::default();
        }
        let first =
            message.blocks().iter().enumerate().find_map(|(block, part)| match &part.kind {
                Kind::Use { id, name, .. } => Some((at, block, id.clone(), name.clone())),
                _ => None,
            });
        let Some(first) = first else { return Vec::new() };
        self.is_signed |= message.is_signed();
        if !message.is_signed() {
            self.unsigned.push(first);
        }
        if self.is_signed { mem::take(&mut self.unsigned) } else { Vec::new() }
    }
}
