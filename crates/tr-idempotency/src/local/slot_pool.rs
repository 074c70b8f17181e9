//! Recycled pinned allocations for runs.
use std::{any::Any, pin::Pin};

/// A pinned allocation that holds a run, and is reused by the next.
pub(crate) type Cell<D> = Pin<Box<D>>;

/// The most empty cells of one type.
const CELLS: usize = 4;

/// The most types of cells: one per service type that a layer wraps.
const TYPES: usize = 4;

/// Empty cells, so that a call allocates nothing once its shard is warm.
#[derive(Default)]
pub(crate) struct SlotPool(Vec<Box<dyn Any + Send>>);

impl SlotPool {
    #[inline]
    pub(crate) fn take<D: Send + 'static>(&mut self) -> Option<Cell<D>> {
        self.of::<D>()?.pop()
    }

    /// Keeps the cell of a finished run.
    #[inline]
    pub(crate) fn give<D: Send + 'static>(&mut self, cell: Cell<D>) {
        if let Some(cells) = self.of::<D>() {
            if cells.len() < CELLS {
                cells.push(cell);
            }
        } else if self.0.len() < TYPES {
            let mut cells = Vec::with_capacity(CELLS);
            cells.push(cell);
            self.0.push(Box::new(cells));
        }
    }

    fn of<D: Send + 'static>(&mut self) -> Option<&mut Vec<Cell<D>>> {
        self.0.iter_mut().find_map(|cells| cells.downcast_mut())
    }
}
