//! The order of a step's results after a repair.
use super::pairs::Pairs;

impl Pairs<'_> {
    /// The results of a step in their new order: those in the right message keep their order, the
    /// others are inserted in the order of their uses. `None` stands for an unknown outcome.
    pub(super) fn order(&self, number: usize) -> Vec<(usize, Option<usize>)> {
        let step = &self.steps[number];
        let is_home = |result: usize| self.found[result].home == Some(number);
        let uses = step.uses.iter().enumerate();
        let (mut order, guests): (Vec<_>, Vec<_>) = uses
            .map(|(place, used)| (place, used.answer))
            .partition(|(_, answer)| answer.is_some_and(is_home));
        order.sort_by_key(|&(_, answer)| answer);
        // The highest position up to each.
        let mut highest = 0;
        let up_to = order.iter().map(|&(place, _)| {
            highest = highest.max(place);
            highest
        });
        let up_to: Vec<_> = up_to.collect();
        let mut guests = guests.into_iter().filter(|(_, answer)| answer.is_some() || !step.is_live);
        let mut next = guests.next();
        let mut all = Vec::with_capacity(step.uses.len());
        for (at, home) in order.into_iter().enumerate() {
            while let Some(guest) = next.filter(|(place, _)| up_to[at] > *place) {
                all.push(guest);
                next = guests.next();
            }
            all.push(home);
        }
        all.extend(next.into_iter().chain(guests));
        all
    }
}
