//! Compares the log's state of the short lists with the session's.
use super::change::{Change, CycleUpdate, Known, Line, NewCheckpoint, NewCycle, Snapshot, Stage};
use crate::session::{Checkpoint, Session, ToolCycleTransaction, cycle::UsePosition};

/// The changes of a list.
struct Difference {
    gone: Vec<u64>,
    /// The indexes of new items.
    new: Vec<usize>,
    changed: Vec<usize>,
}

impl Difference {
    /// Compares two lists, both in the order of their numbers.
    fn between<T: PartialEq>(known: &[(u64, T)], now: &[(u64, T)]) -> Self {
        let mut difference = Self { gone: Vec::new(), new: Vec::new(), changed: Vec::new() };
        let mut known = known.iter().peekable();
        for (at, (number, item)) in now.iter().enumerate() {
            while let Some((gone, _)) = known.next_if(|(known, _)| known < number) {
                difference.gone.push(*gone);
            }
            match known.next_if(|(known, _)| known == number) {
                None => difference.new.push(at),
                Some((_, known)) if known != item => difference.changed.push(at),
                Some(_) => {}
            }
        }
        difference.gone.extend(known.map(|(gone, _)| gone));
        difference
    }
}

impl Known {
    pub(super) fn of(session: &Session) -> Self {
        Self {
            checkpoints: session.checkpoints.iter().map(|c| (c.number, c.is_committed)).collect(),
            cycles: session.cycles.iter().map(|cycle| (cycle.id.0, Stage::of(cycle))).collect(),
            done: session.done.iter().map(|done| (done.id, done.used)).collect(),
            checkpoints_made: session.checkpoints_made,
            cycles_begun: session.cycles_begun,
        }
    }

    /// Adds the missing changes to the log, and updates its state.
    pub(super) fn catch_up(&mut self, session: &Session, changes: &mut Vec<Change>) {
        let now = Self::of(session);
        let (mut made, mut begun) = (self.checkpoints_made, self.cycles_begun);

        let Difference { gone, new, changed } =
            Difference::between(&self.checkpoints, &now.checkpoints);
        for at in new {
            let checkpoint = &session.checkpoints[at];
            made = made.max(checkpoint.number);
            changes.push(Change::Checkpoint(Box::new(NewCheckpoint::of(checkpoint, session))));
        }
        // Other parts of a checkpoint do not change.
        let committed = changed.iter().map(|&at| session.checkpoints[at].number);
        add(changes, committed.collect(), Change::Committed);
        add(changes, gone, Change::Pruned);

        let Difference { gone, new, changed } = Difference::between(&self.cycles, &now.cycles);
        for at in new {
            let cycle = &session.cycles[at];
            begun = begun.max(cycle.id.0);
            changes.push(Change::Cycle(Box::new(NewCycle::of(cycle))));
        }
        for at in changed {
            changes.push(Change::Moved(CycleUpdate::of(&session.cycles[at])));
        }
        add(changes, gone, Change::Over);

        let Difference { mut gone, mut new, changed } = Difference::between(&self.done, &now.done);
        // A changed one is removed and added again.
        gone.extend(changed.iter().map(|&at| now.done[at].0));
        new.extend(changed);
        add(changes, gone, Change::DoneWith);
        for at in new {
            changes.push(Change::Done(Box::new(session.done[at].clone())));
        }

        let (checkpoints, cycles) = (now.checkpoints_made, now.cycles_begun);
        if (made, begun) != (checkpoints, cycles) {
            changes.push(Change::Counted { checkpoints, cycles });
        }
        *self = now;
    }
}

fn add(changes: &mut Vec<Change>, numbers: Vec<u64>, change: impl FnOnce(Vec<u64>) -> Change) {
    if !numbers.is_empty() {
        changes.push(change(numbers));
    }
}

impl Stage {
    fn of(cycle: &ToolCycleTransaction) -> Self {
        let state = cycle.logged_state();
        Self { state, abandoned: cycle.abandoned, holds: cycle.held.is_some(), used: cycle.used }
    }
}

impl NewCheckpoint {
    fn of(checkpoint: &Checkpoint, session: &Session) -> Self {
        let snapshot = checkpoint.snapshot.as_ref().map(|messages| {
            if session.holds(checkpoint) {
                Snapshot::Prefix
            } else {
                Snapshot::Messages(messages.iter().map(Line::of).collect())
            }
        });
        Self {
            number: checkpoint.number,
            timestamp: checkpoint.timestamp,
            message_index: checkpoint.message_index,
            content_hash: checkpoint.content_hash.clone(),
            operation: checkpoint.operation,
            committed: checkpoint.is_committed,
            snapshot,
        }
    }
}

impl NewCycle {
    fn of(cycle: &ToolCycleTransaction) -> Self {
        Self {
            checkpoint: cycle.checkpoint.clone(),
            tool_use: cycle.tool_use.clone(),
            driver: cycle.driver,
            moved: CycleUpdate::of(cycle),
        }
    }
}

impl CycleUpdate {
    fn of(cycle: &ToolCycleTransaction) -> Self {
        let ToolCycleTransaction { id, abandoned, refused, used, .. } = *cycle;
        let (state, held) = (cycle.logged_state(), cycle.held.clone());
        let gone = used == UsePosition::Removed;
        Self { id: id.0, state, abandoned, held, refused, used: used.at(), gone }
    }
}
