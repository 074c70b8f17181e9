//! A server's process, and the lines of its output.
use super::process::{self, LINGER, Server};
use crate::{
    engine::limits::BYTES_AT_ONCE,
    wire::lines::{Item, Lines},
};
use bytes::Buf;
use futures_util::{FutureExt as _, future::OptionFuture};
use std::{future::pending, io};
use tokio::{
    io::AsyncReadExt as _,
    net::unix::pipe,
    time::{Instant, sleep_until},
};

/// A server's process on pipes.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) server: Server,
    /// `None` after its end.
    output: Option<pipe::Receiver>,
    pub(super) lines: Lines,
    /// Whether it has said anything.
    pub(crate) heard: bool,
    /// Its exit code, if it has one, once it has exited.
    pub(crate) exited: Option<Option<u8>>,
    /// When the output of a server that has exited counts as ended.
    silent_at: Option<Instant>,
}

/// What happened.
#[derive(Debug)]
pub(crate) enum PipeEvent {
    /// So many bytes were written to it.
    Wrote(usize),
    /// Its input is closed, and nothing more is written; its output may still hold answers.
    NotWritten,
    /// Its output was read: see [`Pipes::buffered`].
    Read,
    /// Its output has ended; the last line may be [buffered](Pipes::buffered).
    Ended,
    /// It has exited; its output may go on.
    Exited,
}

impl Pipes {
    /// # Errors
    /// If its output cannot be read.
    pub(crate) fn new(mut server: Server, lines: Lines) -> io::Result<Self> {
        let output =
            server.take_output().into_owned_fd().and_then(pipe::Receiver::from_owned_fd)?;
        let output = Some(output);
        Ok(Self { server, output, lines, heard: false, exited: None, silent_at: None })
    }

    /// Waits until something happened: writes some of `unwritten`, and reads if that `reads`. Dropping it loses nothing.
    pub(crate) async fn next(&mut self, unwritten: &mut impl Buf, reads: bool) -> PipeEvent {
        let Self { server, output, exited, silent_at, .. } = self;
        let output = output.as_ref().filter(|_| reads);
        let readable = OptionFuture::from(output.map(pipe::Receiver::readable));
        tokio::select! {
            biased;
            wrote = process::write(&mut server.input, unwritten), if unwritten.has_remaining() => match wrote {
                Ok(bytes) => PipeEvent::Wrote(bytes),
                Err(_) => {
                    server.close_input();
                    PipeEvent::NotWritten
                }
            },
            Some(ready) = readable => match ready {
                Ok(()) => self.read(),
                Err(_) => self.end_output(),
            },
            code = process::exit(&mut server.supervisor), if exited.is_none() => {
                *exited = Some(code);
                *silent_at = Some(Instant::now() + LINGER);
                PipeEvent::Exited
            }
            Some(()) = OptionFuture::from(silent_at.map(sleep_until)), if output.is_some() => self.end_output(),
            else => pending().await,
        }
    }

    /// Reads what there is, up to a limit.
    fn read(&mut self) -> PipeEvent {
        let Some(output) = &mut self.output else { return PipeEvent::Ended };
        let mut bytes = 0;
        while bytes < BYTES_AT_ONCE {
            // Unlike `try_read_buf`, it does not ask once more after a read that did not fill the buffer.
            match output.read_buf(self.lines.buffer()).now_or_never() {
                Some(Ok(read @ 1..)) => bytes += read,
                Some(_) => return self.end_output(),
                None => break,
            }
        }
        if self.exited.is_some() {
            self.silent_at = Some(Instant::now() + LINGER);
        }
        PipeEvent::Read
    }

    /// Reads no more.
    pub(crate) fn end_output(&mut self) -> PipeEvent {
        self.output = None;
        PipeEvent::Ended
    }

    /// The next item of what was read.
    pub(crate) fn buffered(&mut self) -> Option<Item> {
        let rest = |lines: &mut Lines| if self.output.is_none() { lines.finish() } else { None };
        let item = self.lines.next().or_else(|| rest(&mut self.lines));
        self.heard |= item.is_some();
        item
    }

    /// Whether there may be more output.
    pub(crate) const fn is_open(&self) -> bool {
        self.output.is_some()
    }
}
