//! Which responses a table keeps within the budget of bytes.
use super::{
    budget::{Budget, Reservation},
    table::{Entry, Slot, Table},
};
use crate::{end::Dropped, protocol::Token};
use std::sync::Arc;

impl<V, N> Table<V, N> {
    /// Keeps the response of the ended run `of` this token, or of whichever it is, if the budget allows it.
    /// Returns what was dropped, and whether the response stays. The record itself stays in any case.
    #[cold]
    pub(super) fn weigh(
        &mut self,
        at: usize,
        of: Option<Token>,
        reservation: Reservation,
        budget: &Arc<Budget>,
    ) -> (Vec<Dropped<V>>, bool) {
        let mut gone = Vec::new();
        let is_it = |entry: &&mut Entry<V, N>| {
            of.is_none_or(|of| of == entry.record.token) && entry.record.state.can_shrink()
        };
        let slot = self.slots.get_mut(at).and_then(|slot| slot.entry.as_mut());
        if slot.filter(is_it).is_none() {
            return (gone, true);
        }
        let reservation = match reservation {
            Reservation::Full(bytes) => {
                self.make_room(at, bytes, &mut gone);
                budget.reserve(bytes)
            }
            reservation => reservation,
        };
        let entry = self.slots[at].entry.as_mut().expect("found");
        let stays = match reservation {
            Reservation::Fits(reserved) => {
                entry.reserved = reserved;
                true
            }
            Reservation::Full(_) | Reservation::TooLarge => {
                gone.extend(entry.record.state.shrink());
                false
            }
        };
        (gone, stays)
    }

    /// Drops the oldest responses of this shard until `bytes` are free, if it has that many.
    fn make_room(&mut self, but: usize, bytes: usize, gone: &mut Vec<Dropped<V>>) {
        let weight = |slot: &Slot<V, N>| {
            let entry = slot.entry.as_ref()?;
            Some((entry.record.changed_at, entry.reserved.as_ref()?.bytes.get()))
        };
        let slots = self.slots.iter().enumerate().filter(|(at, _)| *at != but);
        let mut all: Vec<_> = slots.filter_map(|(at, slot)| Some((weight(slot)?, at))).collect();
        // Dropping all would not be enough, so none is dropped.
        if all.iter().map(|((_, weight), _)| weight).sum::<usize>() < bytes {
            return;
        }
        all.sort_unstable();
        let mut freed = 0;
        for ((_, weight), at) in all {
            if freed >= bytes {
                return;
            }
            let entry = self.slots[at].entry.as_mut().expect("it has an answer");
            gone.extend(entry.record.state.shrink());
            entry.reserved = None;
            freed += weight;
        }
    }
}
