//! MCP over Streamable HTTP in front: each call has an exchange of its own, whatever is behind it.
mod behind;
mod door;
mod exchange;
mod headers;
mod presence;
mod reply;
mod run;
mod running;

pub(crate) use self::{
    behind::Behind,
    headers::status_of,
    presence::{Presence, Watched},
    reply::{event, refused},
    run::run,
};
