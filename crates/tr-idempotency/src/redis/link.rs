//! The connection of a process to Redis.
use super::{
    durability::Durability,
    fault,
    script::Script,
    sentinels::{Sentinels, primary},
    watch::Watchers,
};
use crate::store::StoreError;
use redis::{
    Cmd, ErrorKind, Pipeline, RedisError, ServerErrorKind, Value,
    aio::{ConnectionManager, ConnectionManagerConfig},
    make_extension_error,
};
use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// One multiplexed connection, replaced when it no longer replies.
///
/// The manager reconnects when its connection breaks. It does not notice a network that drops all
/// packets, so a reply timeout ends the connection here.
pub(super) struct Link {
    discovery: Discovery,
    timeout: Duration,
    durability: Durability,
    pub(super) watchers: Arc<Watchers>,
    current: Mutex<Current>,
}

/// How to find the server.
#[derive(Clone)]
pub(super) enum Discovery {
    Address(Box<redis::Client>),
    /// Asked again whenever the primary may have changed.
    Sentinels(Arc<Sentinels>),
}

struct Current {
    /// `None` until the sentinels have named the primary, and while they have to be asked again.
    manager: Option<ConnectionManager>,
    /// The address of the primary, if sentinels named it.
    addr: String,
    /// Whether the sentinels have to confirm the primary again.
    is_doubted: bool,
    /// The number of this connection.
    number: u64,
    /// Whether a server has replied on this connection: TLS and authentication have passed, so a
    /// failure from now on may follow a command that was applied.
    is_met: bool,
}

impl Link {
    /// Connects when it is first used.
    pub(super) fn new(
        discovery: Discovery,
        timeout: Duration,
        durability: Durability,
    ) -> Result<Self, RedisError> {
        let watchers = Arc::new(Watchers::default());
        let timeout = match durability {
            Durability::Local => timeout,
            Durability::Wait { within, .. } => timeout.saturating_add(within),
        };
        let manager = match &discovery {
            Discovery::Address(client) => Some(connect(client, timeout, &watchers)?),
            Discovery::Sentinels(_) => None,
        };
        let (addr, is_doubted) = (String::new(), false);
        let current = Current { manager, addr, is_doubted, number: 0, is_met: false };
        Ok(Self { discovery, timeout, durability, watchers, current: Mutex::new(current) })
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

    /// Like [`change`](Self::change), with the server's own errors in the inner result.
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
            Value::Int(have) => {
                self.doubt(); // They may follow another primary.
                Err(StoreError::uncertain(format!(
                    "{have} of {replicas} replicas confirmed the write within {within:?}"
                )))
            }
            other => Err(StoreError::uncertain(format!("unexpected reply to WAIT: {other:?}"))),
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
        let (mut manager, number) = self.manager().await?;
        let replies = manager.send_packed_commands(&both, 0, 2).await;
        self.heed(replies.and_then(both_of), number)
    }

    /// Sends one command.
    pub(super) async fn send(&self, command: &Cmd) -> Result<Value, RedisError> {
        let (mut manager, number) = self.manager().await?;
        let reply = manager.send_packed_command(command).await;
        self.heed(reply.and_then(Value::extract_error), number)
    }

    /// Subscribes to a channel.
    pub(super) async fn subscribe(&self, channel: &[u8]) -> Result<(), RedisError> {
        let (mut manager, number) = self.manager().await?;
        self.heed(manager.subscribe(channel).await, number)
    }

    pub(super) async fn unsubscribe(&self, channel: &[u8]) -> Result<(), RedisError> {
        let (mut manager, number) = self.manager().await?;
        self.heed(manager.unsubscribe(channel).await, number)
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection on which a server has replied. If there is none, only a read-only command was
    /// sent, and the error says so.
    async fn manager(&self) -> Result<(ConnectionManager, u64), RedisError> {
        let (mut manager, number) = self.found().await?;
        if self.current().knows(number) {
            return Ok((manager, number));
        }
        // Not `PING`, which the user may not be permitted.
        let reply = manager.send_packed_command(redis::cmd("INFO").arg("server")).await;
        match self.heed(reply.and_then(Value::extract_error), number) {
            // A server that refuses the command has also replied.
            Err(error) if error.code().is_none() => Err(fault::unsent(error)),
            _ => {
                let mut current = self.current();
                current.is_met |= current.number == number;
                drop(current);
                Ok((manager, number))
            }
        }
    }

    async fn found(&self) -> Result<(ConnectionManager, u64), RedisError> {
        if let Some(manager) = self.current().trusted() {
            return Ok(manager);
        }
        let Discovery::Sentinels(sentinels) = &self.discovery else {
            unreachable!("an address is trusted")
        };
        let mut sentinels = sentinels.0.lock().await;
        if let Some(manager) = self.current().trusted() {
            return Ok(manager); // Another caller has asked meanwhile.
        }
        let client = primary(&mut sentinels, self.timeout).await?;
        let addr = client.get_connection_info().addr().to_string();
        let mut current = self.current();
        if current.addr == addr
            && let Some(manager) = current.manager.clone()
        {
            current.is_doubted = false;
            return Ok((manager, current.number));
        }
        let manager = connect(&client, self.timeout, &self.watchers)?;
        *current = current.followed_by(manager.clone(), addr);
        let number = current.number;
        drop(current);
        self.watchers.lost();
        Ok((manager, number))
    }

    /// The primary may have changed.
    fn doubt(&self) {
        self.current().is_doubted = matches!(self.discovery, Discovery::Sentinels(_));
    }

    /// Drops a connection that no longer replies, or no longer leads to the primary.
    fn heed<T>(&self, reply: Result<T, RedisError>, number: u64) -> Result<T, RedisError> {
        if reply.as_ref().is_err_and(|error| error.code().is_none()) {
            let mut current = self.current();
            current.is_met &= current.number != number;
        }
        match (&reply, &self.discovery) {
            (Err(error), Discovery::Address(client)) if fault::is_stale(error) => {
                let mut current = self.current();
                if current.number == number
                    && let Ok(manager) = connect(client, self.timeout, &self.watchers)
                {
                    *current = current.followed_by(manager, String::new());
                    drop(current);
                    self.watchers.lost();
                }
            }
            (Err(error), Discovery::Sentinels(_)) if error.code().is_none() => {
                let mut current = self.current();
                if current.number == number {
                    current.manager = None;
                }
            }
            (Err(error), _) if fault::is_of_a_failover(error) => self.doubt(),
            _ => {}
        }
        reply
    }
}

impl Current {
    fn trusted(&self) -> Option<(ConnectionManager, u64)> {
        let manager = self.manager.as_ref().filter(|_| !self.is_doubted)?;
        Some((manager.clone(), self.number))
    }

    const fn knows(&self, number: u64) -> bool {
        self.is_met && self.number == number
    }

    const fn followed_by(&self, manager: ConnectionManager, addr: String) -> Self {
        let number = self.number + 1;
        Self { manager: Some(manager), addr, is_doubted: false, number, is_met: false }
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
        // The next caller retries; a retry here would block all callers.
        .set_number_of_retries(0)
        .set_push_sender(move |push| {
            watchers.upgrade().map(|watchers| watchers.heed(&push)).ok_or(())
        });
    ConnectionManager::new_lazy_with_config(client.clone(), config)
}

/// The replies to a script and to `WAIT`. A replica runs a read-only script but refuses `WAIT`: its
/// data may be stale.
fn both_of(replies: Vec<Value>) -> Result<[Value; 2], RedisError> {
    let [done, waited]: [Value; 2] =
        replies.try_into().map_err(|_| (ErrorKind::Parse, "not two replies"))?;
    let done = done.extract_error()?;
    let waited = match waited.extract_error() {
        // It became a replica in between: the write is on no other server.
        Err(error) if error.code() == Some("ERR") && is_promise(&done) => Value::Int(0),
        Err(error) if error.code() == Some("ERR") => {
            let why = error.detail().map(str::to_owned);
            return Err(make_extension_error("READONLY".into(), why));
        }
        waited => waited?,
    };
    Ok([done, waited])
}

fn command(name: &str, script: &str, key: &[u8], args: &[&[u8]]) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(script).arg(1).arg(key);
    for arg in args {
        command.arg(*arg);
    }
    command
}

/// Whether a caller relies on this write: a grant (for a new key, its epoch), or a change that was
/// made.
fn is_promise(reply: &Value) -> bool {
    match reply {
        Value::Int(done) => *done > 0,
        Value::Array(parts) => parts.first() == Some(&Value::BulkString(b"run".to_vec())),
        _ => false,
    }
}

fn is_unknown(error: &RedisError) -> bool {
    error.kind() == ErrorKind::Server(ServerErrorKind::NoScript)
}

#[cfg(test)]
mod tests {
    use super::*;
    use redis::parse_redis_value;

    fn told(script: &[u8]) -> Result<[Value; 2], RedisError> {
        let wait = b"-ERR WAIT cannot be used with replica instances.\r\n";
        both_of(vec![parse_redis_value(script).unwrap(), parse_redis_value(wait).unwrap()])
    }

    #[test]
    fn of_a_replica_nothing_is_believed_and_no_promise_is_forgotten() {
        // It only read.
        assert_eq!(told(b"*1\r\n$8\r\nconflict\r\n").unwrap_err().code(), Some("READONLY"));
        assert_eq!(told(b":0\r\n").unwrap_err().code(), Some("READONLY"));
        // It was the primary until now.
        for promise in [1, 1_795_335_770_767_232] {
            let told = told(format!(":{promise}\r\n").as_bytes());
            assert_eq!(told.unwrap(), [Value::Int(promise), Value::Int(0)]);
        }
        assert_eq!(told(b"-MASTERDOWN x\r\n").unwrap_err().code(), Some("MASTERDOWN"));
    }
}
