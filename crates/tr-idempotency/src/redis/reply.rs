//! The replies of scripts and commands.
use super::{fault::store_error, layout};
use crate::store::StoreError;
use redis::{RedisError, Value};

pub(super) fn done(reply: Result<Value, RedisError>) -> Result<bool, StoreError> {
    was_done(&reply.map_err(store_error)?)
}

/// Whether a script made its change.
pub(super) fn was_done(reply: &Value) -> Result<bool, StoreError> {
    match reply {
        Value::Int(-1) => Err(layout::unreadable()),
        Value::Int(done) => Ok(*done == 1),
        other => Err(unexpected_reply(other)),
    }
}

pub(super) fn parts<const N: usize>(reply: Value) -> Result<[Value; N], StoreError> {
    match reply {
        Value::Array(parts) => {
            parts.try_into().map_err(|parts: Vec<Value>| unexpected_reply(&parts))
        }
        other => Err(unexpected_reply(&other)),
    }
}

pub(super) fn from(number: i64) -> u64 {
    number.try_into().unwrap_or(0)
}

/// The error for a reply that these scripts never give. The request may have been applied.
pub(super) fn unexpected_reply(reply: &impl std::fmt::Debug) -> StoreError {
    let reply: String = format!("{reply:?}").chars().take(200).collect();
    StoreError::uncertain(format!("unexpected reply: {reply}"))
}
