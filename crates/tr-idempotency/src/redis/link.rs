//! The connection of a process to Redis.
use super::{durability::Durability, fault, script::Script, sentinels::primary, watch::Watchers};
use crate::{clock::millis, store::StoreError};
use redis::{
    AsyncConnectionConfig, Cmd, ErrorKind, Pipeline, PushInfo, PushKind, RedisError,
    ServerErrorKind, Value, aio::MultiplexedConnection, make_extension_error,
    sentinel::SentinelClient,
};
use std::{
    future::Future,
    io,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::sync::watch;
use tr_core::internal::lock;

/// One multiplexed connection, replaced after every error that leaves its state unknown.
pub(super) struct Link {
    discovery: Discovery,
    timeout: Duration,
    pub(super) durability: Durability,
    pub(super) watchers: Watchers,
    current: Mutex<Current>,
}

/// How to find the server.
#[derive(Clone)]
pub(super) enum Discovery {
    Address(Box<redis::Client>),
    /// Asked for each connection, by one caller while the others wait for the result.
    Sentinels(Arc<tokio::sync::Mutex<SentinelClient>>),
}

/// The connection in use.
struct Current {
    state: State,
    /// The number of this connection, also while it is being made.
    number: u64,
}

enum State {
    Closed,
    Opening(Opening),
    Open(MultiplexedConnection),
}

/// A connection, and its number.
type Numbered = (MultiplexedConnection, u64);

/// The end of an attempt to connect, which all callers wait for that came meanwhile. A failed attempt is not
/// kept: the next caller makes another one.
type Opening = watch::Receiver<Option<Result<Numbered, RedisError>>>;

impl Link {
    /// Connects when it is first used.
    pub(super) fn new(discovery: Discovery, timeout: Duration, durability: Durability) -> Self {
        let timeout = match durability {
            Durability::Local => timeout,
            Durability::Wait { within, .. } => timeout.saturating_add(within),
        };
        let current = Mutex::new(Current { state: State::Closed, number: 0 });
        Self { discovery, timeout, durability, watchers: Watchers::default(), current }
    }

    /// Runs a script that changes a record, and waits until enough replicas have the change.
    pub(super) async fn change(
        self: &Arc<Self>,
        script: &Script,
        key: &[u8],
        args: &[&[u8]],
    ) -> Result<Value, StoreError> {
        let Durability::Wait { replicas, within } = self.durability else {
            return self.run(script, key, args).await.map_err(fault::store_error);
        };
        let mut wait = redis::cmd("WAIT");
        wait.arg(replicas.get()).arg(millis(within).max(1));
        let replies = evaluate(script, key, args, |script| self.send_both(script, wait.clone()));
        let [value, waited] = replies.await.map_err(fault::store_error)?;
        match waited {
            _ if !is_promise(&value) => Ok(value),
            Value::Int(have) if have >= i64::from(replicas.get()) => Ok(value),
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
        self: &Arc<Self>,
        script: &Script,
        key: &[u8],
        args: &[&[u8]],
    ) -> Result<Value, RedisError> {
        evaluate(script, key, args, |script| self.send(script)).await
    }

    /// Sends two commands, the second right after the first on the same connection.
    async fn send_both(self: &Arc<Self>, one: Cmd, other: Cmd) -> Result<[Value; 2], RedisError> {
        let mut both = Pipeline::new();
        both.add_command(one).add_command(other);
        let (mut connection, number) = self.connection().await?;
        let replies = connection.send_packed_commands(&both, 0, 2).await;
        self.heed(replies.and_then(both_of), number)
    }

    /// Sends one command.
    pub(super) async fn send(self: &Arc<Self>, command: Cmd) -> Result<Value, RedisError> {
        let (mut connection, number) = self.connection().await?;
        let reply = connection.send_packed_command(&command).await;
        self.heed(reply.and_then(Value::extract_error), number)
    }

    /// Subscribes to a channel.
    pub(super) async fn subscribe(self: &Arc<Self>, channel: &[u8]) -> Result<(), RedisError> {
        let (mut connection, number) = self.connection().await?;
        self.heed(connection.subscribe(channel).await, number)
    }

    pub(super) async fn unsubscribe(self: &Arc<Self>, channel: &[u8]) -> Result<(), RedisError> {
        let (mut connection, number) = self.connection().await?;
        self.heed(connection.unsubscribe(channel).await, number)
    }

    /// A connection on which the server has answered `HELLO`, so that TLS and authentication have passed.
    /// Without one, nothing was sent that changes records, and the error says so.
    async fn connection(self: &Arc<Self>) -> Result<Numbered, RedisError> {
        let mut opening = {
            let mut current = lock(&self.current);
            match &current.state {
                State::Open(connection) => return Ok((connection.clone(), current.number)),
                // Its task ends early only with its runtime.
                State::Opening(opening) if opening.has_changed().is_ok() => opening.clone(),
                _ => self.open(&mut current),
            }
        };
        let end = opening.wait_for(Option::is_some).await.ok().and_then(|end| end.clone());
        let ended = || Err(io::Error::other("the runtime of the connection has ended").into());
        end.unwrap_or_else(ended).map_err(fault::unsent)
    }

    /// Connects in a task of its own, which goes on if this caller leaves.
    fn open(self: &Arc<Self>, current: &mut Current) -> Opening {
        current.number += 1;
        let (number, link) = (current.number, self.clone());
        let (tell, opening) = watch::channel(None);
        current.state = State::Opening(opening.clone());
        tokio::spawn(async move {
            let end = link.connect(number).await;
            let mut current = lock(&link.current);
            if current.number == number {
                current.state = match &end {
                    Ok(connection) => State::Open(connection.clone()),
                    Err(_) => State::Closed,
                };
            }
            drop(current);
            tell.send_replace(Some(end.map(|connection| (connection, number))));
        });
        opening
    }

    async fn connect(self: &Arc<Self>, number: u64) -> Result<MultiplexedConnection, RedisError> {
        let found;
        let client = match &self.discovery {
            Discovery::Address(client) => client,
            Discovery::Sentinels(sentinels) => {
                found = primary(&mut *sentinels.lock().await, self.timeout).await?;
                &found
            }
        };
        let link = Arc::downgrade(self);
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout))
            .set_push_sender(move |push: PushInfo| {
                let link = link.upgrade().ok_or(())?;
                match push.kind {
                    PushKind::Disconnection => link.lose(number),
                    _ => link.watchers.heed(&push),
                }
                Ok::<_, ()>(())
            });
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// Drops the connection of this number; the next caller opens another one.
    fn lose(&self, number: u64) {
        let mut current = lock(&self.current);
        if current.number != number {
            return;
        }
        // One that is being made is not taken either.
        (current.state, current.number) = (State::Closed, number + 1);
        drop(current);
        self.watchers.lost();
    }

    /// The primary may have changed: the sentinels are asked again.
    fn doubt(&self) {
        if matches!(self.discovery, Discovery::Sentinels(_)) {
            let number = lock(&self.current).number;
            self.lose(number);
        }
    }

    /// Drops a connection whose state is unknown, or that may not lead to the primary any more.
    fn heed<T>(&self, reply: Result<T, RedisError>, number: u64) -> Result<T, RedisError> {
        if let Err(error) = &reply {
            let is_doubtful =
                matches!(self.discovery, Discovery::Sentinels(_)) && fault::is_of_a_failover(error);
            if is_doubtful || !fault::is_of_the_command(error) {
                self.lose(number);
            }
        }
        reply
    }
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

/// Runs a script by its hash, and by its code where the server does not know that.
async fn evaluate<T, F>(
    script: &Script,
    key: &[u8],
    args: &[&[u8]],
    send: impl Fn(Cmd) -> F,
) -> Result<T, RedisError>
where
    F: Future<Output = Result<T, RedisError>>,
{
    match send(command("EVALSHA", &script.hash, key, args)).await {
        Err(error) if is_unknown(&error) => send(command("EVAL", script.code, key, args)).await,
        reply => reply,
    }
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
