//! A collector of OpenTelemetry that counts the calls among the spans that it is sent.
use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
};

/// A span's name as protobuf has it: the field's number and type, the length, the text.
const CALL: &[u8] = b"\x2a\x0etool_execution";

pub(super) struct Collector {
    pub(super) endpoint: String,
    calls: Arc<AtomicU64>,
}

impl Collector {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap());
        let calls = Arc::new(AtomicU64::new(0));
        let counted = calls.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let counted = counted.clone();
                thread::spawn(move || serve(&stream, &counted));
            }
        });
        Self { endpoint, calls }
    }

    /// The spans of calls so far.
    pub(super) fn calls(&self) -> u64 {
        self.calls.load(Relaxed)
    }
}

/// Answers each request once its spans are counted.
fn serve(mut stream: &TcpStream, calls: &AtomicU64) {
    let mut from = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), None);
        while from.read_line(&mut line).unwrap_or(0) > 2 {
            let header = line.to_ascii_lowercase();
            if let Some(said) = header.strip_prefix("content-length:") {
                length = Some(said.trim().parse().unwrap());
            }
            line.clear();
        }
        let Some(length) = length else { return };
        let mut body = vec![0; length];
        from.read_exact(&mut body).unwrap();
        let found = body.windows(CALL.len()).filter(|part| *part == CALL).count();
        calls.fetch_add(found as u64, Relaxed);
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    }
}
