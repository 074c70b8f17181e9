//! Single records: each operation is one script and one round trip.
use super::{
    fault::store_error,
    layout::{self, HEAD},
    reply::{done, from, parts, unexpected_reply, was_done},
    script,
    store::Redis,
};
use crate::{
    protocol::{Millis, Token},
    store::{
        Before, Change, ClaimRequest, Claimed, Grant, Listing, Query, RecordStore, Seen,
        StoreError, StoreFuture, Stored,
    },
};
use redis::Value;
use tr_core::canonical::Key;

/// The longest time, about a thousand years: scripts compute with numbers that are exact up to
/// 2^53.
const LONGEST: Millis = 1 << 45;

/// A number as an argument.
fn number(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// A length of time as the scripts can count it.
fn bounded(time: Millis) -> Millis {
    time.min(LONGEST)
}

/// A length of time as an argument.
fn time(time: Millis) -> Vec<u8> {
    number(bounded(time))
}

const fn flag(flag: bool) -> &'static [u8] {
    if flag { b"1" } else { b"0" }
}

impl Redis {
    /// Deletes a record that was read, if it has not changed since and may be deleted.
    pub(super) async fn forget(&self, stored: &Stored) -> Result<bool, StoreError> {
        let Seen { token: Token { epoch, owner }, version } = stored.seen();
        let args: [&[u8]; 3] = [&number(epoch), &owner.to_be_bytes(), &number(version)];
        done(self.0.changes.run(&script::FLUSH, &self.name(&stored.key), &args).await)
    }

    /// The version of the record, to notice a change.
    pub(super) async fn glance(&self, key: &Key) -> Result<Option<Seen>, StoreError> {
        let head = self.look(key, &number(HEAD as u64 - 1)).await?;
        Ok(head.map(|stored| stored.seen()))
    }

    async fn look(&self, key: &Key, last: &[u8]) -> Result<Option<Stored>, StoreError> {
        let (now, bytes) = self.glimpse(&self.name(key), last).await?;
        layout::read(key, &bytes, now)
    }

    /// The server's time, and the bytes of a value up to the last.
    pub(super) async fn glimpse(
        &self,
        name: &[u8],
        last: &[u8],
    ) -> Result<(Millis, Vec<u8>), StoreError> {
        let reply = self.0.looks.run(&script::LOOK, name, &[last]).await;
        match parts(reply.map_err(store_error)?)? {
            [Value::Int(now), Value::BulkString(bytes)] => Ok((from(now), bytes)),
            other => Err(unexpected_reply(&other)),
        }
    }

    fn durable(&self) -> &'static [u8] {
        flag(self.0.changes.durability.waits())
    }
}

impl RecordStore for Redis {
    fn claim<'s>(&'s self, claim: &'s ClaimRequest) -> StoreFuture<'s, Claimed> {
        Box::pin(async move {
            let (lease, unknown) = (bounded(claim.ttls.inflight), bounded(claim.ttls.unknown));
            let [lead, by, rest] = layout::of_claim(claim, unknown);
            let (lives, lease) = (number(lease.saturating_add(unknown).max(1)), number(lease));
            let (again, corrects) = (flag(claim.again), flag(claim.corrects));
            let args: [&[u8]; 8] =
                [&lead, &by, &rest, &lease, &lives, again, self.durable(), corrects];
            // Most claims have no flag, and each argument costs time on the server.
            let flags = match claim.corrects {
                true => 3,
                false if claim.again || self.0.changes.durability.waits() => 2,
                false => 0,
            };
            let (script, name) = (&script::CLAIM, self.name(&claim.key));
            claimed(claim, self.0.changes.change(script, &name, &args[..5 + flags]).await?)
        })
    }

    fn change<'s>(&'s self, key: &'s Key, change: Change<'s>) -> StoreFuture<'s, bool> {
        Box::pin(async move {
            let (changes, name) = (&self.0.changes, self.name(key));
            let reply = match change {
                Change::Renew(Token { epoch, owner }, lease) => {
                    let args: [&[u8]; 3] = [&number(epoch), &owner.to_be_bytes(), &time(lease)];
                    changes.change(&script::RENEW, &name, &args).await
                }
                Change::Release(owner) => {
                    let args: [&[u8]; 1] = [&owner.to_be_bytes()];
                    changes.run(&script::RELEASE, &name, &args).await.map_err(store_error)
                }
                Change::Finalize(token, end) => {
                    let (phase, body) = (end.state.phase(), end.state.body());
                    let (token, ttl, durable) =
                        (layout::of_token(token), time(end.ttl), self.durable());
                    let head: [&[u8]; 4] = [&token, layout::letter(phase), &ttl, durable];
                    let args: Vec<&[u8]> =
                        head.into_iter().chain(body.map(Vec::as_slice)).collect();
                    changes.change(&script::FINALIZE, &name, &args).await
                }
                Change::Settle(of, end) => {
                    let (phase, body) = (end.state.phase(), end.state.body());
                    let args: [&[u8]; 6] = [
                        &of.map_or_else(Vec::new, |of| number(of.epoch)),
                        &of.map_or(Token::BY_HAND, |of| of.owner).to_be_bytes(),
                        layout::letter(phase),
                        &time(end.ttl),
                        flag(body.is_some()),
                        body.map_or(&[], Vec::as_slice),
                    ];
                    changes.change(&script::SETTLE, &name, &args).await
                }
            };
            was_done(&reply?)
        })
    }

    fn read<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, Option<Stored>> {
        Box::pin(self.look(key, b"-1"))
    }

    fn watch<'s>(&'s self, key: &'s Key, seen: Seen) -> StoreFuture<'s, ()> {
        Box::pin(self.watch_record(key, seen))
    }

    fn list<'s>(&'s self, query: &'s Query, limit: usize, _: bool) -> StoreFuture<'s, Listing> {
        Box::pin(self.listing(query, limit))
    }

    fn count<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            let mut count = 0;
            self.each(query, |found| {
                count += u64::from(found.is_ok());
                true
            })
            .await?;
            Ok(count)
        })
    }

    fn flush<'s>(&'s self, query: &'s Query) -> StoreFuture<'s, u64> {
        Box::pin(async move {
            let mut meant = Vec::new();
            self.each(query, |found| {
                meant.extend(found.ok().filter(|stored| !stored.record.is_pinned()));
                true
            })
            .await?;
            let mut gone = 0;
            for stored in &meant {
                gone += u64::from(self.forget(stored).await?);
            }
            Ok(gone)
        })
    }

    fn clear<'s>(&'s self, key: &'s Key) -> StoreFuture<'s, bool> {
        Box::pin(
            async move { done(self.0.changes.run(&script::CLEAR, &self.name(key), &[]).await) },
        )
    }

    /// Does nothing: the server expires records by itself.
    fn sweep(&self) -> StoreFuture<'_, u64> {
        Box::pin(std::future::ready(Ok(0)))
    }

    fn mark<'s>(&'s self, from: &'s [u8], to: &'s [u8]) -> StoreFuture<'s, Vec<u8>> {
        Box::pin(async move {
            match self.0.looks.run(&script::MARK, &self.mark_name(), &[from, to]).await {
                Ok(Value::BulkString(mark)) => Ok(mark),
                Ok(other) => Err(unexpected_reply(&other)),
                Err(error) => Err(store_error(error)),
            }
        })
    }

    fn check(&self) -> StoreFuture<'_, Vec<String>> {
        Box::pin(self.check_server())
    }
}

/// Reads the reply to a claim.
fn claimed(claim: &ClaimRequest, reply: Value) -> Result<Claimed, StoreError> {
    let parts: Vec<Value> = match reply {
        Value::Int(epoch) => return Ok(Claimed::Run(first(claim, epoch))),
        Value::Array(parts) => parts,
        other => return Err(unexpected_reply(&other)),
    };
    let Some(Value::BulkString(what)) = parts.first() else { return Err(unexpected_reply(&parts)) };
    let stored = |bytes: &[u8], now: i64| {
        let stored = layout::read(&claim.key, bytes, from(now))?;
        stored.map(Box::new).ok_or_else(layout::unreadable)
    };
    match (&what[..], &parts[1..]) {
        (
            b"run",
            [Value::Int(now), Value::Int(epoch), Value::Int(left), Value::Int(runs), before],
        ) => {
            let before = match before {
                Value::BulkString(bytes) => Some(before_of(&claim.key, bytes, from(*now))?),
                _ => None,
            };
            Ok(Claimed::Run(Grant {
                token: Token { epoch: from(*epoch), owner: claim.owner },
                lease_left: from(*left),
                runs: u32::try_from(*runs).unwrap_or(u32::MAX),
                before,
            }))
        }
        (
            b"busy",
            [Value::Int(epoch), Value::BulkString(owner), Value::Int(version), Value::Int(left)],
        ) => {
            let owner = owner.as_slice().try_into().map_err(|_| unexpected_reply(&parts))?;
            let token = Token { epoch: from(*epoch), owner: u64::from_be_bytes(owner) };
            let seen = Seen { token, version: from(*version) };
            Ok(Claimed::Busy { seen, lease_left: from(*left) })
        }
        (b"settled", [Value::Int(now), Value::BulkString(bytes)]) => {
            Ok(Claimed::Settled(stored(bytes, *now)?))
        }
        (b"unknown", [Value::Int(now), Value::BulkString(bytes)]) => {
            Ok(Claimed::Unknown(stored(bytes, *now)?))
        }
        (b"conflict", []) => Ok(Claimed::Conflict),
        (b"unreadable", []) => Err(layout::unreadable()),
        _ => Err(unexpected_reply(&parts)),
    }
}

/// The grant for a new key.
fn first(claim: &ClaimRequest, epoch: i64) -> Grant {
    let token = Token { epoch: from(epoch), owner: claim.owner };
    Grant { token, lease_left: bounded(claim.ttls.inflight), runs: 1, before: None }
}

/// The state of a record before it was claimed again.
fn before_of(key: &Key, bytes: &[u8], now: Millis) -> Result<Box<Before>, StoreError> {
    let mut stored = layout::decode(key, bytes, now).ok_or_else(layout::unreadable)?;
    stored.record.expire(now);
    let (claimed_at, changed_at) = (stored.record.claimed_at, stored.record.changed_at);
    Ok(Box::new(Before { state: stored.record.state, claimed_at, changed_at }))
}
