//! The smallest MCP server over HTTP. `web PORT`; the tool `stream` answers with an event.
use bytes::Bytes;
use compare::echo;
use http::{Method, Request, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt as _, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use std::env;
use tokio::{net::TcpListener, runtime::Builder, task::LocalSet};
use tr_core::BoxError;

fn main() -> Result<(), BoxError> {
    let port: u16 = env::args().nth(1).ok_or("usage: web PORT")?.parse()?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        loop {
            let (connection, _) = listener.accept().await?;
            connection.set_nodelay(true)?;
            let served = http1::Builder::new()
                .serve_connection(TokioIo::new(connection), service_fn(answered));
            tokio::task::spawn_local(served);
        }
    })
}

async fn answered(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, BoxError> {
    let with = |status| Response::builder().status(status);
    if request.method() != Method::POST {
        return Ok(with(StatusCode::METHOD_NOT_ALLOWED).body(Full::default())?);
    }
    let message = serde_json::from_slice(&request.into_body().collect().await?.to_bytes())?;
    let Some(answer) = echo::answer(&message) else {
        return Ok(with(StatusCode::ACCEPTED).body(Full::default())?);
    };
    let (kind, body) = match message["params"]["name"].as_str() {
        Some("stream") => ("text/event-stream", format!("event: message\ndata: {answer}\n\n")),
        _ => ("application/json", answer.to_string()),
    };
    let mut response = with(StatusCode::OK).header(CONTENT_TYPE, kind);
    if message["method"] == "initialize" {
        response = response.header("mcp-session-id", "one-session-for-all");
    }
    Ok(response.body(body.into())?)
}
