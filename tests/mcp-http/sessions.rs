//! Many sessions of a command, and commands that know none or nothing else.
use crate::{
    child::paid,
    client::{Call, Era, Http, Kind, Seen},
    guard::{Shop, Way},
    wire::until,
};
use serde_json::{Value, json};

/// A server of the versions with sessions, and of nothing else.
const LEGACY: &str = r#"
while read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*) echo begun >> "$1"
      said='"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"method":"tools/list"'*) said='"result":{"tools":[{"name":"pay","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*) echo paid >> "$1"
      said='"result":{"content":[{"type":"text","text":"receipt"}]}' ;;
    *'"method":"server/discover"'*) echo discovered >> "$1"
      said='"error":{"code":-32601,"message":"Method not found"}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$said"
done"#;

fn begin(http: &mut Http) -> Seen {
    let info = json!({ "name": "many", "version": "1" });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info });
    http.request("initialize", params)
}

fn pay() -> Call {
    Call::new(Kind::Keyed, "pay", "42")
}

#[test]
fn sessions_beyond_the_limit_get_503_and_begin_nothing() {
    let shop = Shop::over_script(LEGACY).with(["--max-sessions", "4"]);
    let guard = shop.listen(Way::HttpStdio);
    let open = || Http::open(&guard.url, Kind::Keyed, Era::Legacy);
    let mut sessions: Vec<_> = (0..4).map(|_| open()).collect();
    assert_eq!(paid(&shop, "begun"), 4);
    let mut late = Http::new(&guard.url, Kind::Keyed, Era::Legacy);
    let seen = begin(&mut late);
    assert!(seen.is_status(503) && late.session.is_none(), "{seen:?}");
    // None of them has been idle for a minute.
    let wait = seen
        .text()
        .split("send it again in ")
        .nth(1)
        .and_then(|it| it.split(' ').next()?.parse::<u64>().ok());
    assert!(wait.is_some_and(|wait| (1..=60).contains(&wait)), "{seen:?}");
    assert!(sessions[0].once(&pay()).is_success());
    assert_eq!((paid(&shop, "begun"), paid(&shop, "paid")), (4, 1));
    // One that ends makes room.
    let one = sessions.pop().unwrap();
    let session = one.session.clone().unwrap();
    let head = format!(
        "DELETE /mcp HTTP/1.1\r\nhost: {}\r\nmcp-session-id: {session}\r\n\r\n",
        one.authority()
    );
    let (head, _) = crate::client::ask(one.authority(), head.as_bytes(), &Value::Null);
    assert_eq!(head.unwrap().status(), 200);
    let seen = begin(&mut late);
    assert!(matches!(seen, Seen::Answer(_)) && late.session.is_some(), "{seen:?}");
    assert_eq!(paid(&shop, "begun"), 5);
}

/// Clients fall back to `initialize` by that answer, and the server is asked once.
#[test]
fn a_command_of_older_versions_refuses_the_newest_again_and_again() {
    let shop = Shop::over_script(LEGACY);
    let guard = shop.listen(Way::HttpStdio);
    for _ in 0..3 {
        let mut modern = Http::new(&guard.url, Kind::Keyed, Era::Modern);
        let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "mcp-http", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {} });
        let seen = modern.request("server/discover", json!({ "_meta": meta }));
        assert!(
            matches!(&seen, Seen::Status { status: 400, body, .. } if body.contains("-32000")),
            "{seen:?}"
        );
        assert_eq!(paid(&shop, "discovered"), 1);
        let mut fallen_back = Http::open(&guard.url, Kind::Keyed, Era::Legacy);
        assert!(fallen_back.once(&Call::new(Kind::Keyed, "pay", "42")).is_success());
    }
    assert_eq!(paid(&shop, "paid"), 3);
}

/// A command of the newest version: who comes later, and with another credential, finds the same process.
#[test]
fn requests_without_sessions_share_a_command_until_it_ends() {
    let shop = Shop::over_child();
    let guard = shop.listen(Way::HttpStdio);
    let pid = |token: &str| {
        let client = Http::new(&guard.url, Kind::Keyless, Era::Modern);
        let mut client = client.with("authorization", token);
        client.begin();
        client.once(&Call::new(Kind::Keyless, "pid", "42")).text()
    };
    let first = pid("Bearer a");
    assert!(first.parse::<u32>().is_ok(), "{first}");
    assert_eq!([pid("Bearer b"), pid("Bearer a")], [first.clone(), first.clone()]);
    let mut client = Http::open(&guard.url, Kind::Keyless, Era::Modern);
    assert!(client.once(&Call::new(Kind::Keyless, "pay", "crash")).is_in_band_failure());
    let second = until("it is started again", || {
        let text = pid("Bearer a");
        text.parse::<u32>().ok().map(|_| text)
    });
    assert_ne!(first, second);
    assert_eq!(pid("Bearer b"), second);
    assert_eq!(paid(&shop, "crash"), 1);
}
