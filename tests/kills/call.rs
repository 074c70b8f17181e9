//! A payment with a stable ID, and what its client gets.
use fastrand::Rng;
use serde_json::{Value, json};

/// Waits of the server before and after it has paid: both are moments to be killed in.
const WAIT_US: u64 = 4_000;

/// One payment that is meant once.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) order: String,
    params: Value,
    /// The result that the client has read.
    pub(crate) read: Option<Value>,
    /// Whether it got the message that the payment may have been made.
    pub(crate) unknown: bool,
    /// What it was last told of a call that did not run.
    pub(crate) refused: Option<String>,
}

/// What a client makes of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The server's result.
    Paid(Value),
    /// It may have run; the record's short ID is named.
    Unknown,
    /// It did not run, and may be sent again.
    NotRun(String),
}

impl Call {
    pub(crate) fn random(rng: &mut Rng, order: String) -> Self {
        Self::of(rng.u8(1..4), rng, order)
    }

    /// A payment whose client gives it an ID, or, for 0, none.
    pub(crate) fn of(kind: u8, rng: &mut Rng, order: String) -> Self {
        let text = |rng: &mut Rng| (0..24).map(|_| rng.alphanumeric()).collect::<String>();
        let meta = match kind {
            0 => json!({}),
            1 => json!({ "idempotencyKey": order }),
            2 => json!({ "callId": format!("call_{:032x}", rng.u128(..)), "threadId": text(rng) }),
            _ => json!({ "claudecode/toolUseId": format!("toolu_{}", text(rng)) }),
        };
        let waits = (rng.u64(0..WAIT_US), rng.u64(0..WAIT_US));
        Self::new(order, &meta, waits)
    }

    /// A payment whose server waits so many microseconds before and after it.
    pub(crate) fn new(order: String, meta: &Value, (before, after): (u64, u64)) -> Self {
        let streams = after % 2 == 1;
        let arguments =
            json!({ "order": order, "before_us": before, "after_us": after, "streams": streams });
        let params = json!({ "name": "pay", "arguments": arguments, "_meta": meta });
        Self { order, params, read: None, unknown: false, refused: None }
    }

    /// The request under a JSON-RPC ID of its own.
    pub(crate) fn request(&self, id: u64) -> Value {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": self.params })
    }

    /// Whether its client gives it an ID.
    pub(crate) fn is_named(&self) -> bool {
        self.params["_meta"].as_object().is_some_and(|meta| !meta.is_empty())
    }

    /// How its client knows it in the end, if it does.
    pub(crate) fn end(&self) -> Option<&'static str> {
        match (&self.read, self.unknown) {
            (Some(_), false) => Some("paid"),
            (Some(_), true) => Some("unknown, then paid"),
            (None, true) => Some("unknown"),
            (None, false) => None,
        }
    }

    /// Takes an answer in, and says what is wrong with it.
    pub(crate) fn hear(&mut self, answer: &Answer) -> Result<(), String> {
        match (answer, &self.read) {
            (Answer::Paid(result), Some(read)) if result != read => {
                Err(format!("{}: it was answered {read}, then {result}", self.order))
            }
            (Answer::Paid(result), _) => {
                self.read = Some(result.clone());
                Ok(())
            }
            (Answer::Unknown | Answer::NotRun(_), Some(read)) => {
                Err(format!("{}: it was answered {read}, then {answer:?}", self.order))
            }
            (Answer::NotRun(_), None) if self.unknown => {
                Err(format!("{}: it may have run, then {answer:?}", self.order))
            }
            (Answer::NotRun(why), None) => {
                self.refused = Some(why.clone());
                Ok(())
            }
            (Answer::Unknown, None) => {
                self.unknown = true;
                Ok(())
            }
        }
    }
}

impl Answer {
    /// Reads the answer to a call; only the record of one with an ID is named.
    pub(crate) fn of(message: &Value, is_named: bool) -> Result<Self, String> {
        let result = &message["result"];
        let error = &result["_meta"]["tool-reliability/error"];
        let text = result["content"][0]["text"].as_str().unwrap_or_default();
        match (error["code"].as_str(), error["ran"].as_str()) {
            (None, None) if text.starts_with("paid ") => Ok(Self::Paid(result.clone())),
            (Some(_), Some("no")) => Ok(Self::NotRun(text.to_owned())),
            (Some(_), Some("unknown")) if !is_named || names_record(text) => Ok(Self::Unknown),
            _ => Err(format!("neither paid, nor not run, nor unknown with its record: {message}")),
        }
    }
}

/// `[record 3fa91c0be27d: …]`
fn names_record(text: &str) -> bool {
    let id = text.split_once("[record ").and_then(|(_, rest)| rest.split_once(':'));
    id.is_some_and(|(id, _)| id.len() == 12 && id.bytes().all(|byte| byte.is_ascii_hexdigit()))
}
