//! What is killed and what is asked of it afterwards, whatever the store: it may be included
//! elsewhere, and knows no store itself.
mod child;
mod fuse;
mod rounds;

pub(crate) use self::{
    child::Order,
    rounds::{at_any_moment, at_points},
};
use tr_integrity::store::SessionStore;

/// Where sessions are kept.
pub(crate) trait Place {
    type Store: SessionStore;

    /// Opens the store at this place, as a process of its own does.
    async fn open(place: &str) -> Self::Store;
}
