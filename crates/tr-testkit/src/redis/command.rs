//! Commands to a Redis server, over its own socket.

use crate::resp::Value;
use std::{
    io::{self, Read as _, Write as _},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

/// A command's bytes.
fn command<S: AsRef<[u8]>>(args: &[S]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", args.len()).into_bytes();
    for arg in args {
        let arg = arg.as_ref();
        bytes.extend_from_slice(format!("${}\r\n", arg.len()).as_bytes());
        bytes.extend_from_slice(arg);
        bytes.extend_from_slice(b"\r\n");
    }
    bytes
}

/// How long a reply may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends one command and reads the reply.
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
    stream.write_all(&command(args))?;
    let (mut reply, mut chunk) = (Vec::new(), [0; 16 * 1024]);
    let invalid = |_| io::Error::new(io::ErrorKind::InvalidData, "not a Redis reply");
    loop {
        match Value::first(&reply).map_err(invalid)? {
            Some((Value::Error(error), _)) => return Err(io::Error::other(error)),
            Some((value, _)) => return Ok(value),
            None => match stream.read(&mut chunk)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => reply.extend_from_slice(&chunk[..count]),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_an_array_of_texts() {
        assert_eq!(command(&["GET", "é"]), "*2\r\n$3\r\nGET\r\n$2\r\né\r\n".as_bytes());
    }
}
