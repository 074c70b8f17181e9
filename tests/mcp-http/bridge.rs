//! Passes its standard input to a port of this machine, and what comes from there to its standard output. It ends with
//! its connection.
use std::{
    env,
    io::{self, Read, Write},
    net::{Shutdown, TcpStream},
    process, thread,
};

fn main() -> io::Result<()> {
    let port = env::args().nth(1).and_then(|port| port.parse().ok());
    let server = TcpStream::connect(("127.0.0.1", port.unwrap_or_default()))?;
    let to_server = server.try_clone()?;
    thread::spawn(move || {
        let _ = pass(io::stdin().lock(), &to_server);
        let _ = to_server.shutdown(Shutdown::Write);
    });
    pass(&server, io::stdout().lock())?;
    process::exit(0)
}

/// `io::copy` would use splice(2), which locks the pipe while the socket has nothing: its reader hangs then, though it
/// asks not to wait.
fn pass(mut from: impl Read, mut to: impl Write) -> io::Result<()> {
    let mut bytes = [0; 65_536];
    loop {
        let size = from.read(&mut bytes)?;
        if size == 0 {
            return Ok(());
        }
        to.write_all(&bytes[..size])?;
        to.flush()?;
    }
}
