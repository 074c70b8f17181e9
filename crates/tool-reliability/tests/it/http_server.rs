//! Keys of HTTP requests, over real servers and real clients.
mod bodies;
mod dropped;
mod failures;
mod refusals;
mod replays;
mod stores;
mod support;
