//! Files that are no sessions: each is named with the reason, and no command changes it.
use super::folder::Folder;

const PACKAGE: &str = r#"{
  "name": "shop",
  "version": "1.0.0",
  "scripts": { "test": "node test.js" },
  "contributors": [
    { "name": "me", "role": "user" },
    { "name": "you", "role": "admin" }
  ],
  "input": "src/index.js"
}
"#;

const README: &str = r#"# Sessions

Each line is an object:

```json
{"role":"user","content":"Pay order 42."}
{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"pay","input":{}}]}
{"role":"user","content":"Did it work?"}
```

More about it is in the [guide](guide.md).

- first, stop the agent
- then look at the file
- then start it again
"#;

const YAML: &str = r#"# what is run
on: {"push": {"branches": ["main"]}}
jobs:
  test: {"runs-on": "linux", "message": {"role": "user", "content": "x"}}
  steps:
    - {"type": "user", "message": {"role": "user"}}
    - run: make
"#;

const LOG: &str = r#"2026-01-01T00:00:00Z INFO sent {"role":"user","content":"Pay order 42."}
2026-01-01T00:00:01Z INFO got {"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"pay","input":{}}]}
2026-01-01T00:00:02Z INFO sent {"role":"user","content":"Did it work?"}
"#;

const JSON_LOG: &str = r#"{"level":"info","type":"login","role":"user","message":"welcome","time":1}
{"level":"info","type":"user","message":{"text":"hello"},"role":"admin","time":2}
{"level":"warn","type":"message","message":"slow","role":"user","time":3}
{"level":"info","type":"assistant","message":"on duty","id":"7","time":4}
"#;

const TSCONFIG: &str = r#"{
  // what is compiled
  "compilerOptions": { "target": "es2022", },
  "include": ["src"],
  "messages": [{ "role": "user", "content": "x" }],
}
"#;

#[test]
fn what_is_no_session_stays_as_it_is() {
    let files: [(&str, &[u8]); 15] = [
        ("package.json", PACKAGE.as_bytes()),
        ("README.md", README.as_bytes()),
        ("ci.yaml", YAML.as_bytes()),
        ("app.log", LOG.as_bytes()),
        ("app.jsonl", JSON_LOG.as_bytes()),
        ("tsconfig.json", TSCONFIG.as_bytes()),
        (
            "binary",
            b"\x7fELF\x02\0{\"role\":\"user\",\"content\":\"x\"}\0\0\xff\xfe\n\x80{\"a\":1}\0",
        ),
        ("jsconfig.json", b"{\n  // all of it\n  \"include\": [\"src\"],\n}\n"),
        ("users.json", br#"[{"role":"admin","name":"me"},{"role":"guest","name":"you"}]"#),
        ("rollup.json", br#"{"input":"src/index.js","output":"dist/index.js"}"#),
        ("box.json", br#"{"contents":[{"name":"apple","weight":3},{"name":"pear"}]}"#),
        ("en.json", br#"{"messages":{"hello":"Hello"}}"#),
        ("numbers.json", b"[1,2,3]"),
        ("lint.json", br#"[{"filePath":"a.js","messages":[{"ruleId":"x","message":"no"}]}]"#),
        (
            "train.jsonl",
            b"{\"prompt\":\"a\",\"completion\":\"b\"}\n{\"prompt\":\"c\",\"completion\":\"d\"}\n",
        ),
    ];
    let commands: [&[&str]; 7] = [
        &["check"],
        &["repair", "--write"],
        &["repair", "--mode", "remove", "--close-tail", "--write"],
        &["diff"],
        &["checkpoints", "--create"],
        &["rollback", "--before-fault", "--write"],
        &["reset", "--write"],
    ];
    let folder = Folder::new();
    for (name, bytes) in files {
        folder.write(name, bytes);
    }
    let names = folder.names();
    for command in commands {
        for (name, bytes) in files {
            let done = folder.session(&[command, &[name]].concat());
            // One is a broken text with messages in it: it may have been a session.
            if name == "tsconfig.json" {
                assert_eq!(done.code, 2, "{command:?} {name}: {}{}", done.out, done.err);
                assert!(
                    done.err.starts_with(&format!("✗ {name} is no whole JSON")),
                    "{}",
                    done.err
                );
            } else {
                assert_eq!(done.code, 3, "{command:?} {name}: {}{}", done.out, done.err);
                let said = format!("? {name}\n  not judged: it is no session: ");
                assert!(done.out.starts_with(&said), "{name}: {}", done.out);
            }
            assert_eq!(std::fs::read(folder.path(name)).unwrap(), bytes, "{command:?} {name}");
        }
    }
    let (lines, code) = folder.json(&["repair", "--write", "."]);
    assert_eq!(code, 2, "there is no session in it");
    let skipped = lines.iter().filter(|line| line["status"] == "skipped").count();
    // A broken text with messages may have been a session: it is named as unreadable.
    assert_eq!(skipped, files.len() - 1, "{lines:?}");
    assert_eq!(folder.names(), names);
}

/// A request that a few bytes have broken is not taken apart: it cost 98 % of it.
#[test]
fn a_request_with_nul_bytes_is_left_whole() {
    let folder = Folder::new();
    let item = r#"{"type":"message","role":"user","content":"Pay order 42."}"#;
    let items = vec![item; 50];
    let one_line = format!(r#"{{"model":"m","input":[{}]}}"#, items.join(","));
    let many_lines = format!("{{\"model\":\"m\",\"input\":[\n{}\n]}}\n", items.join(",\n"));
    let array = format!("[\n{}\n]\n", items.join(",\n"));
    for text in [one_line, many_lines, array] {
        let mut bytes = text.into_bytes();
        let middle = bytes.len() / 2;
        bytes[middle..middle + 4].fill(0);
        folder.write("s.json", &bytes);
        for command in [&["check"][..], &["repair", "--write"], &["reset", "--write"]] {
            let done = folder.session(&[command, &["s.json"]].concat());
            assert_eq!(done.code, 2, "{}{}", done.out, done.err);
            assert_eq!(std::fs::read(folder.path("s.json")).unwrap(), bytes, "{command:?}");
        }
    }
}

/// Messages that are not understood stay, whatever is wrong beside them.
#[test]
fn a_repair_changes_nothing_that_is_not_understood() {
    let folder = Folder::new();
    let text = r#"[
{"role":"user","text":"Pay order 42"},
{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"pay","input":{}}]},
{"role":"user","text":"and?"},
{"role":"user","content":"Did it work?"}
]"#;
    folder.write("s.json", text);
    for mode in ["preserve", "remove"] {
        let done = folder.session(&["repair", "--mode", mode, "--write", "s.json"]);
        assert_ne!(done.code, 0, "{}{}", done.out, done.err);
        let now = folder.read("s.json");
        assert!(now.contains("Pay order 42") && now.contains(r#""and?""#), "{now}");
        folder.write("s.json", text);
    }
    // What only a change of what is not understood would mend is not judged.
    let damaged = r#"[
{"role":"user","content":"hi"},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"receipt 7","seal":"x"}]}
]"#;
    folder.write("s.json", damaged);
    let done = folder.ends(3, &["repair", "--write", "s.json"]);
    assert!(done.out.contains("the repair would change message"), "{}", done.out);
    assert_eq!(folder.read("s.json"), damaged);
}
