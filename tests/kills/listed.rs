//! A shop that lists its payments, truly or not.
use super::{result, say};
use serde_json::{Value, json};
use std::{
    fs::{self, OpenOptions},
    io::{self, BufRead as _, Write as _},
    path::Path,
    process::exit,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

pub(crate) fn serve(folder: &Path, pids: &str) -> io::Result<()> {
    append(Path::new(pids), &format!("{}\n", std::process::id()))?;
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let (id, asked) = (message["id"].clone(), &message["params"]["arguments"]);
        if message["method"] != "tools/call" {
            if let Some(result) = result(&message) {
                say(&id, &result)?;
            }
        } else if message["params"]["name"] == "pay" {
            let folder = folder.to_owned();
            thread::spawn(move || say(&id, &pay(&folder, &message["params"])?));
        } else {
            say(&id, &list(folder, asked)?)?;
        }
    }
    Ok(())
}

fn append(path: &Path, line: &str) -> io::Result<()> {
    OpenOptions::new().append(true).create(true).open(path)?.write_all(line.as_bytes())
}

/// Pays. The first time that the order is paid, the process ends or waits before or after that, as is asked.
fn pay(folder: &Path, params: &Value) -> io::Result<Value> {
    let (asked, key) = (&params["arguments"], params["_meta"]["idempotencyKey"].as_str());
    let (order, key) = (asked["order"].as_str().unwrap_or_default(), key.unwrap_or_default());
    let began = folder.join(format!("{order}.began"));
    let is_first = !began.exists();
    let breaks = |when: &str| -> io::Result<()> {
        if is_first && asked["dies"] == when {
            fs::write(&began, "")?;
            exit(7);
        }
        if is_first && asked["waits"] == when {
            fs::write(&began, "")?;
            thread::park_timeout(Duration::from_secs(600));
        }
        Ok(())
    };
    breaks("before")?;
    let late = asked["late_ms"].as_u64().unwrap_or_default();
    let (at, amount) = (now(), &asked["amount"]);
    let line = format!("{key} {order} {amount} {at} {late} {}\n", asked["seed"]);
    append(&folder.join("ledger"), &line)?;
    breaks("after")?;
    Ok(json!({ "content": [{ "type": "text", "text": format!("paid {order}") }] }))
}

/// What the list says of an order, in one of the ways of the test.
fn list(folder: &Path, asked: &Value) -> io::Result<Value> {
    let (order, how) = (&asked["order"], asked["how"].as_str().unwrap_or_default());
    let ledger = fs::read_to_string(folder.join("ledger")).unwrap_or_default();
    let (mut all, mut draw) = (Vec::new(), now() % 5);
    for line in ledger.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let [_, name, amount, at, late, seed] = words[..] else { continue };
        let [amount, at, late, seed] = [amount, at, late, seed].map(|it| it.parse().unwrap_or(0));
        if *order != *name || (how == "late" && now() < at + late) {
            continue;
        }
        draw = seed % 5;
        let payment = |amount: u64| json!({ "order": name, "amount": amount, "at": at });
        match how {
            "instalments" => all.extend([payment(amount / 2), payment(amount / 2)]),
            _ => all.push(payment(amount)),
        }
    }
    let document = match (how, draw) {
        ("pages", 0) => json!({ "payments": [], "next_cursor": "p2" }),
        ("pages", 1) => json!({ "payments": all, "total": 40 }),
        ("pages", 2) => json!({ "payments": [], "page": { "hasMore": true } }),
        ("pages", 3) => json!({ "payments": [], "links": { "next": "/payments?page=2" } }),
        ("pages", _) => json!({ "payments": [], "total_pages": 2 }),
        ("lies", 0) => json!({ "payments": [], "warning": "the replica is behind" }),
        ("lies", 1) => json!({ "payments": [], "status": "degraded" }),
        ("lies", 2) => json!({ "payments": null }),
        ("lies", 3) => json!({ "payments": [], "error": { "code": 503 } }),
        ("lies", _) => {
            let text = json!([{ "type": "text", "text": "try again later" }]);
            return Ok(json!({ "content": text, "isError": now().is_multiple_of(2) }));
        }
        _ => json!({ "payments": all }),
    };
    if how == "late" {
        // What it lists is as old as that.
        thread::park_timeout(Duration::from_millis(now() % 900));
    }
    if now().is_multiple_of(2) {
        let text = json!([{ "type": "text", "text": document.to_string() }]);
        return Ok(json!({ "content": text }));
    }
    Ok(json!({ "content": [], "structuredContent": document }))
}

#[expect(clippy::disallowed_methods, reason = "a real server reads a real clock")]
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
