//! Executes admin requests and logs them.
use super::{
    answer::Answer,
    order::{BreakerAction, FlushTarget, Order, Reasoned},
    view,
};
use crate::{ToolStack, config::Reloaded};
use http::StatusCode;
use serde_json::json;
use std::{net::SocketAddr, sync::Arc};
use tr_core::{
    KeyRef, ToolOutcome,
    canonical::{FingerprintKey, Key},
};
use tr_idempotency::{Filter, Resolution, Settlement, store::StoreError};
use tr_telemetry::{
    TARGET,
    redact::{Redact, Redactor},
};

/// Reads the configuration again, or says what is wrong with it.
pub(super) type Reload = Arc<dyn Fn() -> Result<Reloaded, String> + Send + Sync>;

/// Executes a request.
pub(super) async fn act(
    stack: &ToolStack,
    reload: Option<&Reload>,
    (action, order, why): Reasoned,
    peer: Option<SocketAddr>,
) -> Answer {
    let subject = subject(&order);
    let why = why.unwrap_or_default();
    let done = match order {
        Order::Breaker { name, what } => Ok(breaker(stack, &name, what)),
        Order::Flush { target, confirm } => flush(stack, &target, confirm).await,
        Order::Settle { key, epoch, settled_as, force } => {
            let by = peer.map_or("unknown address".into(), |peer| peer.to_string());
            let by = Settlement::new(&format!("admin endpoint, {by}"), &why);
            settle(stack, (&key, epoch), settled_as, force, by).await
        }
        Order::Switch { on } => {
            stack.kill_switch().set(on);
            Ok(Answer::ok(json!({ "on": on })))
        }
        Order::Reload => Ok(reloaded(reload)),
    };
    let answer = done.unwrap_or_else(|error| {
        Answer::error(StatusCode::BAD_GATEWAY, format!("record store: {error}"))
    });
    tracing::warn!(
        target: TARGET,
        event = "admin_change",
        action,
        subject,
        peer = peer.map(tracing::field::display),
        why = clean(&why),
        status = answer.status.as_u16(),
    );
    answer
}

/// A text for the log, without secrets.
fn clean(text: &str) -> String {
    Redactor::default().redact(text).into_owned()
}

/// The subject of a request for the log.
fn subject(order: &Order) -> String {
    let hash = |bytes: &[u8]| FingerprintKey::of_process().fingerprint(bytes).to_string();
    match order {
        Order::Breaker { name, .. } => clean(name),
        Order::Flush { target: FlushTarget::Key(key), .. } | Order::Settle { key, .. } => {
            hash(key.as_bytes())
        }
        Order::Flush { target: FlushTarget::Session(session), .. } => clean(session),
        Order::Flush { target: FlushTarget::Tool(tool), .. } => clean(tool),
        Order::Switch { on } => on.to_string(),
        Order::Reload => String::new(),
    }
}

fn reloaded(reload: Option<&Reload>) -> Answer {
    let Some(reload) = reload else {
        let why = "this program has no configuration file to reload";
        return Answer::error(StatusCode::NOT_FOUND, why);
    };
    match reload() {
        Ok(reloaded) => Answer::ok(json!({ "needsRestart": reloaded.needs_restart })),
        Err(why) => Answer::error(StatusCode::UNPROCESSABLE_ENTITY, why),
    }
}

fn breaker(stack: &ToolStack, name: &str, what: BreakerAction) -> Answer {
    let overflow = stack.breakers().overflow();
    let found = match name == overflow.name() {
        true => Some(overflow),
        // By name: the hash of a key with an action or a namespace is not that of its text.
        false => stack
            .breakers()
            .get(KeyRef::new(name))
            .or_else(|| stack.breakers().all().into_iter().find(|one| one.name() == name)),
    };
    let Some(breaker) = found else {
        let why = "no breaker has this name: GET lists the breakers";
        return Answer::error(StatusCode::NOT_FOUND, why);
    };
    match what {
        BreakerAction::Reset => breaker.reset(),
        BreakerAction::ForceOpen => breaker.force_open(),
        BreakerAction::Mode(mode) => breaker.set_mode(mode),
    }
    Answer::ok(view::breaker(&breaker))
}

async fn flush(
    stack: &ToolStack,
    target: &FlushTarget,
    confirm: Option<u64>,
) -> Result<Answer, StoreError> {
    let filter = match target {
        FlushTarget::Key(key) => Filter::Key(key),
        FlushTarget::Session(session) => Filter::Session(session),
        FlushTarget::Tool(tool) => Filter::Tool(tool),
    };
    let (records, store) = (stack.records(), stack.records().in_store());
    let count = match &store {
        Some(store) => store.count(filter).await?,
        None => records.count(filter) as u64,
    };
    match confirm {
        None => Ok(Answer::ok(json!({ "wouldFlush": count }))),
        Some(confirmed) if confirmed != count => Ok(Answer {
            status: StatusCode::CONFLICT,
            body: json!({ "error": "the number of records has changed: confirm the new one", "wouldFlush": count }),
        }),
        Some(_) => {
            let flushed = match &store {
                Some(store) => store.flush(filter).await?,
                None => records.flush(filter) as u64,
            };
            Ok(Answer::ok(json!({ "flushed": flushed })))
        }
    }
}

async fn settle(
    stack: &ToolStack,
    (key, epoch): (&Key, Option<u64>),
    settled_as: Resolution<ToolOutcome>,
    force: bool,
    by: Settlement,
) -> Result<Answer, StoreError> {
    let records = stack.records();
    if let (Resolution::DidNotRun, false, Some(store)) = (&settled_as, force, records.in_store())
        && let Some(record) = store.record(key).await?
        && epoch.is_none_or(|epoch| epoch == record.epoch)
        && let Some(why) = store.may_still_run(&record).await?.refusal()
    {
        let why = format!("{why}: end it first, or, if the call can no longer run, add `force`");
        return Ok(Answer::error(StatusCode::CONFLICT, why));
    }
    let settled = match records.in_store() {
        Some(store) => store.settle_by(key, epoch, settled_as, Some(by)).await?.is_ok(),
        None => epoch
            .or_else(|| records.epoch(key))
            .is_some_and(|epoch| records.settle_run(key, epoch, settled_as).is_ok()),
    };
    Ok(match settled {
        true => Answer::ok(json!({ "settled": true })),
        false => {
            let why =
                "no call of unknown outcome has this key and epoch: GET shows those that there are";
            Answer::error(StatusCode::NOT_FOUND, why)
        }
    })
}
