//! Normalises equivalent states, to reduce their number.
use super::{
    super::{State, Token},
    Lease,
    world::{LEASE, Late, NOON, Server, TTLS, World},
};
use std::iter;

impl World {
    /// Times become relative to now, and ended times become equal.
    pub(super) fn level(&mut self, lease: &Lease) {
        let past = self.now - NOON;
        let store_noon = NOON.saturating_add_signed(self.ahead.into());
        // The time since the end of a lease matters only for a clock that jumps back.
        let earliest = if lease.clock_jumps { store_noon - 2 * LEASE } else { store_noon };
        for record in self.servers().filter_map(|server| server.record.as_mut()) {
            (record.version, record.runs) = (0, 0);
            (record.claimed_at, record.changed_at) = (0, 0);
            record.until = match record.state {
                State::Inflight => (record.until - past).max(earliest),
                _ => NOON + TTLS.done,
            };
        }
        for caller in &mut self.callers {
            if let Some(until) = caller.step.until_mut() {
                *until = (*until - past).max(NOON);
            }
        }
        self.now = NOON;
        if !lease.counted_epochs {
            self.level_epochs();
        }
    }

    /// Only the order of epochs matters, unless a bug counts them.
    fn level_epochs(&mut self) {
        let mut epochs: Vec<_> = self.tokens().map(|token| token.epoch).collect();
        epochs.sort_unstable();
        epochs.dedup();
        for token in self.tokens() {
            token.epoch = 1 + epochs.partition_point(|&epoch| epoch < token.epoch) as u64;
        }
        self.top = epochs.partition_point(|&epoch| epoch <= self.top) as u64;
        self.claims = epochs.len() as u64;
        self.servers().for_each(|server| server.claims = 0);
    }

    fn servers(&mut self) -> impl Iterator<Item = &mut Server> {
        let old = self.deposed.as_mut().map(|(server, _)| server);
        iter::once(&mut self.primary).chain(&mut self.replica).chain(old)
    }

    /// All tokens in the state.
    fn tokens(&mut self) -> impl Iterator<Item = &mut Token> {
        let old = self.deposed.as_mut().map(|(server, _)| server);
        let servers = iter::once(&mut self.primary).chain(&mut self.replica).chain(old);
        let late = match &mut self.late {
            Some(Late::Finish { token, .. }) => Some(token),
            _ => None,
        };
        servers
            .filter_map(|server| Some(&mut server.record.as_mut()?.token))
            .chain(self.callers.iter_mut().filter_map(|caller| caller.step.token_mut()))
            .chain(late)
    }
}
