//! What real HTTP clients fail with: whether the request was sent is theirs to say.
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    time::timeout,
};
use tower::{Service, ServiceBuilder, ServiceExt};
use tr_core::{BoxError, DefaultPolicy, Ran, ResponsePolicy};
use tr_retry::{RetryConfig, RetryLayer};

type Hyper = Client<HttpConnector, Full<Bytes>>;

fn hyper(http2: bool) -> Hyper {
    Client::builder(TokioExecutor::new()).http2_only(http2).build_http()
}

fn retry() -> RetryLayer {
    let mut config = RetryConfig::default();
    config.base = Duration::from_millis(1);
    RetryLayer::builder().config(config).build().unwrap()
}

/// A service over reqwest, as the guide has it.
fn over_reqwest()
-> impl Service<Request<Full<Bytes>>, Response = Response<reqwest::Body>, Error = reqwest::Error> + Clone
{
    let client = reqwest::Client::new();
    tower::service_fn(move |request: Request<Full<Bytes>>| {
        let client = client.clone();
        async move {
            let request = request.map(|_| reqwest::Body::from("1 × tea"));
            let response = client.execute(reqwest::Request::try_from(request)?).await?;
            Ok(response.into())
        }
    })
}

fn order(at: SocketAddr) -> Request<Full<Bytes>> {
    Request::post(format!("http://{at}/orders")).body(Full::from("1 × tea")).unwrap()
}

/// The address of a closed port.
async fn closed_port() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap()
}

/// A server that reads each order, and then closes the connection without an answer.
async fn closing() -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (at, orders) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = orders.clone();
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 1024];
            if stream.read(&mut head).await.unwrap_or(0) > 0 {
                counted.fetch_add(1, Relaxed);
            }
            let _ = stream.shutdown().await;
        }
    });
    (at, orders)
}

async fn ran<S, R>(client: S, at: SocketAddr) -> Ran
where
    S: Service<Request<Full<Bytes>>, Response = Response<R>>,
    S::Error: Into<BoxError>,
{
    let error: BoxError = client.oneshot(order(at)).await.err().expect("it fails").into();
    ResponsePolicy::<Response<R>>::classify(&DefaultPolicy, Err(&*error)).ran
}

#[tokio::test]
async fn a_refused_connection_of_the_client_itself_sent_nothing() {
    let at = closed_port().await;
    assert_eq!(ran(hyper(false), at).await, Ran::No);
    // It follows redirects, so this may be the connection for a second request.
    assert_eq!(ran(over_reqwest(), at).await, Ran::Unknown);
    // Nothing was sent, so the order may be tried again.
    let client = ServiceBuilder::new().layer(retry()).service(hyper(false));
    let error = client.oneshot(order(at)).await.unwrap_err();
    assert!(error.to_string().contains("4 attempts"), "{error}");
}

#[tokio::test]
async fn a_connection_that_breaks_later_may_have_brought_the_order() {
    let (at, orders) = closing().await;
    assert_eq!(ran(hyper(false), at).await, Ran::Unknown);
    assert_eq!(ran(over_reqwest(), at).await, Ran::Unknown);
    assert_eq!(orders.load(Relaxed), 2);
    let client = ServiceBuilder::new().layer(retry()).service(hyper(false));
    client.oneshot(order(at)).await.unwrap_err();
    assert_eq!(orders.load(Relaxed), 3);
}

#[tokio::test]
async fn a_stream_that_the_server_refused_is_sent_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    let streams = Arc::new(AtomicUsize::new(0));
    let counted = streams.clone();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let counted = counted.clone();
            tokio::spawn(async move {
                let mut connection = h2::server::handshake(stream).await.unwrap();
                while let Some(Ok((_, mut respond))) = connection.accept().await {
                    match counted.fetch_add(1, Relaxed) {
                        0 => respond.send_reset(h2::Reason::REFUSED_STREAM),
                        1 => drop(respond.send_response(Response::new(()), true)),
                        _ => respond.send_reset(h2::Reason::CANCEL),
                    }
                }
            });
        }
    });
    let client = ServiceBuilder::new().layer(retry()).service(hyper(true));
    let answer = timeout(Duration::from_secs(30), client.clone().oneshot(order(at))).await.unwrap();
    assert_eq!((answer.unwrap().status().as_u16(), streams.load(Relaxed)), (200, 2));
    // A stream that ends for another reason may have done its work.
    let error = timeout(Duration::from_secs(30), client.oneshot(order(at))).await.unwrap();
    assert!(error.is_err());
    assert_eq!(streams.load(Relaxed), 3);
}
