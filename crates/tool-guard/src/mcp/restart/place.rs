//! A server that takes the place of the one before.
use super::{Greeted, Restarts};
use crate::mcp::{
    line_reader::LineReader,
    lines::Item,
    server::{self, Server},
};
use bytes::BytesMut;
use std::{future::Future, time::Duration};
use tokio::{
    process::ChildStdout,
    time::{Instant, sleep_until},
};

/// How the start of another server went.
pub(crate) enum Started {
    /// It takes the place of the one before; its output.
    Up(Box<LineReader<ChildStdout>>),
    /// It ended with this code.
    Crashed(Option<u8>),
    /// It is not the server before, or does not say that it is.
    Other,
    /// The guard is to end.
    Signal(u8),
}

/// The place of a server that crashed.
pub(crate) struct Place<'r, F> {
    pub(crate) restarts: &'r Restarts,
    /// The server that was started.
    pub(crate) server: &'r mut Server,
    /// The signal that ends the guard.
    pub(crate) ended: &'r mut F,
    /// How long the server may take to answer.
    pub(crate) timeout: Duration,
}

impl<F: Future<Output = u8> + Unpin> Place<'_, F> {
    /// Sends the client's own first line, and waits for the answer. What else the server says goes to
    /// `on_server`.
    pub(crate) async fn take(
        self,
        mut output: LineReader<ChildStdout>,
        mut on_server: impl FnMut(&Item),
    ) -> Started {
        let Self { restarts, server, ended, timeout } = self;
        let Some(hello) = restarts.hello() else { return Started::Up(Box::new(output)) };
        let mut unwritten = BytesMut::from(&hello[..]);
        let deadline = Instant::now() + timeout;
        loop {
            tokio::select! {
                biased;
                signal = &mut *ended => return Started::Signal(signal),
                wrote = server::write(&mut server.input, &mut unwritten), if !unwritten.is_empty() => {
                    if wrote.is_err() {
                        unwritten.clear();
                    }
                }
                Some(item) = output.next(), if output.is_open() => match restarts.greeted(&item) {
                    Greeted::Same => return Started::Up(Box::new(output)),
                    Greeted::Other => return Started::Other,
                    Greeted::No => on_server(&item),
                },
                code = server::exit(&mut server.supervisor) => return Started::Crashed(code),
                () = sleep_until(deadline) => return Started::Other,
            }
        }
    }
}
