//! Requests and answers as lines of JSON on standard input and output.
use super::guard::{Cancel, Guard, request};
use crate::mcp::{Input, Item, LineReader, Output};
use bytes::Bytes;
use futures_util::StreamExt as _;
use std::{io, pin::pin, sync::Arc};
use tokio::{
    io::AsyncWriteExt as _,
    sync::{Semaphore, mpsc},
};
use tr_core::{Json, call::CallContext};

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
    let mut lines = LineReader::new(Input::open()?, most + 1);
    let mut output = Output::open()?;
    let (answers, mut waiting) = mpsc::channel::<Json>(WAITING);
    let writer = tokio::spawn(async move {
        while let Some(answer) = waiting.recv().await {
            let line = format!("{}\n", answer.get());
            // Who does not read gets no answers; the calls go on.
            if output.write_all(line.as_bytes()).await.is_err() || output.flush().await.is_err() {
                return;
            }
        }
    });
    let places = Arc::new(Semaphore::new(AT_ONCE as usize));
    let mut ended = pin!(ended);
    let signal = loop {
        let place = places.clone().acquire_owned().await.expect("never closed");
        let item = tokio::select! {
            signal = &mut ended => break Some(signal),
            item = lines.next() => item,
        };
        let several = match item {
            None => break None,
            Some(Item::Line(line) | Item::Part(line)) => line,
            // Answered as one that is too long.
            Some(Item::Oversized(long)) => Bytes::from(vec![b' '; long.bytes.min(most + 1)]),
        };
        let guard = guard.clone();
        let answers = answers.clone();
        tokio::spawn(async move {
            for line in each(&several) {
                answer(&guard, line, &answers).await;
            }
            drop(place);
        });
        if !lines.is_open() {
            break None;
        }
    };
    drop(answers);
    let _ = places.acquire_many(AT_ONCE).await;
    let _ = writer.await;
    Ok(signal)
}

/// The lines of an item, without those that are empty.
fn each(several: &Bytes) -> impl Iterator<Item = Bytes> {
    let lines = several
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.trim_ascii().is_empty() || line.len() > 1024);
    lines.map(|line| several.slice_ref(line)).collect::<Vec<_>>().into_iter()
}

async fn answer(guard: &Guard, line: Bytes, to: &mpsc::Sender<Json>) {
    if let Ok(order) = serde_json::from_slice::<Cancel>(&line) {
        let _ = to.send(guard.cancel(order, CallContext::default()).into()).await;
        return;
    }
    let mut answers = pin!(guard.tools.answers(request(line, CallContext::default())));
    while let Some(answer) = answers.next().await {
        if to.send(answer.to_json()).await.is_err() {
            return;
        }
    }
}
