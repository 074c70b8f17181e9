//! The door without connections: requests in, posts and responses out.
use super::*;
use crate::{
    engine::{
        failure::Failure,
        options::Options,
        presence::Presence,
        server_event::{EventStream, Posted, ServerEvent},
    },
    front::{body::Answered, listener::Connection},
};
use clap::Parser;
use futures_util::stream;
use http_body_util::BodyExt as _;
use hyper::{
    HeaderMap, Response,
    header::{CONTENT_TYPE, HeaderValue},
};
use serde_json::Value;
use std::{collections::HashSet, sync::Mutex, time::Duration};
use tokio::{
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::{JoinHandle, yield_now},
    time::{advance, timeout},
};
use tr_core::{FailureInfo, Ran, Verdict};

mod left;
mod schedules;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    options: Options,
}

/// A server that does what the test says.
#[derive(Clone)]
struct Scripted {
    posts: UnboundedSender<Heared>,
    /// The sessions and credentials that it has accepted.
    accepted: Arc<Mutex<HashSet<Accepted>>>,
}

type Accepted = [Option<HeaderValue>; 2];

fn accepted(headers: &HeaderMap) -> Accepted {
    ["mcp-session-id", "authorization"].map(|name| headers.get(name).cloned())
}

/// A message that was posted, and where its answers go.
struct Heared {
    posted: Posted,
    say: UnboundedSender<ServerEvent>,
}

impl Heared {
    fn body(&self) -> Value {
        serde_json::from_slice(&self.posted.body).unwrap()
    }

    fn say(&self, heard: ServerEvent) {
        let _ = self.say.send(heard);
    }

    /// Answers as JSON.
    fn answer(&self, text: &str) {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, "application/json".parse().unwrap());
        headers.insert("x-theirs", "1".parse().unwrap());
        self.say(ServerEvent::Head(StatusCode::OK, headers));
        let line = result(&self.body()["id"], text);
        self.say(ServerEvent::Message { line: line.clone(), raw: line, answers: true });
    }

    fn fail(self, ran: Ran, verdict: Verdict) {
        self.say(ServerEvent::Failed(Failure::said(
            "gone",
            FailureInfo::new("gone", ran, verdict),
        )));
    }
}

fn result(id: &Value, text: &str) -> Bytes {
    format!(r#"{{ "jsonrpc":"2.0","id":{id}, "result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#).into()
}

impl Backend for Scripted {
    fn path(&self) -> &'static str {
        "/mcp"
    }

    fn has_answered(&self, head: &Parts) -> bool {
        lock(&self.accepted).contains(&accepted(&head.headers))
    }

    fn post(&self, posted: Posted, _: Option<&Presence>) -> EventStream {
        let (say, mut heard) = unbounded_channel();
        let _ = self.posts.send(Heared { posted, say });
        EventStream::of_sent(stream::poll_fn(move |cx| heard.poll_recv(cx)))
    }

    async fn other(&self, request: Request<Bytes>) -> Answered {
        respond(StatusCode::IM_A_TEAPOT, request.into_body())
    }
}

struct Bench {
    door: Arc<HttpDoor<Scripted>>,
    posts: UnboundedReceiver<Heared>,
}

impl Bench {
    async fn new() -> Self {
        Self::with(&["--records", "memory"]).await
    }

    async fn with(options: &[&str]) -> Self {
        let args = [&["mcp", "--log", "off"], options, &["server"]].concat();
        let options = Line::parse_from(args).options;
        let guard = Arc::new(Guard::new(&options, false).await.unwrap());
        let (sender, posts) = unbounded_channel();
        let server = Scripted { posts: sender, accepted: Arc::default() };
        Self { door: HttpDoor::new(guard, server, Access::default()), posts }
    }

    /// The server accepts a request with these headers.
    fn accept(&self, headers: &[(&'static str, &str)]) {
        let headers = headers.iter().map(|(name, value)| {
            (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
        });
        lock(&self.door.behind.accepted).insert(accepted(&headers.collect()));
    }

    fn send(
        &self,
        headers: &[(&'static str, &str)],
        body: impl Into<Bytes>,
    ) -> JoinHandle<Answered> {
        self.send_on(1, headers, body)
    }

    /// Sends on the connection with this number.
    fn send_on(
        &self,
        connection: u64,
        headers: &[(&'static str, &str)],
        body: impl Into<Bytes>,
    ) -> JoinHandle<Answered> {
        let mut request =
            Request::post("/mcp").header("accept", "application/json, text/event-stream");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.extension(Connection(connection));
        let (head, ()) = request.body(()).unwrap().into_parts();
        let (inside, body) = (self.door.clone(), body.into());
        tokio::spawn(async move { inside.message(head, body).await })
    }

    async fn posted(&mut self) -> Heared {
        timeout(Duration::from_secs(1), self.posts.recv()).await.expect("posted").unwrap()
    }

    async fn nothing_posted(&mut self) {
        for _ in 0..20 {
            yield_now().await;
        }
        assert!(self.posts.try_recv().is_err());
    }

    /// Lets a list pass that says `read` only reads.
    async fn list(&mut self) {
        let answer = self.send(&[], r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        let line = Bytes::from_static(br#"{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"read","annotations":{"readOnlyHint":true}},{"name":"pay"}]}}"#);
        let raw = line.clone();
        self.posted().await.say(ServerEvent::Message { line, raw: raw.clone(), answers: false });
        assert_eq!(text(answer).await.1, raw);
    }
}

async fn text(answer: JoinHandle<Answered>) -> (StatusCode, String) {
    let answer = timeout(Duration::from_secs(600), answer).await.expect("an answer").unwrap();
    let status = answer.status();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

fn call(id: &str, tool: &str, meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0", "id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"amount":5}},"_meta":{{{meta}}}}}}}"#
    )
}

const KEYED: &str = r#""idempotencyKey":"k""#;
/// A strong id.
const NAMED: &str = r#""claudecode/toolUseId":"toolu_01A09q90qw90lq917835lq9""#;

#[tokio::test(start_paused = true)]
async fn an_answer_passes_as_it_came() {
    let mut bench = Bench::new().await;
    let sent = call("7", "pay", "");
    let answer = bench.send(&[("mcp-session-id", "s")], sent.clone());
    let post = bench.posted().await;
    assert_eq!(post.posted.body, sent);
    assert_eq!(post.posted.headers["mcp-session-id"], "s");
    assert!(post.posted.attempt.as_ref().unwrap().is_mutating);
    post.answer("paid");
    let answer = timeout(Duration::from_secs(1), answer).await.unwrap().unwrap();
    assert_eq!(answer.headers()["x-theirs"], "1");
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(body, result(&7.into(), "paid"));
}

#[tokio::test(start_paused = true)]
async fn events_pass_as_they_came_and_the_answer_ends_the_stream() {
    let mut bench = Bench::new().await;
    let answer = bench.send(&[], call("7", "pay", r#""progressToken":"p""#));
    let post = bench.posted().await;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, "text/event-stream".parse().unwrap());
    post.say(ServerEvent::Head(StatusCode::OK, headers));
    post.say(ServerEvent::Between(Bytes::from_static(b"id: 1\ndata:\n\n")));
    let note = r#"{"method":"notifications/progress","params":{"progressToken":"p","progress":1}}"#;
    let done = result(&7.into(), "paid");
    for line in [Bytes::from(note), done.clone()] {
        let raw = [b"id: 2\r\ndata: ", &line[..], b"\r\n\r\n"].concat().into();
        post.say(ServerEvent::Message { line, raw, answers: false });
    }
    let done = String::from_utf8(done.to_vec()).unwrap();
    let expected =
        format!("id: 1\ndata:\n\nid: 2\r\ndata: {note}\r\n\r\nid: 2\r\ndata: {done}\r\n\r\n");
    assert_eq!(text(answer).await, (StatusCode::OK, expected));
}

#[tokio::test(start_paused = true)]
async fn a_refusal_passes_and_the_same_call_runs_then() {
    let mut bench = Bench::new().await;
    let answer = bench.send(&[], call("7", "pay", KEYED));
    let refusal = Response::builder().status(401).body(Bytes::from_static(b"who?")).unwrap();
    bench.posted().await.say(ServerEvent::Refused(Box::new(refusal)));
    assert_eq!(text(answer).await, (StatusCode::UNAUTHORIZED, "who?".into()));
    // The end of a call that did not run is forgotten at once.
    advance(Duration::from_millis(2)).await;
    let again = bench.send(&[], call("8", "pay", KEYED));
    bench.posted().await.answer("paid");
    assert!(text(again).await.1.contains("paid"));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_may_have_run_is_said_in_band_and_bars_its_equals() {
    let mut bench = Bench::new().await;
    let answer = bench.send(&[], call("7", "pay", ""));
    bench.posted().await.fail(Ran::Unknown, Verdict::TRANSIENT);
    let (status, said) = text(answer).await;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(
        (status, &said["id"], &said["result"]["isError"]),
        (StatusCode::OK, &7.into(), &true.into())
    );
    assert_eq!(said["result"]["_meta"]["tool-reliability/error"]["ran"], "unknown");
    let again = bench.send(&[], call("8", "pay", ""));
    assert!(text(again).await.1.contains("outcome_unknown"));
    bench.nothing_posted().await;
}

#[tokio::test(start_paused = true)]
async fn a_read_is_repeated_and_answered_under_its_own_id() {
    let mut bench = Bench::new().await;
    bench.list().await;
    let answer = bench.send(&[], call("7", "read", ""));
    bench.posted().await.fail(Ran::Unknown, Verdict::TRANSIENT);
    let second = bench.posted().await;
    assert_ne!(second.body()["id"], 7);
    second.answer("text");
    let (_, said) = text(answer).await;
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!((&said["id"], &said["result"]["content"][0]["text"]), (&7.into(), &"text".into()));
}

#[tokio::test(start_paused = true)]
async fn the_same_request_of_a_session_is_one_call() {
    let mut bench = Bench::new().await;
    let session = [("mcp-session-id", "s"), ("authorization", "Bearer a")];
    let first = bench.send(&session, call("7", "pay", ""));
    let post = bench.posted().await;
    // While it runs, and after.
    let second = bench.send(&session, call("7", "pay", ""));
    bench.nothing_posted().await;
    post.answer("paid");
    for answer in [first, second, bench.send(&session, call("7", "pay", ""))] {
        assert!(text(answer).await.1.contains("paid"));
    }
    bench.nothing_posted().await;
    // Another session, another caller, another id, other bytes, and after a minute.
    let others = [
        ([("mcp-session-id", "t"), session[1]], call("7", "pay", "")),
        ([session[0], ("authorization", "Bearer b")], call("7", "pay", "")),
        (session, call("8", "pay", "")),
        (session, call("7", "pay", r#""x":1"#)),
    ];
    for (headers, body) in others {
        let answer = bench.send(&headers, body);
        bench.posted().await.answer("paid again");
        assert!(text(answer).await.1.contains("paid again"));
    }
    advance(Duration::from_secs(61)).await;
    let answer = bench.send(&session, call("7", "pay", ""));
    bench.posted().await.answer("later");
    assert!(text(answer).await.1.contains("later"));
}

#[tokio::test(start_paused = true)]
async fn a_strong_id_of_another_caller_gets_no_answer_and_runs_nothing() {
    let mut bench = Bench::new().await;
    let first = bench.send(&[("authorization", "Bearer a")], call("7", "pay", KEYED));
    bench.posted().await.answer("secret");
    assert!(text(first).await.1.contains("secret"));
    let other = bench.send(&[("authorization", "Bearer b")], call("7", "pay", KEYED));
    let (_, said) = text(other).await;
    assert!(said.contains("idempotency_conflict") && !said.contains("secret"), "{said}");
    assert!(said.contains("with another credential or other arguments is done [record "), "{said}");
    bench.nothing_posted().await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_call_gets_comments_and_a_cancelled_one_an_end() {
    let mut bench = Bench::new().await;
    let answer = bench.send(&[], call("7", "pay", ""));
    let post = bench.posted().await;
    let answer = timeout(Duration::from_secs(16), answer).await.expect("a head").unwrap();
    assert_eq!(answer.headers()[CONTENT_TYPE], "text/event-stream");
    let order = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#;
    // One of another client cancels nothing, and does not pass.
    assert_eq!(text(bench.send_on(2, &[], order)).await.0, StatusCode::ACCEPTED);
    bench.nothing_posted().await;
    assert_eq!(text(bench.send(&[], order)).await.0, StatusCode::ACCEPTED);
    assert_eq!(bench.posted().await.posted.body, order);
    drop(post);
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    assert!(body.iter().all(|byte| matches!(byte, b':' | b'\n')), "{body:?}");
    // Others pass.
    let other = order.replace('7', "8");
    assert_eq!(text(bench.send(&[], other)).await.0, StatusCode::IM_A_TEAPOT);
}

#[tokio::test(start_paused = true)]
async fn what_could_be_a_call_and_is_none_is_refused() {
    let mut bench = Bench::new().await;
    let modern = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/list")];
    for (headers, body, code) in [
        (&[][..], format!("[{}]", call("7", "pay", "")), "-32600"),
        (&[], call("[7]", "pay", ""), "-32600"),
        (&[], format!("{},", call("7", "pay", "")), "-32700"),
        (&modern, call("7", "pay", ""), "-32020"),
    ] {
        let (status, said) = text(bench.send(headers, body)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST);
        assert!(said.contains(code), "{said}");
    }
    let keys = [("idempotency-key", "a")];
    let (_, said) = text(bench.send(&keys, call("7", "pay", KEYED))).await;
    assert!(said.contains("-32602"), "{said}");
    bench.nothing_posted().await;
}

#[tokio::test(start_paused = true)]
async fn the_body_of_a_call_and_its_answer_are_each_read_once() {
    let mut bench = Bench::new().await;
    let before = jsonrpc::READS.get();
    let waits = bench.send(&[], call("1", "pay", ""));
    bench.posted().await.answer("paid");
    timeout(Duration::from_secs(1), waits).await.unwrap().unwrap();
    assert_eq!(jsonrpc::READS.get() - before, 2);
}
