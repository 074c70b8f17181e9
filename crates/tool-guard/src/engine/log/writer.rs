//! A thread that writes lines: who reads them may be slow, or read nothing, and must not hold up the guard.
use std::{
    io::{self, Write},
    sync::mpsc::{Receiver, SyncSender, channel, sync_channel},
    thread,
    time::Duration,
};

/// How many lines wait to be written. What comes then is lost.
const WAITING: usize = 2_048;

/// For how long lines gather after a write: to wake a thread for each of them costs more than to guard a call.
const GATHER: Duration = Duration::from_millis(5);

/// How long the last lines may take.
const AT_THE_END: Duration = Duration::from_secs(1);

/// Takes lines, and never waits.
#[derive(Clone, Debug)]
pub(super) struct Lines(SyncSender<Vec<u8>>);

/// Once it is dropped, all that waits has been written, as far as it is read in time.
#[derive(Debug)]
pub(crate) struct Written(Lines, Receiver<()>);

/// Starts a thread that writes to `out`.
pub(super) fn start(mut out: impl Write + Send + 'static) -> io::Result<(Lines, Written)> {
    let (sender, waiting) = sync_channel::<Vec<u8>>(WAITING);
    let (ends, end) = channel();
    let write = move || {
        let mut is_over = false;
        while !is_over && let Ok(mut text) = waiting.recv() {
            is_over = text.is_empty();
            for line in waiting.try_iter() {
                is_over |= line.is_empty();
                text.extend(line);
            }
            if out.write_all(&text).is_err() {
                // What cannot be written is lost, and the next line is one of its own.
                let _ = out.write_all(b"\n");
            }
            thread::park_timeout(GATHER);
        }
        drop(ends);
    };
    thread::Builder::new().name("log".into()).spawn(write)?;
    let lines = Lines(sender);
    Ok((lines.clone(), Written(lines, end)))
}

impl Lines {
    /// Has a line written; it is lost if too many wait.
    pub(super) fn send(&self, line: &[u8]) {
        let _ = self.0.try_send(line.to_vec());
    }
}

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.send(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Written {
    fn drop(&mut self) {
        // An empty line is the last. Where too many wait, there is room once some are written.
        let is_full = |_: &u32| self.0.0.try_send(Vec::new()).is_err();
        (0..100).take_while(is_full).for_each(|_| thread::park_timeout(GATHER));
        let _ = self.1.recv_timeout(AT_THE_END);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, pipe};

    #[test]
    fn all_lines_are_written_in_their_order_by_the_end() {
        let (mut reads, writes) = pipe().unwrap();
        let (mut lines, written) = start(writes).unwrap();
        for line in 0..WAITING - 1 {
            lines.write_all(format!("{line}\n").as_bytes()).unwrap();
        }
        drop(written);
        let mut text = String::new();
        reads.read_to_string(&mut text).unwrap();
        assert!(text.lines().map(|line| line.parse::<usize>().unwrap()).eq(0..WAITING - 1));
    }

    #[test]
    fn a_reader_that_reads_nothing_holds_up_no_line() {
        let (_reads, writes) = pipe().unwrap();
        let (mut lines, written) = start(writes).unwrap();
        for _ in 0..4 * WAITING {
            lines.write_all(&[b'x'; 1_000]).unwrap();
        }
        drop(written);
    }
}
