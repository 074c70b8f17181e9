//! The streams of hosts: lines in, answers out, each connection with a bound.
use super::table::Connection;
use crate::mcp::{Item, LineReader};
use std::{sync::Arc, time::Duration};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt as _},
    sync::{OwnedSemaphorePermit, Semaphore, mpsc},
    task::JoinHandle,
    time::timeout,
};

/// How many lines of a connection wait for their answers; more are not read.
const UNANSWERED: usize = 1_000;
/// How many lines wait to be looked at, of all connections.
pub(super) const WAITING: usize = 64;
/// How long a host may read nothing of what is written to it.
const STALLED: Duration = Duration::from_secs(30);

/// What happens on a connection.
#[derive(Debug)]
pub(super) enum StreamEvent {
    /// A host has connected, and reads answers from this channel.
    Opened(Connection, Answers),
    /// A line, or what is known of one that is too long.
    Line(Connection, Item, Place),
    /// The host has closed its side, or does not read.
    Closed(Connection),
}

/// A place among the lines that are not answered, until it is dropped.
pub(super) type Place = OwnedSemaphorePermit;

/// The answers of a connection. Each line has a place, so they are bounded.
pub(super) type Answers = mpsc::UnboundedSender<(String, Option<Place>)>;

/// Where connections report.
pub(super) type EventSender = mpsc::Sender<StreamEvent>;

/// Carries the lines and answers of a connection, and reports to `events`. The result ends once the host has all
/// answers, or reads none.
pub(super) fn serve(
    events: EventSender,
    connection: Connection,
    input: impl AsyncRead + Unpin + Send + 'static,
    mut output: impl AsyncWrite + Unpin + Send + 'static,
    max_line: usize,
) -> JoinHandle<()> {
    let (answers, mut waiting) = mpsc::unbounded_channel::<(String, Option<Place>)>();
    let reader = tokio::spawn(async move {
        let places = Arc::new(Semaphore::new(UNANSWERED));
        let mut lines = LineReader::new(input, max_line);
        if events.send(StreamEvent::Opened(connection, answers)).await.is_err() {
            return;
        }
        while lines.is_open() {
            let Some(item) = lines.next().await else { break };
            if matches!(&item, Item::Line(line) if line.trim_ascii().is_empty()) {
                continue;
            }
            let place = places.clone().acquire_owned().await.expect("never closed");
            if events.send(StreamEvent::Line(connection, item, place)).await.is_err() {
                return;
            }
        }
        let _ = events.send(StreamEvent::Closed(connection)).await;
    });
    tokio::spawn(async move {
        while let Some((line, place)) = waiting.recv().await {
            let written = timeout(STALLED, async {
                output.write_all(line.as_bytes()).await?;
                output.flush().await
            });
            if !matches!(written.await, Ok(Ok(()))) {
                break;
            }
            drop(place);
        }
        // A host that reads nothing is answered no more; its open calls may still end.
        drop(waiting);
        let _ = output.shutdown().await;
        drop(reader);
    })
}
