//! gRPC with tonic: retries, breaker and timeouts around a client, idempotency keys in the server.
//!
//! The messages derive `prost::Message` by hand, so no `protoc` is needed; generated clients and servers are the same
//! types. `cargo run -p examples --example grpc`
use http_body::Body;
use prost::Message;
use serde::{Deserialize, Serialize};
use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};
use tokio::{net::TcpListener, time::sleep};
use tonic::{
    Code, Request, Response, Status,
    codegen::tokio_stream::wrappers::TcpListenerStream,
    server::NamedService,
    transport::{Endpoint, Server},
};
use tonic_prost::ProstCodec;
use tower::{Service, ServiceBuilder, ServiceExt, service_fn, util::BoxCloneSyncService};
use tr_breaker::BreakerLayer;
use tr_core::{BoxError, DedupeKey, Effect, NamedPolicy, PolicyExt, Ran, code, failure_info};
use tr_idempotency::IdempotencyLayer;
use tr_retry::RetryLayer;
use tr_timeout::AttemptTimeoutLayer;

#[derive(Clone, PartialEq, Message)]
struct Payment {
    #[prost(string, tag = "1")]
    order: String,
    #[prost(uint32, tag = "2")]
    cents: u32,
}

#[derive(Clone, Copy, PartialEq, Message, Serialize, Deserialize)]
struct Receipt {
    #[prost(uint32, tag = "1")]
    charge: u32,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct Account {
    #[prost(uint32, tag = "1")]
    cents: u32,
}

static CHARGES: AtomicU32 = AtomicU32::new(0);
static READS: AtomicU32 = AtomicU32::new(0);

// ── the server: a payment runs once per order

/// Charges a card. The first answer takes longer than its client waits.
async fn charge(_: Payment) -> Result<Receipt, BoxError> {
    let charge = CHARGES.fetch_add(1, Relaxed) + 1;
    sleep(Duration::from_millis(400)).await;
    Ok(Receipt { charge })
}

/// The status of a refusal or failure.
fn status(error: &BoxError) -> Status {
    let info = failure_info(&**error);
    let code = match info.map(|info| (info.code(), info.ran())) {
        Some((code::IDEMPOTENCY_CONFLICT, _)) => Code::FailedPrecondition,
        Some((code::IDEMPOTENCY_IN_FLIGHT, _)) => Code::Aborted,
        Some((_, Ran::No)) => Code::Unavailable,
        _ => Code::Internal,
    };
    Status::new(code, error.to_string())
}

#[derive(Clone)]
struct Bank {
    pay: BoxCloneSyncService<Payment, Receipt, BoxError>,
}

impl NamedService for Bank {
    const NAME: &'static str = "bank.Bank";
}

impl Bank {
    /// What a generated server does.
    async fn answer<B>(self, req: http::Request<B>) -> http::Response<tonic::body::Body>
    where
        B: Body + Send + 'static,
        B::Error: Into<BoxError> + Send,
    {
        match req.uri().path() {
            "/bank.Bank/Pay" => {
                let pay = service_fn(move |req: Request<Payment>| {
                    let pay = self.pay.clone();
                    async move {
                        let paid = pay.oneshot(req.into_inner()).await;
                        paid.map(Response::new).map_err(|error| status(&error))
                    }
                });
                tonic::server::Grpc::new(ProstCodec::default()).unary(pay, req).await
            }
            "/bank.Bank/Read" => {
                // Down at first.
                let read =
                    service_fn(async |_: Request<Payment>| match READS.fetch_add(1, Relaxed) {
                        0 | 1 => Err(Status::unavailable("the ledger is starting")),
                        _ => Ok(Response::new(Account { cents: 700 })),
                    });
                tonic::server::Grpc::new(ProstCodec::default()).unary(read, req).await
            }
            _ => Status::unimplemented("no such method").into_http(),
        }
    }
}

impl<B> Service<http::Request<B>> for Bank
where
    B: Body + Send + 'static,
    B::Error: Into<BoxError> + Send,
{
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, req: http::Request<B>) -> Self::Future {
        let answer = self.clone().answer(req);
        Box::pin(async { Ok(answer.await) })
    }
}

// ── the client: a call is a type of its own, so that it can be repeated

#[derive(Clone, Debug)]
enum Call {
    Read,
    Pay(Payment),
}

/// Cents of an account, or the number of a charge.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Number(u32);

type Client = BoxCloneSyncService<Call, Number, BoxError>;

/// What a layer refused, as gRPC clients expect it: tonic knows no error of ours, and would make it `Unknown`.
fn unavailable(error: BoxError) -> BoxError {
    if failure_info(&*error).is_none_or(|info| info.ran() != Ran::No) {
        return error;
    }
    let mut status = Status::unavailable(error.to_string());
    status.set_source(Arc::from(error));
    status.into()
}

fn client(at: &str) -> Result<Client, BoxError> {
    // Inside of tonic's client, attempts are seen: breaker and timeout are here.
    let channel = ServiceBuilder::new()
        .map_err(unavailable)
        .layer(BreakerLayer::default())
        .layer(AttemptTimeoutLayer::builder().after(Duration::from_millis(250)).build()?)
        .service(Endpoint::from_shared(at.to_owned())?.connect_lazy());
    // The server runs a payment once per order, so a repeat is safe.
    let policy = NamedPolicy::new("bank").effect_by(|call: &Call| match call {
        Call::Read => Effect::ReadOnly,
        Call::Pay(_) => Effect::Idempotent,
    });
    // Around it, calls can be copied: retries are here.
    let calls = ServiceBuilder::new()
        .layer(RetryLayer::builder().policy(policy).base(Duration::from_millis(20)).build()?)
        .service(service_fn(move |call: Call| {
            let mut grpc = tonic::client::Grpc::new(channel.clone());
            async move {
                grpc.ready().await.map_err(Status::from_error)?;
                Ok::<_, Status>(match call {
                    Call::Read => {
                        let (path, codec) = ("/bank.Bank/Read", ProstCodec::default());
                        let path = http::uri::PathAndQuery::from_static(path);
                        let read = grpc.unary(Request::new(Payment::default()), path, codec);
                        Number(Response::<Account>::into_inner(read.await?).cents)
                    }
                    Call::Pay(payment) => {
                        let (path, codec) = ("/bank.Bank/Pay", ProstCodec::default());
                        let path = http::uri::PathAndQuery::from_static(path);
                        let paid = grpc.unary(Request::new(payment), path, codec);
                        Number(Response::<Receipt>::into_inner(paid.await?).charge)
                    }
                })
            }
        }));
    Ok(BoxCloneSyncService::new(calls))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let at = format!("http://{}", listener.local_addr()?);
    // A payment's key is its order; another amount under it is a conflict.
    let once_per_order = NamedPolicy::new("Pay")
        .idempotency_key_by(|payment: &Payment| {
            Some(DedupeKey::of("bank", &payment.order, payment.cents.to_le_bytes()))
        })
        .stored_as_json();
    let guarded = ServiceBuilder::new()
        .layer(IdempotencyLayer::builder_for().policy(once_per_order).build()?)
        .service(service_fn(charge));
    let bank = Bank { pay: BoxCloneSyncService::new(guarded) };
    let server = Server::builder().add_service(bank);
    tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    let mut client = client(&at)?;

    let account = client.ready().await?.call(Call::Read).await?;
    println!("Read: {} cents after {} requests", account.0, READS.load(Relaxed));
    assert_eq!((account, READS.load(Relaxed)), (Number(700), 3), "UNAVAILABLE is retried");

    let payment = Payment { order: "order-42".into(), cents: 500 };
    let paid = client.ready().await?.call(Call::Pay(payment.clone())).await?;
    println!("Pay: charge {}; the first attempt timed out, and the server ran once", paid.0);
    assert_eq!((paid, CHARGES.load(Relaxed)), (Number(1), 1));

    let other = client.ready().await?.call(Call::Pay(Payment { cents: 900, ..payment })).await;
    let error = other.expect_err("the order is paid");
    println!("Pay with another amount: {error}");
    assert!(error.to_string().contains("used before with other params"), "{error}");
    assert_eq!(CHARGES.load(Relaxed), 1);
    Ok(())
}

#[test]
fn it_does_what_it_says() {
    main().unwrap();
}
