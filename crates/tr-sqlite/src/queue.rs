//! The queue from many tasks to one thread.
use crate::{
    error::{Error, ErrorKind},
    job::Job,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
        mpsc::{Receiver, Sender, channel},
    },
    time::Duration,
};
use tokio::sync::oneshot;

enum Message {
    Job(Box<dyn Job>),
    /// Closes the queue after the jobs sent before; the sender is dropped then.
    Close(oneshot::Sender<()>),
}

/// The sending side. Bounded: jobs past the limit are refused.
#[derive(Clone, Debug)]
pub(crate) struct JobSender {
    sender: Sender<Message>,
    waiting: Arc<AtomicUsize>,
    limit: usize,
}

/// The receiving side, in the order of sending.
pub(crate) struct Queue {
    receiver: Receiver<Message>,
    waiting: Arc<AtomicUsize>,
    closed: Option<oneshot::Sender<()>>,
}

pub(crate) fn queue(limit: usize) -> (JobSender, Queue) {
    let (sender, receiver) = channel();
    let waiting = Arc::new(AtomicUsize::new(0));
    let job_sender = JobSender { sender, waiting: waiting.clone(), limit };
    (job_sender, Queue { receiver, waiting, closed: None })
}

impl JobSender {
    /// Sends a job, or ends it at once where too many wait.
    pub(crate) fn send(&self, job: Box<dyn Job>) {
        if self.waiting.fetch_add(1, Relaxed) >= self.limit {
            self.waiting.fetch_sub(1, Relaxed);
            return job.end(Err(&Error::new(ErrorKind::Overloaded)));
        }
        // If the receiver is gone, the job is dropped, and its future resolves to `Closed`.
        drop(self.sender.send(Message::Job(job)));
    }

    /// Resolves once all earlier jobs have run and the receiver is gone.
    pub(crate) async fn close(&self) {
        let (closing, closed) = oneshot::channel();
        drop(self.sender.send(Message::Close(closing)));
        // Resolves when the sender is dropped.
        drop(closed.await);
    }
}

impl Queue {
    /// Waits for the next job; `None` once the queue is closed.
    pub(crate) fn wait(&mut self) -> Option<Box<dyn Job>> {
        self.receive(|receiver| receiver.recv().ok())
    }

    /// The next job, if there is one within this time.
    pub(crate) fn wait_for(&mut self, time: Duration) -> Option<Box<dyn Job>> {
        self.receive(|receiver| receiver.recv_timeout(time).ok())
    }

    /// The next job, if there is one.
    pub(crate) fn poll(&mut self) -> Option<Box<dyn Job>> {
        self.receive(|receiver| receiver.try_recv().ok())
    }

    /// The number of waiting jobs.
    pub(crate) fn len(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    fn receive(
        &mut self,
        next: impl FnOnce(&Receiver<Message>) -> Option<Message>,
    ) -> Option<Box<dyn Job>> {
        if self.closed.is_some() {
            return None;
        }
        match next(&self.receiver)? {
            Message::Job(job) => {
                self.waiting.fetch_sub(1, Relaxed);
                Some(job)
            }
            Message::Close(closed) => {
                self.closed = Some(closed);
                None
            }
        }
    }
}
