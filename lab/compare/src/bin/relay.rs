//! A bare reverse proxy: what any proxy of HTTP costs at least. `relay PORT SERVER-PORT`.
use http::{Request, Response, Uri};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioIo},
};
use std::env;
use tokio::{net::TcpListener, runtime::Builder};
use tr_core::BoxError;

fn main() -> Result<(), BoxError> {
    let mut args = env::args().skip(1);
    let (Some(port), Some(server)) = (args.next(), args.next()) else {
        return Err("usage: relay PORT SERVER-PORT".into());
    };
    let (port, server): (u16, u16) = (port.parse()?, server.parse()?);
    Builder::new_current_thread().enable_all().build()?.block_on(async {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let listener = TcpListener::bind(("127.0.0.1", port)).await?;
        loop {
            let (connection, _) = listener.accept().await?;
            connection.set_nodelay(true)?;
            let client = client.clone();
            let relayed = service_fn(move |request| relayed(client.clone(), server, request));
            let served = http1::Builder::new().serve_connection(TokioIo::new(connection), relayed);
            tokio::spawn(served);
        }
    })
}

async fn relayed(
    client: Client<HttpConnector, Incoming>,
    server: u16,
    mut request: Request<Incoming>,
) -> Result<Response<Incoming>, BoxError> {
    *request.uri_mut() = Uri::builder()
        .scheme("http")
        .authority(format!("127.0.0.1:{server}"))
        .path_and_query(request.uri().path())
        .build()?;
    Ok(client.request(request).await?)
}
