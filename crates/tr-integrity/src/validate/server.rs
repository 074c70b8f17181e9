//! Uses of the provider's own tools, which the provider answers in the same turn.
use super::{Fault, Validator};
use crate::{
    message::{Kind, Message, Role},
    name::Name,
};
use std::{collections::HashMap, mem};

/// The uses of the turn that have no result yet.
#[derive(Clone, Debug, Default)]
pub(super) struct ServerUses {
    open: HashMap<Name, ServerUse>,
    /// No message before this one has such a use.
    pub(super) first: Option<usize>,
}

#[derive(Clone, Debug)]
struct ServerUse {
    message: usize,
    block: usize,
    name: Box<str>,
    is_direct: bool,
}

impl ServerUses {
    /// Those after these messages.
    pub(super) fn of(messages: &[Message]) -> Self {
        let from = messages.iter().rposition(ends_turn).map_or(0, |end| end + 1);
        let mut uses = Self::default();
        messages.iter().enumerate().skip(from).for_each(|(at, message)| uses.take(at, message));
        uses
    }

    fn take(&mut self, at: usize, message: &Message) {
        for (block, part) in message.blocks().iter().enumerate() {
            match &part.kind {
                Kind::ServerUse { id, name, is_direct } => {
                    let (name, is_direct) = (name.clone(), *is_direct);
                    let used = ServerUse { message: at, block, name, is_direct };
                    self.open.insert(id.clone(), used);
                }
                Kind::ServerResult(id) => drop(self.open.remove(id)),
                _ => {}
            }
        }
        self.first = self.first.or(Some(at)).filter(|_| !self.open.is_empty());
    }
}

impl Validator {
    /// The provider runs the tool before the model's turn ends, perhaps after the results of other
    /// tools, so the result may come in a later message of the model's.
    pub(super) fn check_server_uses(&mut self, message: &Message) {
        if self.members.is_none() {
            return;
        }
        self.server.take(self.len, message);
        if self.server.first.is_none() || !ends_turn(message) {
            return;
        }
        let mut open: Vec<_> = mem::take(&mut self.server).open.into_iter().collect();
        open.sort_unstable_by_key(|(_, used)| (used.message, used.block));
        for (id, ServerUse { message, block, name, is_direct }) in open {
            let fault = if is_direct { Fault::UnansweredServerUse } else { Fault::OpenServerUse };
            self.find_about(fault, message, Some(block), Some(&id), name);
        }
    }
}

/// Whether a message of the user's says more than results of tools.
fn ends_turn(message: &Message) -> bool {
    let mut blocks = message.blocks().iter();
    message.role() == Role::User && blocks.any(|block| !block.kind.is_result())
}
