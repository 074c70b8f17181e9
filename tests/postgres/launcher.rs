//! The launcher's own promises: what is committed outlives a kill, and nothing outlives the server.
use crate::writer::PATIENCE;
use std::{net::TcpStream, time::Duration};
use tokio::time::{Instant, sleep};
use tokio_postgres::{Client, NoTls};
use tr_testkit::postgres::Server;

async fn connect(server: &Server) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_committed_outlives_a_kill() {
    let mut server = Server::options().set("max_connections", "20").start().unwrap();
    let client = connect(&server).await;
    client.batch_execute("CREATE TABLE kept (n int); INSERT INTO kept VALUES (7)").await.unwrap();
    client.batch_execute("BEGIN; INSERT INTO kept VALUES (8)").await.unwrap();
    let addr = server.addr();
    server.kill();
    // Its processes go as soon as they see that it is dead.
    while client.simple_query("SELECT 1").await.is_ok() {
        sleep(Duration::from_millis(10)).await;
    }
    server.restart().unwrap();
    assert_eq!(server.addr(), addr);
    let client = connect(&server).await;
    let rows = client.query("SELECT n FROM kept", &[]).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.get(0)).collect::<Vec<i32>>(), [7]);
    let most: String = client.query_one("SHOW max_connections", &[]).await.unwrap().get(0);
    assert_eq!(most, "20");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_left_of_a_server_that_is_dropped() {
    let server = Server::start().unwrap();
    let client = connect(&server).await;
    let folder: String = client.query_one("SHOW data_directory", &[]).await.unwrap().get(0);
    let addr = server.addr();
    drop(server);
    assert!(TcpStream::connect(addr).is_err());
    assert!(!std::path::Path::new(&folder).exists(), "{folder}");
    // Its processes go as soon as they see that it is dead.
    let begin = Instant::now();
    while client.simple_query("SELECT 1").await.is_ok() {
        assert!(begin.elapsed() < PATIENCE, "a process of it lives on");
        sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn a_parameter_that_does_not_exist_is_named() {
    let error = Server::options().set("no_such_thing", "1").start().unwrap_err();
    assert!(error.to_string().contains("no_such_thing"), "{error}");
}
