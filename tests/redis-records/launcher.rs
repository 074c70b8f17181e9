//! The launcher itself: servers are their test's own, do what is asked of them and are gone after it.
use rustix::process::{Pid, Signal, getpid, kill_process, test_kill_process};
use std::{
    env,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};
use tr_testkit::redis::{Persistence, Server};

#[test]
fn each_server_is_its_own() {
    let (one, other) = (Server::start().unwrap(), Server::start().unwrap());
    one.command(["SET", "key", "one"]).unwrap();
    assert_eq!(one.command(["GET", "key"]).unwrap().text(), Some("one"));
    assert_eq!(other.command(["DBSIZE"]).unwrap().int(), Some(0));
    assert_ne!(one.addr(), other.addr());
}

#[test]
fn what_the_disk_keeps_is_as_asked() {
    for (persistence, kept) in
        [(Persistence::None, 0), (Persistence::EverySecond, 1), (Persistence::Always, 1)]
    {
        let mut server = Server::options().persistence(persistence).start().unwrap();
        server.command(["SET", "key", "value"]).unwrap();
        let addr = server.addr();
        server.restart().unwrap();
        assert_eq!(server.addr(), addr);
        let size = server.command(["DBSIZE"]).unwrap().int();
        assert_eq!(size, Some(kept), "{persistence:?}");
        server.command(["SET", "key", "value"]).unwrap();
        server.restart_empty().unwrap();
        assert_eq!(server.command(["DBSIZE"]).unwrap().int(), Some(0), "{persistence:?}");
    }
}

#[test]
fn memory_and_other_directives_are_as_asked() {
    let options = Server::options().max_memory(5_000_000, "allkeys-lru").set("maxclients", ["7"]);
    let server = options.start().unwrap();
    let get = |name| server.command(["CONFIG", "GET", name]).unwrap().to_string();
    assert_eq!(get("maxmemory"), "maxmemory 5000000");
    assert_eq!(get("maxmemory-policy"), "maxmemory-policy allkeys-lru");
    assert_eq!(get("maxclients"), "maxclients 7");
}

#[test]
fn what_the_server_refuses_is_told() {
    let error = Server::options().max_memory(1, "evict-at-will").start().unwrap_err().to_string();
    assert!(error.contains("maxmemory-policy"), "{error}");
}

#[test]
fn a_password_is_in_the_address_and_in_no_debug_text() {
    let options = Server::options().password("sesame42");
    assert!(!format!("{options:?}").contains("sesame42"));
    let server = options.start().unwrap();
    assert_eq!(server.url(), format!("redis://:sesame42@{}/", server.addr()));
    assert_eq!(server.command(["PING"]).unwrap().text(), Some("PONG"));
    assert!(!format!("{server:?}").contains("sesame42"));
}

#[test]
fn a_replica_is_in_step_and_follows() {
    let primary = Server::options().password("sesame42").start().unwrap();
    primary.command(["SET", "key", "before"]).unwrap();
    let replica = Server::options().replica_of(&primary).start().unwrap();
    assert_eq!(replica.command(["GET", "key"]).unwrap().text(), Some("before"));
    primary.command(["SET", "key", "after"]).unwrap();
    assert_eq!(primary.command(["WAIT", "1", "5000"]).unwrap().int(), Some(1));
    assert_eq!(replica.command(["GET", "key"]).unwrap().text(), Some("after"));
    let refused = replica.command(["SET", "key", "mine"]).unwrap_err().to_string();
    assert!(refused.starts_with("READONLY"), "{refused}");
}

#[test]
fn a_paused_server_answers_when_it_goes_on() {
    let server = Server::start().unwrap();
    server.pause();
    let (told, answer) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(|| told.send(server.command(["PING"]).unwrap()).unwrap());
        assert!(answer.recv_timeout(Duration::from_millis(200)).is_err(), "it is paused");
        server.resume();
        assert_eq!(answer.recv().unwrap().text(), Some("PONG"));
    });
}

#[test]
fn a_killed_server_is_gone_until_it_is_restarted() {
    let mut server = Server::start().unwrap();
    let pid = pid_of(&server);
    server.kill();
    assert!(test_kill_process(pid).is_err(), "it was waited for");
    assert!(server.command(["PING"]).is_err());
    server.restart().unwrap();
    assert_eq!(server.command(["PING"]).unwrap().text(), Some("PONG"));
    let (pid, addr) = (pid_of(&server), server.addr());
    drop(server);
    assert!(test_kill_process(pid).is_err());
    assert!(std::net::TcpStream::connect(addr).is_err());
}

/// Tells [`a_server_dies_with_the_test_process`] that it is the process that dies.
const DOOMED: &str = "REDIS_RECORDS_DOOMED";

#[test]
fn a_server_dies_with_the_test_process() {
    if env::var_os(DOOMED).is_some() {
        let server = Server::start().unwrap();
        println!("pid {}", pid_of(&server).as_raw_nonzero());
        kill_process(getpid(), Signal::KILL).unwrap();
    }
    let mut doomed = Command::new(env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "launcher::a_server_dies_with_the_test_process"])
        .env(DOOMED, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(doomed.stdout.take().unwrap()).lines().map_while(Result::ok);
    // The runner may begin the line.
    let pid = lines.filter_map(|line| line.split_once("pid ")?.1.parse().ok()).last();
    let pid = Pid::from_raw(pid.expect("the server was started")).unwrap();
    assert!(!doomed.wait().unwrap().success());
    let (_never, nothing) = mpsc::channel::<()>();
    let is_gone = (0..1_000).any(|_| {
        let _ = nothing.recv_timeout(Duration::from_millis(10));
        // A zombie that no process waits for counts as gone too.
        std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))
            .map_or(true, |stat| stat.contains(") Z "))
    });
    assert!(is_gone, "{pid:?} lives on");
}

fn pid_of(server: &Server) -> Pid {
    let info = server.command(["INFO", "server"]).unwrap();
    let pid = info.text().unwrap().lines().find_map(|line| line.strip_prefix("process_id:"));
    Pid::from_raw(pid.unwrap().parse().unwrap()).unwrap()
}
