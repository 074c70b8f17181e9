//! What is said of servers and settings with which the promise cannot be kept.
use crate::writer::entry;
use tokio_postgres::{Client, NoTls};
use tr_integrity::{
    postgres::{Builder, Postgres},
    store::{SessionStore as _, StoreErrorKind},
};
use tr_testkit::postgres::Server;

async fn connect(server: &Server) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// What an append and a load say.
async fn told(builder: Builder) -> [(StoreErrorKind, String); 2] {
    let store = builder.build().unwrap();
    let append = store.append("s", None, &entry(1, 1)).await.unwrap_err();
    let load = store.load("s").await.unwrap_err();
    [append, load].map(|error| (error.kind(), error.to_string()))
}

#[tokio::test]
async fn settings_that_are_wrong_are_told_at_once_and_without_the_password() {
    let builder = Postgres::builder("postgresql://me:secret@host:99999/db");
    let error = builder.timeout(std::time::Duration::ZERO).connections(0).build().unwrap_err();
    let text = error.to_string();
    for part in ["the address: ", "the timeout must be at least 1 ms", "at least 1 connection"] {
        assert!(text.contains(part), "{text}");
    }
    assert!(!text.contains("secret"), "{text}");
    let store = Postgres::builder("postgresql://me:secret@host/db").build().unwrap();
    assert!(!format!("{store:?}").contains("secret"));
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let mut server = Server::start().unwrap();
    server.kill();
    for (kind, text) in told(Postgres::builder(server.url())).await {
        assert_eq!(kind, StoreErrorKind::Unreachable, "{text}");
    }
}

#[tokio::test]
async fn a_server_without_a_free_connection_is_unreachable() {
    let options = Server::options().set("max_connections", "4");
    let server = options.set("superuser_reserved_connections", "0").start().unwrap();
    let mut held = Vec::new();
    while let Ok((client, connection)) = tokio_postgres::connect(&server.url(), NoTls).await {
        tokio::spawn(connection);
        held.push(client);
    }
    for (kind, text) in told(Postgres::builder(server.url())).await {
        assert_eq!(kind, StoreErrorKind::Unreachable, "{text}");
    }
    drop(held);
}

#[tokio::test]
async fn who_may_not_is_refused_and_told_why() {
    let server = Server::start().unwrap();
    let owner = connect(&server).await;
    owner.batch_execute("CREATE ROLE guest LOGIN").await.unwrap();
    let guest = server.url().replace("postgres@", "guest@");
    let nobody = server.url().replace("postgres@", "nobody_here@");
    for (url, why) in [(&guest, "permission denied"), (&nobody, "does not exist")] {
        for (kind, text) in told(Postgres::builder(url)).await {
            assert_eq!(kind, StoreErrorKind::Refused, "{text}");
            assert!(text.contains(why), "{text}");
        }
    }
    // Once the tables are there, reading and writing them is all that it takes.
    let store = Postgres::builder(server.url()).build().unwrap();
    store.append("s", None, &entry(1, 1)).await.unwrap();
    let grants = ["tr_session_heads", "tr_session_entries", "tr_session_schema"]
        .map(|table| format!("GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO guest"));
    owner.batch_execute(&grants.join("; ")).await.unwrap();
    let store = Postgres::builder(guest).build().unwrap();
    store.append("s", Some(entry(1, 1).revision), &entry(2, 2)).await.unwrap();
    assert!(store.delete("s").await.unwrap());
}

#[tokio::test]
async fn a_server_that_may_forget_is_warned_of() {
    let safe = Server::options().set("fsync", "on").start().unwrap();
    let store = Postgres::builder(safe.url()).build().unwrap();
    assert!(store.check().await.unwrap().is_empty());
    let options =
        safe.url() + "?options=-csynchronous_commit%3Doff%20-cdefault_transaction_read_only%3Don";
    let store = Postgres::builder(options).build().unwrap();
    let warnings = store.check().await.unwrap().join("\n");
    assert!(
        warnings.contains("synchronous_commit") && warnings.contains("read-only"),
        "{warnings}"
    );
    let error = store.append("s", None, &entry(1, 1)).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
}

#[tokio::test]
async fn tables_of_a_newer_version_are_left_alone() {
    let server = Server::start().unwrap();
    let store = Postgres::builder(server.url()).build().unwrap();
    store.append("s", None, &entry(1, 1)).await.unwrap();
    let owner = connect(&server).await;
    owner.batch_execute("UPDATE tr_session_schema SET version = 2").await.unwrap();
    for (kind, text) in told(Postgres::builder(server.url())).await {
        assert_eq!(kind, StoreErrorKind::Refused, "{text}");
        assert!(text.contains("of version 2"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_that_come_first_make_the_tables_once() {
    let server = Server::start().unwrap();
    let clients = (0..8u64).map(|n| {
        let store = Postgres::builder(server.url()).build().unwrap();
        tokio::spawn(async move { store.append(&n.to_string(), None, &entry(1, n)).await })
    });
    for client in clients.collect::<Vec<_>>() {
        client.await.unwrap().unwrap();
    }
    let store = Postgres::builder(server.url()).build().unwrap();
    assert_eq!(store.list(None, 100).await.unwrap().len(), 8);
}

/// As an operator looks at them, and forgets one.
#[tokio::test]
async fn sessions_can_be_seen_and_forgotten_by_hand() {
    let server = Server::start().unwrap();
    let store = Postgres::builder(server.url()).build().unwrap();
    store.append("chat 7", None, &entry(1, 1)).await.unwrap();
    store.append("chat 7", Some(entry(1, 1).revision), &entry(2, 2)).await.unwrap();
    let owner = connect(&server).await;
    let row =
        owner.query_one("SELECT session, entries, bytes FROM tr_sessions", &[]).await.unwrap();
    assert_eq!(
        (row.get::<_, &str>(0), row.get::<_, i64>(1), row.get::<_, i64>(2)),
        ("chat 7", 2, 24)
    );
    owner.batch_execute("DELETE FROM tr_session_heads WHERE session = 'chat 7'").await.unwrap();
    assert!(store.load("chat 7").await.unwrap().is_empty());
}
