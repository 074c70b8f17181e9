//! A client on a process's standard input and output.
use super::{Call, Era, Seen, WAITS, hello, modern};
use serde_json::{Value, json};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, Command, Stdio as Pipe},
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    thread,
};

#[derive(Debug)]
pub(crate) struct Stdio {
    pub(crate) child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    era: Era,
    last_id: u32,
}

impl Stdio {
    /// Starts the process without a word to it.
    pub(crate) fn spawn(mut command: Command, era: Era) -> Self {
        let mut child = command.stdin(Pipe::piped()).stdout(Pipe::piped()).spawn().unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (send, lines) = channel();
        thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, input, lines, era, last_id: 0 }
    }

    /// Starts it, and reads the list of tools.
    pub(crate) fn open(command: Command, era: Era) -> Self {
        let mut client = Self::spawn(command, era);
        let seen = client.begin();
        assert!(matches!(&seen, Seen::Answer(answer) if answer["result"].is_object()), "{seen:?}");
        let params = client.params(json!({}));
        let seen = client.request("tools/list", params);
        assert!(seen.is_success(), "{seen:?}");
        client
    }

    pub(crate) fn begin(&mut self) -> Seen {
        if self.era == Era::Modern {
            let params = self.params(json!({}));
            return self.request("server/discover", params);
        }
        let seen = self.request("initialize", hello());
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        seen
    }

    fn params(&self, mut params: Value) -> Value {
        if self.era == Era::Modern {
            modern(&mut params["_meta"]);
        }
        params
    }

    pub(crate) fn once(&mut self, call: &Call) -> Seen {
        self.request("tools/call", call.params(self.era))
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Seen {
        let id = self.begin_request(method, params);
        self.answer(id)
    }

    /// Sends a call and does not wait; its id.
    pub(crate) fn begin_call(&mut self, call: &Call) -> u32 {
        self.begin_request("tools/call", call.params(self.era))
    }

    pub(crate) fn begin_request(&mut self, method: &str, params: Value) -> u32 {
        self.last_id += 1;
        self.send(
            &json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }),
        );
        self.last_id
    }

    /// Waits for the answer to a request.
    pub(crate) fn answer(&mut self, id: u32) -> Seen {
        loop {
            match self.lines.recv_timeout(WAITS) {
                Ok(line) => match serde_json::from_str::<Value>(&line) {
                    Ok(answer) if answer.get("method").is_none() && answer["id"] == id => {
                        return Seen::Answer(answer);
                    }
                    Ok(_) => {}
                    Err(_) => return Seen::Unreadable(line),
                },
                Err(RecvTimeoutError::Timeout) => return Seen::Hung,
                Err(RecvTimeoutError::Disconnected) => return Seen::Cut,
            }
        }
    }

    /// Sends a request under an id of the caller's, and waits for its answer.
    pub(crate) fn request_as(&mut self, id: u32, call: &Call) -> Seen {
        let params = call.params(self.era);
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }));
        self.answer(id)
    }

    pub(crate) fn send(&mut self, message: &Value) {
        // One that has ended is seen by its answer.
        let _ = writeln!(self.input.as_mut().unwrap(), "{message}");
    }
}

impl Stdio {
    /// Closes the standard input of the process, and waits for its end.
    pub(crate) fn close(mut self) {
        self.input = None;
        self.child.wait().unwrap();
    }
}

impl Drop for Stdio {
    fn drop(&mut self) {
        self.input = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
