//! Our own standard input and output, without an extra thread if the system allows it.
use std::{
    io,
    os::fd::{AsFd, OwnedFd},
    pin::Pin,
    task::{Context, Poll},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf, Stdin, Stdout},
    net::{UnixStream, unix::pipe},
};

/// Standard input.
#[derive(Debug)]
pub(crate) enum Input {
    Pipe(pipe::Receiver),
    /// Node starts its children with sockets.
    Socket(UnixStream),
    /// A file or a terminal.
    Other(Stdin),
}

/// Standard output.
#[derive(Debug)]
pub(crate) enum Output {
    Pipe(pipe::Sender),
    Socket(UnixStream),
    Other(Stdout),
}

impl Input {
    pub(crate) fn open() -> io::Result<Self> {
        let fd = io::stdin().as_fd().try_clone_to_owned()?;
        Ok(match kind(&fd)? {
            Kind::Pipe => Self::Pipe(pipe::Receiver::from_owned_fd(fd)?),
            Kind::Socket => Self::Socket(socket(fd)?),
            Kind::Other => Self::Other(tokio::io::stdin()),
        })
    }
}

impl Output {
    pub(crate) fn open() -> io::Result<Self> {
        let fd = io::stdout().as_fd().try_clone_to_owned()?;
        Ok(match kind(&fd)? {
            Kind::Pipe => Self::Pipe(pipe::Sender::from_owned_fd(fd)?),
            Kind::Socket => Self::Socket(socket(fd)?),
            Kind::Other => Self::Other(tokio::io::stdout()),
        })
    }
}

enum Kind {
    Pipe,
    Socket,
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

impl AsyncRead for Input {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(inner) => Pin::new(inner).poll_read(cx, buf),
            Self::Socket(inner) => Pin::new(inner).poll_read(cx, buf),
            Self::Other(inner) => Pin::new(inner).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Output {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Pipe(inner) => Pin::new(inner).poll_write(cx, buf),
            Self::Socket(inner) => Pin::new(inner).poll_write(cx, buf),
            Self::Other(inner) => Pin::new(inner).poll_write(cx, buf),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(inner) => Pin::new(inner).poll_flush(cx),
            Self::Socket(inner) => Pin::new(inner).poll_flush(cx),
            Self::Other(inner) => Pin::new(inner).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Pipe(inner) => Pin::new(inner).poll_shutdown(cx),
            Self::Socket(inner) => Pin::new(inner).poll_shutdown(cx),
            Self::Other(inner) => Pin::new(inner).poll_shutdown(cx),
        }
    }
}
