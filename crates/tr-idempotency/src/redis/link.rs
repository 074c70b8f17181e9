//! The connection that all of a process's records go through.
use super::{Durability, fault, script::Script, watch::Watchers};
use crate::store::StoreError;
use redis::{
    Cmd, ErrorKind, Pipeline, RedisError, ServerErrorKind, Value,
    aio::{ConnectionManager, ConnectionManagerConfig},
};
use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

/// One multiplexed connection, replaced when it no longer answers.
///
/// The manager reconnects when it is told that its connection broke. Of a path that swallows
/// everything nobody tells it, so a reply that is overdue ends the connection here.
pub(super) struct Link {
    client: redis::Client,
    timeout: Duration,
    durability: Durability,
    pub(super) watchers: Arc<Watchers>,
    current: Mutex<Current>,
}

struct Current {
    manager: ConnectionManager,
    /// Counts connections.
    number: u64,
}

impl Link {
    /// Connects when first used.
    pub(super) fn new(
        client: redis::Client,
        timeout: Duration,
        durability: Durability,
    ) -> Result<Self, RedisError> {
        let watchers = Arc::new(Watchers::default());
        let timeout = match durability {
            Durability::Local => timeout,
            Durability::Wait { within, .. } => timeout.saturating_add(within),
        };
        let manager = connect(&client, timeout, &watchers)?;
        let current = Mutex::new(Current { manager, number: 0 });
        Ok(Self { client, timeout, durability, watchers, current })
    }

    pub(super) const fn durability(&self) -> Durability {
        self.durability
    }

    /// Runs a script that changes a record, and waits until enough replicas have the change.
    pub(super) async fn change(
        &self,
        script: &Script,
        key: &[u8],
        args: &[&[u8]],
    ) -> Result<Value, StoreError> {
        self.try_change(script, key, args).await?.map_err(fault::store_error)
    }

    /// The same, with the server's own errors apart.
    pub(super) async fn try_change(
        &self,
        script: &Script,
        key: &[u8],
        args: &[&[u8]],
    ) -> Result<Result<Value, RedisError>, StoreError> {
        let Durability::Wait { replicas, within } = self.durability else {
            return Ok(self.run(script, key, args).await);
        };
        let mut wait = redis::cmd("WAIT");
        wait.arg(replicas.get()).arg(u64::try_from(within.as_millis()).unwrap_or(u64::MAX).max(1));
        let replies = self.pipelined(script, key, args, &wait).await;
        let (value, waited) = match replies {
            Ok(replies) => replies,
            Err(error) => return Ok(Err(error)),
        };
        match waited {
            _ if !is_promise(&value) => Ok(Ok(value)),
            Value::Int(have) if have >= i64::from(replicas.get()) => Ok(Ok(value)),
            Value::Int(have) => Err(StoreError::uncertain(format!(
                "{have} of {replicas} replicas had it within {within:?}"
            ))),
            other => Err(StoreError::uncertain(format!("WAIT answered {other:?}"))),
        }
    }

    /// Runs a script.
    pub(super) async fn run(
        &self,
        script: &Script,
        key: &[u8],
        args: &[&[u8]],
    ) -> Result<Value, RedisError> {
        match self.send(&command("EVALSHA", &script.hash, key, args)).await {
            Err(error) if is_unknown(&error) => {
                self.send(&command("EVAL", script.code, key, args)).await
            }
            reply => reply,
        }
    }

    /// Runs a script and, on the same connection right after it, another command.
    async fn pipelined(
        &self,
        script: &Script,
        key: &[u8],
        args: &[&[u8]],
        then: &Cmd,
    ) -> Result<(Value, Value), RedisError> {
        let by_hash = command("EVALSHA", &script.hash, key, args);
        let replies = match self.send_both(&by_hash, then).await {
            Err(error) if is_unknown(&error) => {
                self.send_both(&command("EVAL", script.code, key, args), then).await
            }
            replies => replies,
        }?;
        Ok(replies.into())
    }

    async fn send_both(&self, one: &Cmd, other: &Cmd) -> Result<[Value; 2], RedisError> {
        let mut both = Pipeline::new();
        both.add_command(one.clone()).add_command(other.clone());
        let (mut manager, number) = self.manager();
        let replies = self.heed(manager.send_packed_commands(&both, 0, 2).await, number)?;
        let replies: Result<Vec<_>, _> = replies.into_iter().map(Value::extract_error).collect();
        replies?.try_into().map_err(|_| (ErrorKind::Parse, "not two replies").into())
    }

    /// Sends one command.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        let (mut manager, number) = self.manager();
        let reply = self.heed(manager.send_packed_command(command).await, number)?;
        reply.extract_error()
    }

    /// Asks to be told of what is published there.
    pub(super) async fn subscribe(&self, channel: &[u8]) -> Result<(), RedisError> {
        let (mut manager, number) = self.manager();
        self.heed(manager.subscribe(channel).await, number)
    }

    pub(super) async fn unsubscribe(&self, channel: &[u8]) -> Result<(), RedisError> {
        let (mut manager, number) = self.manager();
        self.heed(manager.unsubscribe(channel).await, number)
    }

    fn manager(&self) -> (ConnectionManager, u64) {
        let current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        (current.manager.clone(), current.number)
    }

    /// Gives up a connection that no longer answers, or no longer leads to a primary.
    fn heed<T>(&self, reply: Result<T, RedisError>, number: u64) -> Result<T, RedisError> {
        if let Err(error) = &reply
            && fault::is_stale(error)
        {
            let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
            if current.number == number
                && let Ok(manager) = connect(&self.client, self.timeout, &self.watchers)
            {
                *current = Current { manager, number: number + 1 };
                drop(current);
                self.watchers.lost();
            }
        }
        reply
    }
}

fn connect(
    client: &redis::Client,
    timeout: Duration,
    watchers: &Arc<Watchers>,
) -> Result<ConnectionManager, RedisError> {
    let watchers = Arc::downgrade(watchers);
    let config = ConnectionManagerConfig::new()
        .set_connection_timeout(Some(timeout))
        .set_response_timeout(Some(timeout))
        // Who asks next tries again; waiting here would only make all of them wait.
        .set_number_of_retries(0)
        .set_push_sender(move |push| {
            watchers.upgrade().map(|watchers| watchers.heed(&push)).ok_or(())
        });
    ConnectionManager::new_lazy_with_config(client.clone(), config)
}

fn command(name: &str, script: &str, key: &[u8], args: &[&[u8]]) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(script).arg(1).arg(key);
    for arg in args {
        command.arg(*arg);
    }
    command
}

/// Whether somebody will rely on what was written: a grant, or a change that was made.
fn is_promise(reply: &Value) -> bool {
    match reply {
        Value::Int(done) => *done == 1,
        Value::Array(parts) => parts.first() == Some(&Value::BulkString(b"run".to_vec())),
        _ => false,
    }
}

fn is_unknown(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}
