//! What outlives a guard.
use crate::{
    client::{Call, Era, Http, Kind, Seen},
    guard::{Shop, Way},
    upstream::{Fault, Upstream},
    wire::{now, until},
};
use std::{fs, os::unix::fs::PermissionsExt as _, thread, time::Duration};

#[test]
fn a_guard_that_is_killed_after_the_execution_leaves_it_unknown() {
    for way in [Way::HttpHttp, Way::StdioHttp] {
        let upstream = Upstream::start();
        let shop = Shop::over(&upstream);
        let mut client = shop.open(way, Kind::Codex, Era::Legacy);
        let call = Call::new(Kind::Codex, "pay", "42");
        upstream.play(Fault::NoHeaders);
        match &mut client {
            crate::guard::Client::Http { http, guard } => {
                let mut http = http.clone();
                thread::scope(|scope| {
                    let waiting = scope.spawn(|| http.once(&call));
                    until("it is executed", || (upstream.executed("42") == 1).then_some(()));
                    guard.kill();
                    assert!(matches!(waiting.join().unwrap(), Seen::Cut));
                });
            }
            crate::guard::Client::Stdio(stdio) => {
                stdio.begin_call(&call);
                until("it is executed", || (upstream.executed("42") == 1).then_some(()));
                client.kill_guard();
            }
        }
        let mut client = shop.open(way, Kind::Codex, Era::Legacy);
        let since = now();
        let seen = client.once(&call);
        // A lock that is free is its owner's end; the lease would be minutes.
        assert!(since.elapsed() < Duration::from_secs(8), "{way:?}: {:?}", since.elapsed());
        let text = seen.text();
        assert!(seen.is_in_band_failure(), "{way:?}: {seen:?}");
        for part in ["may have run", "do not repeat it", "[record ", ": ask the user]"] {
            assert!(text.contains(part), "{way:?}, {part}: {text}");
        }
        assert_eq!(upstream.executed("42"), 1, "{way:?}");

        // A person finds it, and settles it.
        let (exit, listed) = shop.records(&["list", "--unknown"]);
        assert_eq!(exit, 0, "{listed}");
        let id = listed.split_whitespace().next().unwrap().to_owned();
        assert!(text.contains(&id), "{id}: {text}");
        let (exit, said) = shop.records(&["settle", &id, "did-not-run"]);
        assert_eq!(exit, 0, "{said}");
        let seen = client.once(&call);
        assert!(seen.is_success(), "{way:?}: {seen:?}");
        assert_eq!(upstream.executed("42"), 2, "{way:?}, as the person said");
    }
}

/// No id says that the second call is the first: it has the same tool, the same arguments and the same session, or
/// caller where there are no sessions.
#[test]
fn a_call_without_an_id_behind_a_guard_that_is_killed_blocks_its_equals() {
    for era in [Era::Legacy, Era::Modern] {
        let upstream = Upstream::start();
        let shop = Shop::over(&upstream);
        let mut guard = shop.listen(Way::HttpHttp);
        let http = Http::open(&guard.url, Kind::Keyless, era);
        let call = Call::new(Kind::Keyless, "pay", "42");
        upstream.play(Fault::NoHeaders);
        thread::scope(|scope| {
            let (mut http, call) = (http.clone(), &call);
            let waiting = scope.spawn(move || http.once(call));
            until("it is executed", || (upstream.executed("42") == 1).then_some(()));
            guard.kill();
            assert!(matches!(waiting.join().unwrap(), Seen::Cut));
        });
        let guard = shop.listen(Way::HttpHttp);
        let mut http = http.at(&guard.url);
        // Another request.
        http.last_id += 10;
        let seen = http.once(&call);
        assert!(
            seen.is_in_band_failure() && seen.text().contains("may have run"),
            "{era:?}: {seen:?}"
        );
        assert!(seen.text().contains(": ask the user]"), "{era:?}: {seen:?}");
        assert_eq!(upstream.executed("42"), 1, "{era:?}");
        let seen = http.once(&Call::new(Kind::Keyless, "pay", "43"));
        assert!(seen.is_success(), "{era:?}: {seen:?}");
    }
}

#[test]
fn two_guards_on_one_file_run_a_call_once() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    let guards = [shop.listen(Way::HttpHttp), shop.listen(Way::HttpHttp)];
    let call = Call::new(Kind::Codex, "pay", "42");
    upstream.play(Fault::NoHeaders);
    thread::scope(|scope| {
        let wait = |url: &str| {
            let mut client = Http::open(url, Kind::Codex, Era::Legacy);
            let call = &call;
            scope.spawn(move || client.once(call))
        };
        let waiting: Vec<_> = guards.iter().map(|guard| wait(&guard.url)).collect();
        until("it is executed", || (upstream.executed("42") == 1).then_some(()));
        upstream.release();
        for one in waiting {
            let seen = one.join().unwrap();
            assert!(seen.is_success(), "{seen:?}");
        }
    });
    assert_eq!(upstream.executed("42"), 1);
}

/// Two servers have two namespaces in one file.
#[test]
fn guards_of_two_servers_on_one_file_do_not_share_calls() {
    let servers = [Upstream::start(), Upstream::start()];
    let folder = tempfile::tempdir().unwrap();
    let records = folder.path().join("shared.db");
    let call = Call::new(Kind::Codex, "pay", "42");
    for upstream in &servers {
        let shop = Shop::over(upstream)
            .with([std::ffi::OsString::from("--records"), records.clone().into()]);
        let guard = shop.listen(Way::HttpHttp);
        assert!(Http::open(&guard.url, Kind::Codex, Era::Legacy).once(&call).is_success());
        assert_eq!(upstream.executed("42"), 1);
    }
    let mode = fs::metadata(&records).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
}

#[test]
fn records_that_cannot_be_written_refuse_payments_at_once_and_let_reads_pass() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    let guard = shop.listen(Way::HttpHttp);
    let mut client = Http::open(&guard.url, Kind::Codex, Era::Legacy);
    assert!(client.once(&Call::new(Kind::Codex, "pay", "1")).is_success());
    // The writers' lock of the file, which a hung backup may hold.
    let script = "import sqlite3, sys\nfile = sqlite3.connect(sys.argv[1], isolation_level=None)\nfile.execute('BEGIN EXCLUSIVE')\nprint('held', flush=True)\nsys.stdin.read()";
    let mut holder = std::process::Command::new("python3")
        .args(["-c", script])
        .arg(shop.path("records.db"))
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut held = String::new();
    let mut output = std::io::BufReader::new(holder.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut output, &mut held).unwrap();
    assert_eq!(held, "held\n");

    let since = now();
    let seen = client.once(&Call::new(Kind::Codex, "pay", "2"));
    assert!(since.elapsed() < Duration::from_secs(10), "{:?}", since.elapsed());
    assert!(seen.is_in_band_failure() && !seen.text().contains("may have run"), "{seen:?}");
    assert_eq!(upstream.executed("2"), 0);
    assert!(client.once(&Call::new(Kind::Codex, "balance", "3")).is_success());
    drop(holder.stdin.take());
    holder.wait().unwrap();
    let seen = client.once(&Call::new(Kind::Codex, "pay", "4"));
    assert!(seen.is_success(), "{seen:?}");
}

#[test]
fn records_that_cannot_be_opened_end_the_guard_if_they_were_asked_for() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream).with(["--records", "/proc/no/such/records.db"]);
    let output = shop.stdio().stdin(std::process::Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", shop.said());
}

/// Credentials, cookies and session ids are in no log, record or error.
#[test]
fn credentials_reach_no_log_record_or_error() {
    let upstream = Upstream::start();
    let shop = Shop::over(&upstream);
    let mut guard = shop.listen(Way::HttpHttp);
    let mut client = Http::open(&guard.url, Kind::Codex, Era::Legacy)
        .with("authorization", "Bearer canary-0f3c-token")
        .with("cookie", "login=canary-77aa-cookie")
        .with("x-api-key", "canary-91bd-key");
    let session = client.session.clone().unwrap();
    let mut said = String::new();
    for fault in [Fault::None, Fault::Dropped, Fault::Status(503), Fault::WrongId, Fault::Html] {
        upstream.play(fault);
        let seen = client.once(&Call::new(Kind::Codex, "pay", &format!("{fault:?}")));
        said += &seen.text();
    }
    // The upstream got them.
    let last = upstream.seen("tools/call").pop().unwrap();
    assert_eq!(last.head.header("authorization"), Some("Bearer canary-0f3c-token"));
    assert_eq!(last.head.header("cookie"), Some("login=canary-77aa-cookie"));
    upstream.down();
    said += &client.once(&Call::new(Kind::Codex, "pay", "down")).text();
    guard.kill();
    said += &shop.logs();
    said += &shop.said();
    said += &shop.records(&["list", "--json"]).1;
    for file in fs::read_dir(shop.folder.path()).unwrap() {
        let path = file.unwrap().path();
        if path.is_file() {
            said += &String::from_utf8_lossy(&fs::read(path).unwrap());
        }
    }
    assert!(said.len() > 5_000, "there is something to look at");
    for canary in ["canary-0f3c", "canary-77aa", "canary-91bd", &session] {
        assert!(!said.contains(canary), "{canary} is in what the guard wrote");
    }
}
