//! Our own standard input and output, without an extra thread if the system allows it.
use rustix::fs::{FileType, fstat};
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
        FileType::Fifo => Box::new(pipe::Receiver::from_owned_fd(fd)?),
        FileType::Socket => Box::new(socket(fd)?),
        // A file or a terminal.
        _ => Box::new(tokio::io::stdin()),
    })
}

/// Opens standard output.
pub(crate) fn output() -> io::Result<Output> {
    let fd = io::stdout().as_fd().try_clone_to_owned()?;
    Ok(match kind(&fd)? {
        FileType::Fifo => Box::new(pipe::Sender::from_owned_fd(fd)?),
        FileType::Socket => Box::new(socket(fd)?),
        _ => Box::new(tokio::io::stdout()),
    })
}

fn kind(fd: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(fstat(fd)?.st_mode))
}

/// Node starts its children with sockets.
fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(fd);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}
