//! Our own standard input and output, without an extra thread if the system allows it.
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{UnixStream, unix::pipe},
};

/// Standard input.
pub(crate) type Input = Box<dyn AsyncRead + Send + Unpin>;

/// Standard output.
pub(crate) type Output = Box<dyn AsyncWrite + Send + Unpin>;

/// Opens standard input.
pub(crate) fn input() -> io::Result<Input> {
    let fd = io::stdin().as_fd().try_clone_to_owned()?;
    Ok(match kind(&fd)? {
        Kind::Pipe => Box::new(pipe::Receiver::from_owned_fd(fd)?),
        Kind::Socket => Box::new(socket(fd)?),
        Kind::Other => Box::new(tokio::io::stdin()),
    })
}

/// Opens standard output.
pub(crate) fn output() -> io::Result<Output> {
    let fd = io::stdout().as_fd().try_clone_to_owned()?;
    Ok(match kind(&fd)? {
        Kind::Pipe => Box::new(pipe::Sender::from_owned_fd(fd)?),
        Kind::Socket => Box::new(socket(fd)?),
        Kind::Other => Box::new(tokio::io::stdout()),
    })
}

enum Kind {
    Pipe,
    /// Node starts its children with sockets.
    Socket,
    /// A file or a terminal.
    Other,
}

fn kind(fd: &OwnedFd) -> io::Result<Kind> {
    use rustix::fs::{FileType, fstat};
    Ok(match FileType::from_raw_mode(fstat(fd)?.st_mode) {
        FileType::Fifo => Kind::Pipe,
        FileType::Socket => Kind::Socket,
        _ => Kind::Other,
    })
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(fd);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}
