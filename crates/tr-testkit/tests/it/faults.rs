//! Each fault of the proxy, between a plain client and a plain echo server, in real time.
use std::{io::ErrorKind, net::SocketAddr, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    time::{Instant, timeout},
};
use tr_testkit::faults::{Proxy, Then};

/// As a client of Redis sends it; an echo of it is a well-formed reply.
const PING: &[u8] = b"*1\r\n$4\r\nPING\r\n";
const EVAL: &[u8] = b"*2\r\n$7\r\nevalsha\r\n$3\r\nabc\r\n";

/// Long enough for what has to happen.
async fn soon<T>(future: impl Future<Output = T>) -> T {
    timeout(Duration::from_secs(20), future).await.expect("it happens")
}

/// Long enough to see that nothing happens.
async fn never<T>(future: impl Future<Output = T>) {
    assert!(timeout(Duration::from_millis(100), future).await.is_err(), "nothing happens");
}

/// Sends back what it gets.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = client.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    addr
}

async fn rig() -> (Proxy, TcpStream) {
    let proxy = Proxy::start(echo().await).unwrap();
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(ask(&mut client, b"hello").await, b"hello");
    (proxy, client)
}

async fn ask(client: &mut TcpStream, request: &[u8]) -> Vec<u8> {
    client.write_all(request).await.unwrap();
    read(client, request.len()).await
}

async fn read(client: &mut TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    soon(client.read_exact(&mut bytes)).await.unwrap();
    bytes
}

async fn assert_reset(client: &mut TcpStream) {
    let error = soon(client.read_u8()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

/// A client whose connection speaks Redis's protocol from its beginning.
async fn resp_rig() -> (Proxy, TcpStream) {
    let proxy = Proxy::start(echo().await).unwrap();
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(ask(&mut client, PING).await, PING);
    (proxy, client)
}

#[tokio::test]
async fn without_faults_all_arrives_and_ends() {
    let (proxy, mut client) = rig().await;
    let long: Vec<u8> = (0..1_000_000_u32).map(|n| n as u8).collect();
    let (mut from, mut to) = client.split();
    let mut echoed = Vec::new();
    let write = async {
        to.write_all(&long).await.unwrap();
        to.shutdown().await.unwrap();
    };
    soon(async { tokio::join!(write, from.read_to_end(&mut echoed)).1.unwrap() }).await;
    assert!(echoed == long, "{} bytes came back", echoed.len());
    assert_eq!(proxy.connections(), 1);
}

#[tokio::test]
async fn a_black_hole_holds_what_was_sent_until_it_is_healed() {
    let (proxy, mut client) = rig().await;
    proxy.black_hole();
    client.write_all(b"old").await.unwrap();
    never(client.read_u8()).await;
    let mut other = TcpStream::connect(proxy.addr()).await.unwrap();
    other.write_all(b"new").await.unwrap();
    never(other.read_u8()).await;
    proxy.heal();
    assert_eq!(read(&mut client, 3).await, b"old");
    assert_eq!(read(&mut other, 3).await, b"new");
}

/// One way is cut: whether the server gets `ping`, its client hears nothing.
async fn one_way(cut: impl FnOnce(&Proxy), arrives: bool) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::start(listener.local_addr().unwrap()).unwrap();
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    let (mut server, _) = soon(listener.accept()).await.unwrap();
    cut(&proxy);
    client.write_all(b"ping").await.unwrap();
    server.write_all(b"pong").await.unwrap();
    match arrives {
        true => {
            assert_eq!(read(&mut server, 4).await, b"ping");
            never(client.read_u8()).await;
            proxy.heal();
            assert_eq!(read(&mut client, 4).await, b"pong");
        }
        false => {
            assert_eq!(read(&mut client, 4).await, b"pong");
            never(server.read_u8()).await;
            proxy.heal();
            assert_eq!(read(&mut server, 4).await, b"ping");
        }
    }
}

#[tokio::test]
async fn only_requests_are_cut() {
    one_way(Proxy::cut_requests, false).await;
}

#[tokio::test]
async fn only_replies_are_cut() {
    one_way(Proxy::cut_replies, true).await;
}

#[tokio::test]
async fn a_reset_ends_connections_and_lets_new_ones_in() {
    let (proxy, mut client) = rig().await;
    proxy.reset();
    assert_reset(&mut client).await;
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(ask(&mut client, b"again").await, b"again");
    assert_eq!(proxy.connections(), 2);
}

#[tokio::test]
async fn new_connections_are_refused_and_old_ones_go_on() {
    let (proxy, mut client) = rig().await;
    proxy.refuse();
    let error = TcpStream::connect(proxy.addr()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    assert_eq!(ask(&mut client, b"still").await, b"still");
    proxy.heal();
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(ask(&mut client, b"again").await, b"again");
}

#[tokio::test]
async fn requests_are_late() {
    let (proxy, mut client) = rig().await;
    proxy.delay(Duration::from_millis(150));
    let begin = Instant::now();
    assert_eq!(ask(&mut client, b"late").await, b"late");
    assert!(begin.elapsed() >= Duration::from_millis(150));
}

#[tokio::test]
async fn a_reply_is_truncated_and_the_connection_reset() {
    let (proxy, mut client) = resp_rig().await;
    let fired = proxy.truncate_next_reply(4, Then::Reset);
    client.write_all(PING).await.unwrap();
    assert_eq!(read(&mut client, 4).await, PING[..4]);
    assert_reset(&mut client).await;
    soon(fired).await;
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(ask(&mut client, PING).await, PING, "it happens once");
}

#[tokio::test]
async fn without_frames_a_reply_is_what_comes_at_once() {
    let (proxy, mut client) = rig().await;
    drop(proxy.truncate_next_reply(2, Then::Reset));
    client.write_all(b"hello").await.unwrap();
    assert_eq!(read(&mut client, 2).await, b"he");
    assert_reset(&mut client).await;
}

#[tokio::test]
async fn the_reply_of_a_named_command_is_dropped() {
    let (proxy, mut client) = resp_rig().await;
    let fired = proxy.drop_reply_of("EVALSHA", Then::Silence);
    // Sent at once: the reply before it still comes, none after it does.
    client.write_all(&[PING, EVAL, PING].concat()).await.unwrap();
    assert_eq!(read(&mut client, PING.len()).await, PING);
    soon(fired).await;
    never(client.read_u8()).await;
    let mut other = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_eq!(ask(&mut other, EVAL).await, EVAL, "it happens once");
    proxy.heal();
    assert_reset(&mut client).await;
    assert_eq!(ask(&mut other, PING).await, PING);
}

#[tokio::test]
async fn healing_disarms() {
    let (proxy, mut client) = resp_rig().await;
    drop(proxy.drop_reply_of("PING", Then::Reset));
    proxy.heal();
    assert_eq!(ask(&mut client, PING).await, PING);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_reset() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let proxy = Proxy::start(gone).unwrap();
    let mut client = TcpStream::connect(proxy.addr()).await.unwrap();
    assert_reset(&mut client).await;
}

#[tokio::test]
async fn all_ends_with_the_proxy() {
    let (proxy, mut client) = rig().await;
    let addr = proxy.addr();
    drop(proxy);
    assert_reset(&mut client).await;
    assert_eq!(TcpStream::connect(addr).await.unwrap_err().kind(), ErrorKind::ConnectionRefused);
}
