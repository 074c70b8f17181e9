//! Tools behind envelopes over HTTP: a repeat that is answered from its record, a request with faults, and a call that is
//! cancelled by its id.
//!
//! `cargo run -p examples --example envelopes`
use axum::{
    Router,
    body::Bytes,
    extract::Path,
    http::header::{CONTENT_TYPE, HeaderMap},
    routing::{delete, post},
};
use serde_json::{Value, json};
use std::future::pending;
use tokio::net::TcpListener;
use tool_reliability::{Envelopes, ToolStack, envelopes::EnvelopeRequest};
use tower::{BoxError, ServiceExt, service_fn};
use tr_core::{ToolCall, ToolOutcome, call::CallContext};

/// `pay` answers at once; anything else never does.
async fn tool(call: ToolCall) -> Result<ToolOutcome, BoxError> {
    match call.parts().tool.label() {
        "pay" => Ok(ToolOutcome::success(json!({"paid": true}))),
        _ => pending().await,
    }
}

/// Whose call it is: what authentication found out, here a header.
fn caller(headers: &HeaderMap) -> CallContext {
    let mut context = CallContext::default();
    let session = headers.get("x-session").and_then(|session| session.to_str().ok());
    context.session = session.map(Into::into);
    context
}

fn app() -> Router {
    let tools = Envelopes::new(ToolStack::default().service(service_fn(tool)));
    let canceller = tools.canceller();
    let call = async move |headers: HeaderMap, body: Bytes| {
        let request = EnvelopeRequest::from(body).on_behalf_of(caller(&headers));
        let Ok(answer) = tools.oneshot(request).await;
        ([(CONTENT_TYPE, "application/json")], answer.to_bytes())
    };
    let cancel = async move |headers: HeaderMap, Path(id): Path<String>| {
        canceller.cancel(&caller(&headers), &id).to_string()
    };
    Router::new().route("/call", post(call)).route("/call/{id}", delete(cancel))
}

/// A client of one session.
struct Client {
    http: reqwest::Client,
    at: String,
    session: &'static str,
}

impl Client {
    async fn call(&self, request: Value) -> Result<Value, BoxError> {
        let sent = self.http.post(format!("{}/call", self.at)).header("x-session", self.session);
        Ok(serde_json::from_str(&sent.body(request.to_string()).send().await?.text().await?)?)
    }

    async fn cancel(&self, id: &str) -> Result<u32, BoxError> {
        let sent = self.http.delete(format!("{}/call/{id}", self.at));
        Ok(sent.header("x-session", self.session).send().await?.text().await?.parse()?)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let at = format!("http://{}", listener.local_addr()?);
    let server = axum::serve(listener, app());
    tokio::spawn(async { server.await });
    let client = |session| Client { http: reqwest::Client::new(), at: at.clone(), session };
    let (ada, bob) = (client("ada"), client("bob"));

    println!("── the same payment twice");
    let payment = json!({"tool": "pay", "action": "", "params": {"cents": 500}, "idempotencyKey": "order-42"});
    for from_cache in [false, true] {
        let answer = ada.call(payment.clone()).await?;
        println!("{answer}");
        assert_eq!(
            (&answer["status"], &answer["fromCache"]),
            (&json!("success"), &json!(from_cache))
        );
    }
    assert_eq!(
        bob.call(payment).await?["fromCache"],
        false,
        "another session's keys are other keys"
    );

    println!("── a request with faults");
    let answer = ada.call(json!({"tool": "pay", "params": [], "timeout": 0})).await?;
    println!("{}", answer["error"]["message"]);
    assert_eq!(answer["error"]["details"]["faults"].as_array().map(Vec::len), Some(3));

    println!("── a call that is cancelled");
    let slow = json!({"tool": "slow", "action": "", "params": {}, "cancellationId": "stop-1"});
    let cancel = async {
        assert_eq!(bob.cancel("stop-1").await?, 0, "not bob's call");
        // It may take a moment until the call is there.
        while ada.cancel("stop-1").await? == 0 {
            tokio::task::yield_now().await;
        }
        Ok::<_, BoxError>(())
    };
    let (answer, cancelled) = tokio::join!(ada.call(slow), cancel);
    cancelled?;
    let answer = answer?;
    println!("{answer}");
    assert_eq!(answer["error"]["code"], "cancelled");
    Ok(())
}

#[test]
fn it_does_what_it_says() {
    main().unwrap();
}
