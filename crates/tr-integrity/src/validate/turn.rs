//! The validator's state for a turn whose steps may carry thought signatures.
use super::{Fault, Validator};
use crate::{
    message::{Kind, Message},
    name::Name,
};

/// The current turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    /// One of its steps is signed.
    is_signed: bool,
    /// The first uses of unsigned steps, while no step is signed: message, block, id and name.
    unsigned: Vec<(usize, usize, Name, Box<str>)>,
}

impl Validator {
    /// If one step of a turn is signed, each must be: the model signs all of them or none.
    pub(super) fn check_signature(&mut self, message: &Message) {
        if message.begins_turn() {
            self.turn = Turn::default();
        }
        let first =
            message.blocks().iter().enumerate().find_map(|(block, part)| match &part.kind {
                Kind::Use { id, name, .. } => Some((self.len, block, id.clone(), name.clone())),
                _ => None,
            });
        let Some(first) = first else { return };
        self.turn.is_signed |= message.is_signed();
        if !message.is_signed() {
            self.turn.unsigned.push(first);
        }
        if self.turn.is_signed {
            for (message, block, id, name) in std::mem::take(&mut self.turn.unsigned) {
                let fault = Fault::MissingSignature;
                self.find_about(fault, message, Some(block), Some(&id), name);
            }
        }
    }
}
