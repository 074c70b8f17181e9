//! Maps positions in a list with removed elements to positions in the original list.

/// A list with removed elements.
///
/// A Fenwick tree: it counts the remaining elements in ranges of power-of-two length, so each query
/// takes logarithmic time.
#[derive(Debug)]
pub(super) struct PositionMap {
    sums: Vec<usize>,
}

impl PositionMap {
    /// A list of this length, with all elements.
    pub(super) fn of(len: usize) -> Self {
        Self { sums: (1..=len).map(|end| end & end.wrapping_neg()).collect() }
    }

    /// The original position of the `nth` remaining element.
    pub(super) fn place(&self, nth: usize) -> Option<usize> {
        let (mut place, mut left) = (0, nth);
        let mut step = self.sums.len().checked_ilog2().map_or(0, |bits| 1 << bits);
        while step > 0 {
            if let Some(&sum) = self.sums.get(place + step - 1)
                && sum <= left
            {
                place += step;
                left -= sum;
            }
            step /= 2;
        }
        (place < self.sums.len()).then_some(place)
    }

    /// Removes the `nth` remaining element; returns its original position.
    pub(super) fn remove(&mut self, nth: usize) -> Option<usize> {
        let place = self.place(nth)?;
        let mut end = place + 1;
        while let Some(sum) = self.sums.get_mut(end - 1) {
            *sum -= 1;
            end += end & end.wrapping_neg();
        }
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::PositionMap;
    use proptest::{collection::vec, prelude::*};

    proptest! {
        /// As a list from which they are taken one by one.
        #[test]
        fn what_is_left_is_found(len in 0..40_usize, removed in vec(0..44_usize, 0..50)) {
            let (mut left, mut list) = (PositionMap::of(len), (0..len).collect::<Vec<_>>());
            for nth in removed {
                prop_assert_eq!(left.place(nth), list.get(nth).copied());
                let gone = (nth < list.len()).then(|| list.remove(nth));
                prop_assert_eq!(left.remove(nth), gone);
            }
        }
    }
}
