//! Sessions over TLS: kept where the server proves who it is, and nowhere else.
use crate::writer::entry;
use tokio_postgres::{Client, NoTls};
use tr_integrity::{
    postgres::{Builder, Postgres},
    store::{SessionStore as _, StoreErrorKind},
};
use tr_testkit::{
    postgres::Server,
    tls::{Authority, Issued},
};

const HERE: [&str; 2] = ["localhost", "127.0.0.1"];

fn start(issued: Issued) -> Server {
    Server::options().tls(issued).start().unwrap()
}

fn url(server: &Server, mode: &str) -> String {
    format!("{}?sslmode={mode}", server.url())
}

/// Looks on, in clear.
async fn operator(server: &Server) -> Client {
    let (client, connection) = tokio_postgres::connect(&server.url(), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Whether the store's connections are encrypted, and the name in the certificate that it showed.
async fn seen(operator: &Client) -> Vec<(bool, Option<String>)> {
    const QUERY: &str = "SELECT ssl, client_dn FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name = 'tr-integrity'";
    let rows = operator.query(QUERY, &[]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

async fn refused(builder: Builder, why: &str) {
    let store = builder.build().unwrap();
    let append = store.append("s", None, &entry(1, 1)).await.unwrap_err();
    let load = store.load("s").await.unwrap_err();
    for error in [append, load] {
        // Nothing was sent.
        assert_eq!(error.kind(), StoreErrorKind::Unreachable, "{error}");
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[tokio::test]
async fn sessions_are_kept_where_the_authority_is_trusted() {
    let authority = Authority::new();
    let server = start(authority.issue(HERE));
    let (operator, own) = (operator(&server).await, authority.issue(["client.example"]));
    let mut head = None;
    for (n, url) in [
        (1, url(&server, "require")),
        (2, url(&server, "verify-full").replace("127.0.0.1", "localhost")),
        // A client with trusted authorities requires TLS.
        (3, server.url()),
    ] {
        let builder = Postgres::builder(&url).tls_roots(authority.pem());
        let store = builder.tls_certificate(own.certificate(), own.key()).build().unwrap();
        store.append("s", head, &entry(n, n)).await.unwrap();
        head = Some(entry(n, n).revision);
        assert_eq!(store.load("s").await.unwrap().len(), usize::try_from(n).unwrap());
        let seen = seen(&operator).await;
        assert!(!seen.is_empty());
        for (is_encrypted, shown) in seen {
            assert!(is_encrypted, "{url}");
            assert!(shown.is_some_and(|name| name.contains("postgres")), "{url}");
        }
    }
}

#[tokio::test]
async fn who_does_not_prove_to_be_the_server_is_sent_nothing() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = start(authority.issue(HERE));
    let elsewhere = start(authority.issue(["elsewhere.example"]));
    for mode in ["require", "verify-full"] {
        let address = url(&server, mode);
        refused(Postgres::builder(&address).tls_roots(other.pem()), "UnknownIssuer").await;
        refused(Postgres::builder(&address), "UnknownIssuer").await;
        let address = url(&elsewhere, mode);
        refused(Postgres::builder(address).tls_roots(authority.pem()), "not valid for name").await;
    }
    for server in [server, elsewhere] {
        let operator = operator(&server).await;
        let row = operator.query_one("SELECT to_regclass('tr_sessions')::text", &[]).await;
        assert_eq!(row.unwrap().get::<_, Option<String>>(0), None);
    }
}

#[tokio::test]
async fn a_server_without_tls_is_refused_and_never_used_in_clear() {
    let (server, authority) = (Server::start().unwrap(), Authority::new());
    for address in [url(&server, "require"), url(&server, "verify-full"), server.url()] {
        let builder = Postgres::builder(address).tls_roots(authority.pem());
        refused(builder, "server does not support TLS").await;
    }
}

#[tokio::test]
async fn settings_that_cannot_work_are_told_when_the_store_is_built() {
    let (authority, url) = (Authority::new(), "postgresql://me:secret@host/db");
    let own = authority.issue(HERE);
    let trusting =
        |mode: &str| Postgres::builder(format!("{url}{mode}")).tls_roots(authority.pem());
    for (builder, why) in [
        (Postgres::builder(url).tls_roots("none"), "no certificate in the PEM text"),
        (trusting("").tls_certificate(own.certificate(), "none"), "not a private key"),
        (trusting("?sslmode=disable"), "contradicts"),
        (trusting("?sslmode=prefer"), "may fall back to an unencrypted connection"),
        (
            Postgres::builder(format!("{url}?sslmode=prefer")),
            "may fall back to an unencrypted connection",
        ),
        (trusting("?sslmode=verify-ca"), "unknown sslmode"),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Refused, "{error}");
        let text = error.to_string();
        assert!(text.contains(why) && !text.contains("secret"), "{text}");
    }
}
