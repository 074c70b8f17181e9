//! HTTP listeners for callers: who may send a request, how many connections there are, what they may cost.
pub(crate) mod access;
pub(crate) mod body;
pub(crate) mod budget;
pub(crate) mod events;
pub(crate) mod listener;
mod pages;
pub(crate) mod told;
