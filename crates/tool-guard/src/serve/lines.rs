//! Requests and answers as lines of JSON on standard input and output.
use super::guard::{Cancel, Guard, request};
use crate::{
    doors::stdio,
    front::listener::GRACE,
    wire::lines::{Item, LineReader, Lines},
};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _};
use std::{io, pin::pin, sync::Arc};
use tokio::{
    io::AsyncWriteExt as _,
    select,
    sync::{Semaphore, mpsc},
    time::timeout,
};
use tr_core::{Json, call::CallContext, one_line};

/// How many calls run at a time; more are not read.
const AT_ONCE: u32 = 1_000;
/// How many answers wait to be written.
const WAITING: usize = 64;

/// Answers lines until standard input ends, or `ended`; then calls that run may end.
pub(super) async fn serve(
    guard: Guard,
    most: usize,
    ended: impl Future<Output = u8>,
) -> io::Result<Option<u8>> {
    let mut lines = LineReader::new(stdio::input()?, Lines::new(most + 1));
    let mut output = stdio::output()?;
    let (answers, mut waiting) = mpsc::channel::<Json>(WAITING);
    let writer = tokio::spawn(async move {
        while let Some(answer) = waiting.recv().await {
            let line = format!("{}\n", one_line(answer.get()));
            // Who does not read gets no answers; the calls go on.
            if output.write_all(line.as_bytes()).await.is_err() || output.flush().await.is_err() {
                return;
            }
        }
    });
    let places = Arc::new(Semaphore::new(AT_ONCE as usize));
    let mut ended = pin!(ended);
    let signal = 'reading: loop {
        let item = select! {
            signal = &mut ended => break Some(signal),
            item = lines.next() => item,
        };
        let several = match item {
            None => break None,
            Some(Item::Line(line) | Item::Part(line)) => line,
            // Answered as one that is too long.
            Some(Item::Oversized(long)) => Bytes::from(vec![b' '; long.bytes.min(most + 1)]),
        };
        for line in each(&several) {
            let work = async {
                if let Ok(order) = serde_json::from_slice::<Cancel>(&line) {
                    let answer = guard.cancel(order, CallContext::default());
                    let _ = answers.send(answer.into()).await;
                    return;
                }
                let place = places.clone().acquire_owned().await.expect("never closed");
                let mut call = Box::pin(guard.tools.answers(request(line, CallContext::default())));
                // It begins here, so that a line after it can cancel it.
                let first = call.next().now_or_never();
                let answers = answers.clone();
                tokio::spawn(async move {
                    let mut next = match first {
                        Some(answer) => answer,
                        None => call.next().await,
                    };
                    while let Some(answer) = next {
                        if answers.send(answer.to_json()).await.is_err() {
                            return;
                        }
                        next = call.next().await;
                    }
                    drop(place);
                });
            };
            select! {
                signal = &mut ended => break 'reading Some(signal),
                () = work => {}
            }
        }
        if !lines.is_open() {
            break None;
        }
    };
    drop(answers);
    let mut finished = pin!(async {
        let _ = places.acquire_many(AT_ONCE).await;
        let _ = writer.await;
    });
    let signal = match signal {
        Some(signal) => signal,
        None => select! {
            () = &mut finished => return Ok(None),
            signal = &mut ended => signal,
        },
    };
    let _ = timeout(GRACE, finished).await;
    Ok(Some(signal))
}

/// The lines of an item, without those that are empty.
fn each(several: &Bytes) -> impl Iterator<Item = Bytes> {
    let lines = several
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty() || line.len() > 1024);
    lines.map(|line| several.slice_ref(line)).collect::<Vec<_>>().into_iter()
}
