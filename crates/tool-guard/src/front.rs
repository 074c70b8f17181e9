//! HTTP listeners for callers: who may send a request, how many connections there are, what they may cost.
pub(crate) mod access;
pub(crate) mod body;
pub(crate) mod budget;
pub(crate) mod events;
pub(crate) mod listener;
pub(crate) mod log_limit;
pub(crate) mod own_socket;
mod pages;
