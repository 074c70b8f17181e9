//! Pages for the servers that read the web.
use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
};

/// A site on this machine, which is there until the process ends.
pub(crate) struct Pages {
    pub(crate) address: SocketAddr,
    asked: Arc<AtomicU32>,
}

impl Pages {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&asked);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let count = Arc::clone(&count);
                // A browser opens connections that it does not use.
                thread::spawn(move || answer(&stream.unwrap(), &count));
            }
        });
        Self { address, asked }
    }

    /// As if the status had never been asked for.
    pub(crate) fn reset(&self) {
        self.asked.store(0, Ordering::Relaxed);
    }
}

fn answer(mut stream: &TcpStream, asked: &AtomicU32) {
    let mut lines = BufReader::new(stream).lines().map_while(Result::ok);
    let Some(request) = lines.next() else { return };
    lines.find(String::is_empty);
    let (status, body) = match request.split(' ').nth(1) {
        Some("/page") => ("200 OK", "The page: text.".to_owned()),
        // It differs each time, as that of a job does.
        Some("/status") => {
            let done = asked.fetch_add(1, Ordering::Relaxed);
            ("200 OK", format!(r#"{{"job":7,"done":{done},"of":9}}"#))
        }
        // A browser asks for it by itself.
        Some("/favicon.ico") => ("204 No Content", String::new()),
        _ => ("404 Not Found", "not found".to_owned()),
    };
    let length = body.len();
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
}
