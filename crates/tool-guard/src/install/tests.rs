//! Files as people write them, and files made at random: what is put in is taken out byte for byte.
use super::{
    client::Client,
    edit::{EditOptions, What, edit},
    servers::{Guarded, entries},
    shown::shown,
    tree::{line_of, read},
};
use clap::ValueEnum as _;
use proptest::prelude::*;
use std::{fs, path::Path};

const GUARD: &str = "/opt/tool guard/bin/tool-guard";

const fn order(undo: bool) -> EditOptions<'static> {
    EditOptions {
        guard: GUARD,
        server: None,
        http: false,
        catalog: None,
        undo,
        unfit: None,
        stale: None,
    }
}

/// Installs, again, and undoes; returns what was done with each server.
fn round(text: &str, client: Client, http: bool) -> Vec<What> {
    let form = client.form();
    let install = EditOptions { http, ..order(false) };
    let there = edit(text, form, &install).unwrap_or_else(|it| panic!("{client:?} {it:?}\n{text}"));
    let twice = edit(&there.text, form, &install).unwrap();
    assert_eq!(twice.text, there.text, "{client:?}: twice is once");
    assert!(twice.servers.iter().all(|done| done.what != What::Guarded), "{client:?}");
    let back = edit(&there.text, form, &order(true)).unwrap();
    assert_eq!(back.text, text, "{client:?}: undone byte for byte");
    // With a catalog at once, and given to the guard later, in place of another.
    let declare =
        |text: &str, catalog| edit(text, form, &EditOptions { catalog, ..install }).unwrap().text;
    let declared = declare(text, Some("/tools.toml"));
    for later in [&there.text, &declared, &declare(&there.text, Some("/a b.toml"))] {
        let later = declare(later, Some("/tools.toml"));
        assert_eq!(declare(&later, Some("/tools.toml")), later, "{client:?}: twice is once");
        let back = edit(&later, form, &order(true)).unwrap();
        assert_eq!(back.text, text, "{client:?}: undone byte for byte");
        let catalogs = later.matches("--catalog=/tools.toml").count();
        assert_eq!(catalogs, declared.matches("--catalog=/tools.toml").count(), "{later}");
    }
    assert!(shown(text, form).is_ok() && shown(&there.text, form).is_ok(), "{client:?}");
    let root = read(&there.text, form.syntax).unwrap();
    for (entry, done) in entries(root.as_ref(), form).unwrap().iter().zip(&there.servers) {
        let guarded = entry.reached(form).unwrap().guarded();
        assert_eq!(guarded == Guarded::Installed, done.what == What::Guarded, "{}", entry.name);
    }
    there.servers.into_iter().map(|done| done.what).collect()
}

/// `tests/data/install/CLIENT/…`, with the client of each.
fn files() -> Vec<(Client, String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/install");
    let mut all = Vec::new();
    for client in Client::value_variants() {
        for file in fs::read_dir(root.join(crate::terminal::word(client))).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            all.push((*client, name, fs::read_to_string(path).unwrap()));
        }
    }
    all
}

#[test]
fn thirty_files_are_as_before_after_undo() {
    let files = files();
    assert!(files.len() >= 30, "{}", files.len());
    let (mut guarded, mut refused) = (0, 0);
    for (client, name, text) in files {
        for http in [false, true] {
            if name.starts_with("refused") {
                let refusal = edit(&text, client.form(), &EditOptions { http, ..order(false) });
                let refusal = refusal.expect_err(&name);
                let marked = text.lines().position(|line| line.contains("HERE"));
                assert_eq!(
                    Some(line_of(&text, refusal.at) - 1),
                    marked,
                    "{name}: {}",
                    refusal.what
                );
                refused += 1;
            } else {
                let done = round(&text, client, http);
                guarded += done.iter().filter(|what| **what == What::Guarded).count();
            }
        }
    }
    assert!(guarded > 50 && refused >= 10, "{guarded} {refused}");
}

#[test]
fn words_keep_their_spelling_and_their_lines() {
    let codex = "[mcp_servers.a] # mine\r\ncommand = 'npx' # c\r\nenv = { A = \"1\" }\r\n";
    let there = edit(codex, Client::Codex.form(), &order(false)).unwrap().text;
    assert_eq!(
        there,
        "[mcp_servers.a] # mine\r\nargs = [\"mcp\", 'npx']\r\ncommand = \"/opt/tool guard/bin/tool-guard\" # c\r\nenv = { A = \"1\" }\r\n"
    );
    let lines = "{\"mcpServers\": {\"a\": {\"command\": \"npx\", \"args\": [\n  // first\n  \"-y\",\n  \"x\",\n]}}}";
    let there = edit(lines, Client::Cursor.form(), &order(false)).unwrap().text;
    assert!(
        there.contains("[\n  // first\n  \"mcp\",\n  \"--\",\n  \"npx\",\n  \"-y\",\n  \"x\",\n]"),
        "{there}"
    );
}

/// A tool that may take ten minutes in the client may take them behind the guard.
#[test]
fn the_clients_own_limit_is_taken_over() {
    let claude = |limit: &str, rest: &str| {
        format!(r#"{{"mcpServers": {{"a": {{{rest}, "timeout": {limit}}}}}}}"#)
    };
    let codex = "[mcp_servers.a]\ncommand = \"npx\"\nargs = [\"x\"]\ntool_timeout_sec = ";
    let command = r#""command": "npx", "args": ["x"]"#;
    for (client, text, word) in [
        (Client::ClaudeCode, claude("600000", command), Some("--timeout=598s")),
        (Client::Gemini, claude("600000", r#""command": "npx""#), Some("--timeout=598s")),
        (Client::Gemini, claude("4500", r#""httpUrl": "https://h/mcp""#), Some("--timeout=2500ms")),
        (Client::ClaudeCode, claude("1000", command), Some("--timeout=500ms")),
        (Client::Codex, format!("{codex}55.5\n"), Some("--timeout=53500ms")),
        (Client::Codex, format!("{codex}600\n"), Some("--timeout=598s")),
        // None of these is a limit that the guard could hold.
        (Client::ClaudeCode, claude("0", command), None),
        (Client::ClaudeCode, claude("\"600\"", command), None),
        (Client::ClaudeCode, claude("1e30", command), None),
        (Client::Cursor, claude("600000", command), None),
    ] {
        assert_eq!(round(&text, client, true), [What::Guarded], "{text}");
        let install = EditOptions { http: true, ..order(false) };
        let there = edit(&text, client.form(), &install).unwrap().text;
        match word {
            Some(word) => assert!(there.contains(word), "{there}"),
            None => assert!(!there.contains("--timeout"), "{there}"),
        }
    }
    let by_hand = claude(
        "600000",
        r#""command": "/b/tool-guard", "args": ["mcp", "--timeout", "5s", "--", "npx"]"#,
    );
    let back = edit(&by_hand, Client::ClaudeCode.form(), &order(true)).unwrap();
    assert_eq!((back.servers[0].what.clone(), back.text), (What::ByHand, by_hand));
}

#[test]
fn what_was_added_since_stays() {
    let text = r#"{"mcpServers": {"a": {"command": "npx", "args": ["x"]}, "b": {"command": "b"}}}"#;
    let form = Client::ClaudeCode.form();
    let there = edit(text, form, &order(false)).unwrap().text;
    let since = there.replace("\"x\"", "\"x\", \"--more\"").replace("\"b\"]", "\"b\", \"-v\"]");
    let back = edit(&since, form, &order(true)).unwrap().text;
    let mine = r#"{"mcpServers": {"a": {"command": "npx", "args": ["x", "--more"]}, "b": {"args": ["mcp", "b", "-v"], "command": "/opt/tool guard/bin/tool-guard"}}}"#;
    assert_eq!(back, mine, "the changed list of the second is no form of ours");
    let between = there.replace("\"--\", ", "\"--\", /* why */ ");
    let refusal = edit(&between, form, &order(true)).unwrap_err();
    assert!(refusal.what.contains("by hand"), "{}", refusal.what);
}

#[test]
fn a_server_over_http_is_left_unless_it_is_asked_for() {
    let text = r#"{"mcpServers": {"a": {"type": "http", "url": "https://h/mcp"}}}"#;
    let done = round(text, Client::ClaudeCode, false);
    assert!(matches!(&done[..], [What::Left(why)] if why.contains("--http")), "{done:?}");
    assert_eq!(round(text, Client::ClaudeCode, true), [What::Guarded]);
    let headers = text.replace("\"url\"", "\"headers\": {\"A\": \"k\"}, \"url\"");
    let done = round(&headers, Client::ClaudeCode, true);
    assert!(matches!(&done[..], [What::Left(why)] if why.contains("--header-file")), "{done:?}");
    // All users of the machine can read it.
    for (path, what) in [
        ("api/mcp/s/NjQ2ZTk3SEKRET0123456789abcdef/mcp", None),
        ("mcp/0b6f2a1c-9d3e-4f5a-8b7c-6d5e4f3a2b1c", None),
        ("mcp/0123456789012345", None),
        ("api/v2/streamable-http-endpoint-2025-11-25/mcp", Some(What::Guarded)),
    ] {
        let done = round(&text.replace("h/mcp", &format!("h/{path}")), Client::ClaudeCode, true);
        let is_left = matches!(&done[..], [What::Left(why)] if why.contains("may be a secret"));
        assert_eq!((is_left, done.first() == what.as_ref()), (what.is_none(), !is_left), "{path}");
    }
    let codex = "[mcp_servers.a]\nurl = \"https://h/mcp\" # c\n";
    assert_eq!(round(codex, Client::Codex, true), [What::Guarded]);
    let opencode = r#"{"mcp": {"a": {"type": "remote", "url": "https://h/mcp", "enabled": true}}}"#;
    assert_eq!(round(opencode, Client::Opencode, true), [What::Guarded]);
}

#[test]
fn a_guard_written_by_hand_stays() {
    for command in [
        "\"tool-guard\", \"args\": [\"mcp\", \"--\", \"npx\"]",
        "\"/b/tool-guard\", \"args\": [\"mcp\", \"--log\", \"info\", \"--\", \"npx\"]",
        // Behind another program.
        "\"env\", \"args\": [\"A=1\", \"tool-guard\", \"mcp\", \"--\", \"npx\"]",
        "\"sh\", \"args\": [\"-c\", \"exec /b/tool-guard mcp -- npx x\"]",
        "\"uvx\", \"args\": [\"tool-guard\", \"mcp\", \"--upstream\", \"https://h/mcp\"]",
    ] {
        let text = format!("{{\"mcpServers\": {{\"a\": {{\"command\": {command}}}}}}}");
        let form = Client::Cursor.form();
        let install = edit(&text, form, &order(false)).unwrap();
        assert_eq!((&install.text, &install.servers[0].what), (&text, &What::AlreadyGuarded));
        let undo = edit(&text, form, &order(true)).unwrap();
        assert_eq!((&undo.text, &undo.servers[0].what), (&text, &What::ByHand));
    }
}

/// White space and comments between two words.
fn gap(is_json: bool) -> impl Strategy<Value = String> {
    let all = ["", " ", "\n", "\r\n\t", "\n    ", "  ", " /* c, */ ", "\n  // \"x\"\n  "];
    prop::sample::select(if is_json { &all[..] } else { &all[..6] }.to_vec())
        .prop_map(str::to_owned)
}

fn word() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "npx",
        "-y",
        "--",
        "mcp",
        "/a b/c",
        "${HOME}/x",
        "ä\\n\\u0041",
        "",
        "tool-guard",
    ])
    .prop_map(|it| format!("\"{it}\""))
}

/// The words of a command that does not start the guard.
fn words() -> impl Strategy<Value = Vec<String>> {
    let wraps = |words: &[String]| words.windows(2).any(|it| it == ["\"tool-guard\"", "\"mcp\""]);
    prop::collection::vec(word(), 0..4).prop_filter("it is guarded", move |words| !wraps(words))
}

prop_compose! {
    fn server(is_list: bool)(
        command in "[a-z]{1,8}", words in words(), gaps in prop::collection::vec(gap(true), 8),
        has_args in any::<bool>(), is_first in any::<bool>(), trailing in any::<bool>(), env in any::<bool>(),
    ) -> String {
        let g = |at: usize| gaps[at].as_str();
        let comma = format!("{},{}", g(0), g(1));
        let list = |words: &[String]| {
            let end = if trailing && !words.is_empty() { "," } else { "" };
            format!("[{}{}{end}{}]", g(2), words.join(&comma), g(3))
        };
        let mut members = Vec::new();
        if is_list {
            let mut all = vec![format!("\"{command}\"")];
            all.extend(words);
            members.push(format!("\"command\"{}:{}{}", g(4), g(5), list(&all)));
        } else {
            members.push(format!("\"command\"{}:{}\"{command}\"", g(4), g(5)));
            if has_args {
                let args = format!("\"args\":{}{}", g(6), list(&words));
                members.insert(usize::from(!is_first), args);
            }
        }
        if env {
            members.push("\"env\": {\"A\": \"1\"}".into());
        }
        let end = if trailing { "," } else { "" };
        format!("{{{}{}{end}{}}}", g(7), members.join(&comma), g(0))
    }
}

proptest! {
    #[test]
    fn undo_gives_back_each_byte_of_json(
        servers in prop::collection::vec(server(false), 0..4), space in gap(true), has_bom in any::<bool>(),
    ) {
        let servers: Vec<_> = servers.iter().enumerate().map(|(at, it)| format!("\"s{at}\":{space}{it}")).collect();
        let bom = if has_bom { "\u{feff}" } else { "" };
        let text = format!("{bom}{{{space}\"mcpServers\": {{{}}}{space}}}{space}", servers.join(",\n"));
        let done = round(&text, Client::Cursor, false);
        prop_assert!(done.iter().all(|what| *what == What::Guarded));
    }

    #[test]
    fn undo_gives_back_each_byte_of_lists(servers in prop::collection::vec(server(true), 0..4), space in gap(true)) {
        let servers: Vec<_> = servers.iter().enumerate().map(|(at, it)| format!("\"s{at}\":{space}{it}")).collect();
        let text = format!("{{\"mcp\": {{{}}}}}", servers.join(","));
        let done = round(&text, Client::Opencode, false);
        prop_assert!(done.iter().all(|what| *what == What::Guarded));
    }

    #[test]
    fn undo_gives_back_each_byte_of_toml(
        words in words(), indent in prop::sample::select(vec!["", "  ", "\t"]),
        newline in prop::sample::select(vec!["\n", "\r\n"]), quote in prop::sample::select(vec!["\"", "'", "'''"]),
        has_args in any::<bool>(), is_inline in any::<bool>(), is_first in any::<bool>(),
    ) {
        let mut members = vec![format!("command = {quote}npx{quote}")];
        if has_args {
            let between = if is_inline { ", ".to_owned() } else { format!(",{newline}    # c{newline}  ") };
            members.insert(usize::from(!is_first), format!("args = [{}]", words.join(&between)));
        }
        let text = if is_inline {
            format!("model = \"m\"{newline}mcp_servers.a = {{ {} }} # end{newline}", members.join(", "))
        } else {
            let lines: String = members.iter().map(|it| format!("{indent}{it} # c{newline}")).collect();
            format!("# mine{newline}{newline}[mcp_servers.\"a b\"]{newline}{lines}{newline}[mcp_servers.\"a b\".env]{newline}A = \"1\"")
        };
        prop_assert_eq!(round(&text, Client::Codex, false), [What::Guarded]);
    }

    #[test]
    fn any_text_is_edited_or_refused(text in "[\\[\\]{}:,\"'a-z#/* \n=.]{0,60}", client in 0..7_usize) {
        let client = Client::value_variants()[client];
        let _ = shown(&text, client.form());
        if let Ok(edited) = edit(&text, client.form(), &order(false)) {
            prop_assert_eq!(edit(&edited.text, client.form(), &order(true)).unwrap().text, text);
        }
    }

    #[test]
    fn values_and_comments_are_hidden(
        servers in prop::collection::vec(server(false), 1..4), space in gap(true), http in any::<bool>(),
    ) {
        let servers: Vec<_> = servers.iter().enumerate().map(|(at, it)| {
            let it = it.replace("/* c, ", "/* SECRET ").replace("// \"x\"", "// SECRET");
            let it = it.replace("\"1\"", "\"SECRET\"").replace("\"-y\"", "\"SECRET\"");
            format!("\"s{at}\":{space}{it}")
        }).collect();
        let text = format!("{{\"mcpServers\": {{{}, \"u\": {{\"url\": \"https://h/SECRET\"}}}}}}// SECRET", servers.join(",\n"));
        let form = Client::Cursor.form();
        let there = edit(&text, form, &EditOptions { http, ..order(false) }).unwrap().text;
        for text in [text, there] {
            let shown = shown(&text, form).unwrap();
            prop_assert!(!shown.contains("SECRET"), "{shown}");
            prop_assert!(shown.contains("https://h/***"), "{shown}");
        }
    }
}
