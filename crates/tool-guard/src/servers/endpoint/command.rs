//! A tool that is a command: params are on its standard input, what it prints is its answer.
use super::answer::{MOST, content, send_lines, too_long};
use crate::{
    files::{in_path, is_program},
    secrets::without,
    servers::process::Server,
    supervise::NOT_STARTED,
};
use anyhow::bail;
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, stream::try_unfold};
use std::{ffi::OsString, io, path::Path, process::Stdio, sync::Arc};
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, copy, sink},
    try_join,
};
use tool_reliability::wire::Normaliser;
use tr_core::{BoxError, Capability, NotSent, OutcomeParts, Ran, ToolCall, ToolOutcome};

/// How much of what it prints as errors is kept, in bytes: the end.
const ERRORS: usize = 8 << 10;

/// Whether the program of a command can be found.
///
/// # Errors
/// If it cannot.
pub(super) fn check(command: &[Box<str>]) -> anyhow::Result<()> {
    let program = command.first().map_or("", |program| &**program);
    let found = match program.contains('/') {
        true => is_program(Path::new(program)),
        false => in_path(program).is_some(),
    };
    if !found {
        bail!("`command`: the program {program:?} is not there: install it, or give its full path");
    }
    Ok(())
}

/// The process of a call, under its supervisor. Dropped before its end, it is ended with its whole group.
struct Running(Server);

impl Drop for Running {
    fn drop(&mut self) {
        // `None` once it has been waited for.
        self.0.terminate();
    }
}

/// Runs a command, which does not get the variables that are `hidden`.
pub(super) async fn call(
    command: Arc<[OsString]>,
    hidden: Arc<[String]>,
    call: ToolCall,
) -> Result<ToolOutcome, BoxError> {
    let started = Server::start_with(&command, |supervisor| {
        supervisor.stderr(Stdio::piped());
        for name in &*hidden {
            supervisor.env_remove(name);
        }
    });
    let mut running = Running(started.map_err(NotSent::new)?);
    let mut input = running.0.input.take().expect("piped");
    let (output, child) = (running.0.take_output(), &mut running.0.supervisor);
    let errors = child.stderr.take().expect("piped");
    let params = call.parts().params.clone();
    let send = async move {
        // A program need not read its params.
        let _ = input.write_all(params.get().as_bytes()).await;
        let _ = input.shutdown().await;
        Ok(())
    };
    let streams = call.manifest().is_some_and(|tool| tool.can(Capability::Streaming));
    let mut sink = streams.then(|| call.chunk_sink());
    let read = async {
        match &mut sink {
            Some(sink) => send_lines(pieces(output), sink).await.map(|()| (Vec::new(), true)),
            None => Ok(first(output, MOST).await?),
        }
    };
    let errors = async { Ok(last(errors, ERRORS).await?) };
    let ended = async { Ok::<_, BoxError>(child.wait().await?) };
    let ((), (output, is_whole), errors, status) = match try_join!(send, read, errors, ended) {
        Ok(all) => all,
        Err(error) => {
            return Err(match sink {
                Some(sink) => sink.fail(error),
                None => error,
            });
        }
    };
    if status.success() && !is_whole {
        return Err(too_long(Ran::Yes).into());
    }
    let text = String::from_utf8_lossy(&output);
    if status.success() {
        let mut parts = OutcomeParts::default();
        parts.content = content(&text);
        let outcome = parts.into();
        return Ok(match sink {
            Some(sink) => sink.finish(outcome),
            None => outcome,
        });
    }
    let code = status.code().unwrap_or(-1);
    let failed = serde_json::json!({
        "exitCode": code, "stderr": without(&String::from_utf8_lossy(&errors)), "stdout": without(&text),
    });
    // Also where the stack does not search answers for failures.
    let mut outcome = Normaliser::default().judge(ToolOutcome::success(failed), call.manifest());
    let is_own = (0..NOT_STARTED.into()).contains(&code);
    if let Some(error) = &mut outcome.parts_mut().error
        && !is_own
    {
        // It was killed in its middle, or a shell or the supervisor could not start something.
        error.ran = Ran::Unknown;
    }
    Ok(outcome)
}

/// The bytes of a stream, as they come.
fn pieces(output: impl AsyncRead + Unpin) -> impl Stream<Item = io::Result<Bytes>> + Unpin {
    Box::pin(try_unfold(output, |mut output| async move {
        let mut part = BytesMut::with_capacity(64 << 10);
        let read = output.read_buf(&mut part).await?;
        Ok((read > 0).then(|| (part.freeze(), output)))
    }))
}

/// The beginning of a stream, which is read to its end, and whether that is all of it.
async fn first(mut stream: impl AsyncRead + Unpin, most: usize) -> io::Result<(Vec<u8>, bool)> {
    let mut kept = Vec::new();
    (&mut stream).take(most as u64).read_to_end(&mut kept).await?;
    let more = copy(&mut stream, &mut sink()).await?;
    Ok((kept, more == 0))
}

/// The end of a stream.
async fn last(mut stream: impl AsyncRead + Unpin, most: usize) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let mut part = vec![0; 4 << 10];
    loop {
        match stream.read(&mut part).await? {
            0 => return Ok(kept),
            read => {
                kept.extend_from_slice(&part[..read]);
                kept.drain(..kept.len().saturating_sub(most));
            }
        }
    }
}
