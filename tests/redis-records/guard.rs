//! The guard's own program with records in a server that uses TLS.
use crate::process::claim;
use std::{
    env, fs,
    process::{Command, Output},
};
use tr_idempotency::{redis::Redis, store::RecordStore as _};
use tr_testkit::{
    redis::Server,
    tls::{Authority, Issued},
};

fn server(issued: Issued) -> Server {
    Server::options().password("sesame42").tls(issued).start().unwrap()
}

/// Lists the records of this server, and trusts these authorities in place of the system's.
fn list(server: &Server, trusted: &Authority) -> Output {
    let guard = env::var_os("TR_TOOL_GUARD");
    let guard = guard.expect("TR_TOOL_GUARD names the guard's binary: run cargo xtask test");
    let roots = env::temp_dir().join(format!("tr-roots-{}.pem", server.addr().port()));
    fs::write(&roots, trusted.pem()).unwrap();
    let mut listing = Command::new(guard);
    listing.args(["records", "--records", &server.url(), "list"]).env("SSL_CERT_FILE", &roots);
    let listed = listing.output().unwrap();
    fs::remove_file(roots).unwrap();
    listed
}

#[tokio::test]
async fn the_guard_s_program_verifies_its_server_and_reads_its_records() {
    let (authority, other) = (Authority::new(), Authority::new());
    let server = server(authority.issue(["127.0.0.1"]));
    let store = Redis::builder(server.url()).tls_roots(authority.pem()).connect().await.unwrap();
    store.claim(&claim("pay")).await.unwrap();

    let listed = list(&server, &authority);
    let text = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.status.success() && text.contains("pay"), "{text}");

    let refused = list(&server, &other);
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(!refused.status.success() && text.contains("check the certificate"), "{text}");
    assert!(!text.contains("sesame42"), "{text}");
}
