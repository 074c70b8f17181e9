//! Decides about calls, and keeps their records. It opens no connection to a client or a server.
//!
//! | question | module |
//! |---|---|
//! | by which id does its client name the call? | `identity` |
//! | which running call is this one, or stands in its way? | `equal_calls`, `in_flight` |
//! | which call of unknown outcome bars it, in this process and in the store? | `unknowns`, `unknown_records` |
//! | what became of the call before, if arguments name it? | `identified` |
//! | by which key does the server recognize a repeat? | `server_key` |
//! | did a call of unknown outcome run? | `check`, `asking`, `settling` |
//!
//! They meet in `proxy/start`.
pub(crate) mod answer;
mod asking;
mod attribution;
pub(crate) mod call;
pub(crate) mod check;
mod choices;
pub(crate) mod effects;
pub(crate) mod equal_calls;
pub(crate) mod failure;
pub(crate) mod guard;
pub(crate) mod guessed;
mod http_options;
pub(crate) mod identified;
pub(crate) mod identity;
pub(crate) mod in_flight;
pub(crate) mod limits;
pub(crate) mod log;
mod notes;
pub(crate) mod one_client;
pub(crate) mod operation;
pub(crate) mod operator;
pub(crate) mod options;
pub(crate) mod out;
pub(crate) mod presence;
pub(crate) mod private;
pub(crate) mod proxy;
mod record_file;
pub(crate) mod recording;
pub(crate) mod records;
pub(crate) mod request;
pub(crate) mod server_event;
mod server_key;
pub(crate) mod settling;
pub(crate) mod setup;
pub(crate) mod stores;
mod tool;
pub(crate) mod unknown_records;
pub(crate) mod unknowns;
mod unusable;
mod warnings;
mod watching;
