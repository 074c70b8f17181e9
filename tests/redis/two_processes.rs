//! Two processes of the operating system, one of them killed.
use crate::peer::Peer;
use rustix::process::{Pid, Signal, kill_process};
use std::{
    env,
    future::pending,
    io::{BufRead as _, BufReader},
    process::{Child, Command, Stdio},
};
use tr_core::BreakerState;
use tr_testkit::redis::Server;

/// Tells a process that it is the other one, and where Redis is.
const OTHER: &str = "REDIS_PEERS_OTHER";

#[tokio::test]
async fn a_process_that_is_killed_leaves_its_decision_to_the_others() {
    if let Ok(url) = env::var(OTHER) {
        let peer = Peer::new(&url).connected().await;
        peer.trip("tool").await;
        println!("tripped ");
        pending::<()>().await;
    }
    let server = Server::start().unwrap();
    let here = Peer::new(&server.url()).connected().await;
    let there = here.breaker("tool");
    let mut other = Other::start(&server.url());
    here.state_becomes("tool", BreakerState::Open).await;
    assert!(!here.call("tool").await);
    other.kill();
    assert_eq!(there.state(), BreakerState::Open);
    let late = Peer::new(&server.url()).connected().await;
    assert!(!late.call("tool").await);
}

struct Other(Child);

impl Other {
    /// Until it has tripped.
    fn start(url: &str) -> Self {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["--exact", "--nocapture"])
            .arg("two_processes::a_process_that_is_killed_leaves_its_decision_to_the_others")
            .env(OTHER, url)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.contains("tripped")), "it says so");
        Self(child)
    }

    fn kill(&mut self) {
        if let Some(pid) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::KILL).unwrap();
        }
        self.0.wait().unwrap();
    }
}
