//! Sends one command over the server's own socket and reads the reply: for `Server::command`, and
//! for `start.rs`.

use super::value::{self, Value};
use crate::resp;
use std::{
    io::{self, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

/// How long a reply may take.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn ask<S: AsRef<[u8]>>(
    socket: &Path,
    password: Option<&str>,
    args: &[S],
) -> io::Result<Value> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    if let Some(password) = password {
        exchange(&mut stream, &["AUTH", password])?;
    }
    exchange(&mut stream, args)
}

fn exchange<S: AsRef<[u8]>>(stream: &mut UnixStream, args: &[S]) -> io::Result<Value> {
    stream.write_all(&value::command(args))?;
    let (mut reply, mut chunk) = (Vec::new(), [0; 16 * 1024]);
    while resp::frame_end(&reply) == Ok(None) {
        match stream.read(&mut chunk)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => reply.extend_from_slice(&chunk[..count]),
        }
    }
    match Value::read(&reply) {
        Some(Value::Error(error)) => Err(io::Error::other(error)),
        Some(value) => Ok(value),
        None => Err(io::Error::new(io::ErrorKind::InvalidData, "not a Redis reply")),
    }
}
