//! A shared server, with processes of the shell.
use super::*;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use tr_core::{Ran, internal::lock};

/// A server of these lines of shell.
fn server(script: &str, sharing: Sharing, max_line: usize) -> Connection {
    // The supervisor is this test's own program, so the lines run without it.
    let mut child = tokio::process::Command::new("sh")
        .args(["-c", script])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let input = child.stdin.take();
    Connection::over(Server { supervisor: child, input }, "sh".into(), sharing, max_line).unwrap()
}

fn ask(id: u64) -> Bytes {
    json!({ "id": id, "method": "tools/call" }).to_string().into()
}

async fn line(post: &mut Post) -> Value {
    match post.next().await {
        Some(ServerEvent::Message { line, .. }) => serde_json::from_slice(&line).unwrap(),
        other => panic!("{other:?}"),
    }
}

async fn failed(post: &mut Post) -> (Ran, String) {
    match post.next().await {
        Some(ServerEvent::Failed(failure)) => (failure.ran(), failure.to_string()),
        other => panic!("{other:?}"),
    }
}

/// Answers each line with the id that it has on the wire.
const ECHO: &str =
    r#"n=0; while read -r line; do n=$((n+1)); echo "{\"id\":$n,\"result\":$n}"; done"#;

#[tokio::test]
async fn posts_at_once_get_each_their_own_answer() {
    let connection = server(ECHO, Sharing::Clients, 1 << 20);
    let posts = (1..=50).map(|number| (number, connection.post(ask(7), false, None)));
    for (number, mut post) in posts.collect::<Vec<_>>().into_iter().rev() {
        assert_eq!(line(&mut post).await, json!({ "id": 7, "result": number }));
        assert!(post.next().await.is_none());
    }
    assert!(!connection.is_gone());
    connection.end();
    connection.ended().await;
}

#[tokio::test]
async fn a_server_that_ends_fails_what_it_has_read() {
    let connection = server("read -r line; exit 3", Sharing::Session, 1 << 20);
    let mut call = connection.post(ask(1), true, None);
    assert_eq!(failed(&mut call).await.0, Ran::Unknown);
    connection.ended().await;
    let mut late = connection.post(ask(2), true, None);
    assert_eq!(failed(&mut late).await.0, Ran::No);
    assert!(connection.is_gone());
}

#[tokio::test]
async fn a_command_that_is_not_found_is_named() {
    let connection = server("exit 127", Sharing::Session, 1 << 20);
    let mut call = connection.post(ask(1), true, None);
    let not_found = "the MCP server cannot be started: the command sh was not found";
    assert_eq!(failed(&mut call).await, (Ran::No, not_found.into()));
}

#[tokio::test]
async fn the_last_answer_of_a_server_that_ends_arrives() {
    let connection = server(
        r#"read -r line; printf '{"id":1,"result":"last"}'; exit 1"#,
        Sharing::Session,
        1 << 20,
    );
    let mut call = connection.post(ask(8), true, None);
    assert_eq!(line(&mut call).await, json!({ "id": 8, "result": "last" }));
    assert!(call.next().await.is_none());
}

#[tokio::test]
async fn an_answer_beyond_the_limit_is_not_kept() {
    let script = r#"read -r line; printf '{"id":1,"result":"'; head -c 300000 /dev/zero | tr '\0' x; echo '"}'; read -r line; echo '{"id":2,"result":1}'; cat"#;
    let connection = server(script, Sharing::Session, 1024);
    let mut call = connection.post(ask(8), true, None);
    match call.next().await {
        Some(ServerEvent::Oversized(long)) => {
            assert_eq!((long.bytes, long.id.as_deref()), (300_021, Some("8")));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(line(&mut connection.post(ask(9), true, None)).await["id"], 9);
}

#[tokio::test]
async fn a_server_that_does_not_read_makes_posts_wait() {
    let connection = server("sleep 0.2; cat > /dev/null", Sharing::Session, 1 << 30);
    let long: Bytes =
        json!({ "method": "n", "params": "x".repeat(MAX_WAITING_BYTES) }).to_string().into();
    let mut first = connection.post(long.clone(), false, None);
    let mut second = connection.post(long, false, None);
    assert!(matches!(second.state, State::Waiting(_)));
    assert!(first.next().await.is_none());
    assert!(second.next().await.is_none());
    assert!(matches!(second.state, State::Open(_)));
}

#[tokio::test]
async fn answers_that_nobody_reads_are_left_in_the_pipe() {
    let script = r#"read -r line; while :; do echo '{"method":"n","params":"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}'; done"#;
    let connection = server(script, Sharing::Session, 1 << 20);
    let mut call = connection.post(ask(1), false, None);
    while lock(&connection.0.posts).may_read() {
        tokio::task::yield_now().await;
    }
    let mut bytes = 0;
    while bytes < 2 * MAX_WAITING_BYTES {
        match call.next().await {
            Some(ServerEvent::Message { line, .. }) => bytes += line.len(),
            other => panic!("{other:?}"),
        }
        assert!(lock(&connection.0.posts).unread < MAX_WAITING_BYTES + 2 * BYTES_AT_ONCE);
    }
}
