//! npm's server-filesystem: tools that change things, and answers that hold paths, sizes and times.
use crate::{
    compare,
    peer::{GUARDED, Server, Way},
    session::{Session, Step},
};
use serde_json::{Value, json};
use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

/// An image of one pixel.
const PIXEL: &[u8] = b"GIF89a\x01\0\x01\0\x80\0\0\0\0\0\xff\xff\xff!\xf9\x04\x01\0\0\0\0,\0\0\0\0\x01\0\x01\0\0\x02\x02D\x01\0;";

#[test]
fn files_are_read_and_written() {
    in_every_mode("changes", changes);
}

#[test]
fn what_is_refused_is_refused() {
    in_every_mode("refusals", refusals);
}

/// What a session has: a folder to change, which each session finds as the one before it did, and
/// one that stays.
struct Folders {
    work: PathBuf,
    still: PathBuf,
}

impl Folders {
    fn new(name: &str) -> Self {
        let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let folders = Self { work: root.join("work"), still: root.join("still") };
        let _ = fs::remove_dir_all(&root);
        fs::create_dir_all(&folders.still).unwrap();
        let file = folders.still.join("never read.txt");
        fs::write(&file, "Its times are those of the first session.\n").unwrap();
        let noon = UNIX_EPOCH + Duration::from_secs(1_767_268_800);
        File::options().write(true).open(file).unwrap().set_modified(noon).unwrap();
        folders
    }

    fn server(&self) -> Server {
        Server::filesystem([self.work.clone(), self.still.clone()])
    }

    fn renew(&self) {
        let _ = fs::remove_dir_all(&self.work);
        fs::create_dir_all(self.work.join("deep/er")).unwrap();
        fs::write(self.work.join("lines.txt"), "one\ntwo\r\nthree\n\u{feff}späß 🦀\n").unwrap();
        fs::write(self.work.join("pixel.gif"), PIXEL).unwrap();
        fs::write(self.work.join("bytes.bin"), [0, 255, 128, 10]).unwrap();
        fs::write(self.work.join("deep/er/empty.md"), "").unwrap();
    }

    /// All files of the folder to change and what they hold.
    fn contents(&self) -> Vec<(PathBuf, Vec<u8>)> {
        fn walk(folder: &Path, all: &mut Vec<(PathBuf, Vec<u8>)>) {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    walk(&path, all);
                } else {
                    all.push((path.clone(), fs::read(&path).unwrap()));
                }
            }
        }
        let mut all = Vec::new();
        walk(&self.work, &mut all);
        all.sort();
        all
    }
}

/// Runs `script` directly and then in every mode, each time in the same folders.
fn in_every_mode(name: &str, script: fn(&Folders, &mut Session)) {
    let folders = Folders::new(name);
    let run = |way| -> (Vec<Step>, _) {
        folders.renew();
        let mut session = Session::start(&folders.server(), way);
        hello(&mut session);
        script(&folders, &mut session);
        (session.leave(), folders.contents())
    };
    let (direct, left) = run(Way::Direct);
    for way in GUARDED {
        let (guarded, left_guarded) = run(way);
        compare::assert_same(way, &direct, &guarded);
        assert_eq!(left, left_guarded, "{way:?}");
    }
}

fn hello(session: &mut Session) {
    session.request("initialize", json!({
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "mcp-peers", "version": "0" },
    }));
    session.aside(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    for list in ["tools", "resources", "prompts"] {
        session.request(&format!("{list}/list"), json!({}));
    }
}

/// Calls a tool that succeeds.
fn call(session: &mut Session, tool: &str, arguments: Value) -> Value {
    let answer = session.call(tool, arguments);
    assert!(answer["error"].is_null() && answer["result"]["isError"] != true, "{tool}: {answer}");
    answer
}

/// Calls a tool that fails.
fn refused(session: &mut Session, tool: &str, arguments: Value) {
    let answer = session.call(tool, arguments);
    assert!(answer["error"].is_object() || answer["result"]["isError"] == true, "{tool}: {answer}");
}

fn changes(folders: &Folders, session: &mut Session) {
    let at = |name: &str| folders.work.join(name);
    call(session, "list_allowed_directories", json!({}));
    call(session, "get_file_info", json!({ "path": folders.still.join("never read.txt") }));
    look(folders, session);

    call(
        session,
        "write_file",
        json!({ "path": at("new.txt"), "content": "a\u{2028}b \\ \"c\"\n" }),
    );
    call(session, "write_file", json!({ "path": at("new.txt"), "content": "again\n" }));
    let large = "0123456789abcde\n".repeat(100_000);
    call(session, "write_file", json!({ "path": at("large.txt"), "content": large }));
    let read = call(session, "read_text_file", json!({ "path": at("large.txt") }));
    assert_eq!(read["result"]["structuredContent"]["content"], large);

    let edit = json!({ "path": at("lines.txt"), "edits": [{ "oldText": "two", "newText": "2" }] });
    call(session, "edit_file", edit.clone());
    // An edit that is repeated would not find its text.
    refused(session, "edit_file", edit);
    call(session, "create_directory", json!({ "path": at("made/here") }));
    call(
        session,
        "move_file",
        json!({ "source": at("new.txt"), "destination": at("made/here/moved.txt") }),
    );
    refused(session, "move_file", json!({ "source": at("new.txt"), "destination": at("x") }));
    look(folders, session);
}

fn look(folders: &Folders, session: &mut Session) {
    let at = |name: &str| folders.work.join(name);
    for (tool, arguments) in [
        ("read_file", json!({ "path": at("lines.txt") })),
        ("read_text_file", json!({ "path": at("lines.txt"), "head": 2 })),
        ("read_text_file", json!({ "path": at("lines.txt"), "tail": 1 })),
        ("read_text_file", json!({ "path": at("deep/er/empty.md") })),
        ("read_media_file", json!({ "path": at("pixel.gif") })),
        ("read_media_file", json!({ "path": at("bytes.bin") })),
        // Of three files one is not there, which is no failure of the call.
        (
            "read_multiple_files",
            json!({ "paths": [at("lines.txt"), at("nowhere"), at("bytes.bin")] }),
        ),
        ("list_directory", json!({ "path": at("") })),
        ("list_directory_with_sizes", json!({ "path": at(""), "sortBy": "size" })),
        ("directory_tree", json!({ "path": at(""), "excludePatterns": ["*.bin"] })),
        ("search_files", json!({ "path": at(""), "pattern": "**/*.md" })),
        ("search_files", json!({ "path": at(""), "pattern": "no such file" })),
    ] {
        call(session, tool, arguments);
    }
}

fn refusals(folders: &Folders, session: &mut Session) {
    let at = |name: &str| folders.work.join(name);
    refused(session, "read_text_file", json!({ "path": "/etc/hostname" }));
    refused(session, "write_file", json!({ "path": at("../escaped"), "content": "x" }));
    refused(session, "read_text_file", json!({ "path": at("nowhere") }));
    refused(session, "read_text_file", json!({ "file": at("lines.txt") }));
    assert!(!folders.work.join("../escaped").exists());
    call(session, "read_text_file", json!({ "path": at("lines.txt") }));
    session.request("no/such/method", json!({}));
    // From now on it has the client's folder only.
    let client = json!({ "name": "mcp-peers", "version": "0" });
    session.request(
        "initialize",
        json!({
            "protocolVersion": "2025-11-25", "capabilities": { "roots": {} }, "clientInfo": client,
        }),
    );
    session.notify("notifications/initialized", json!({}), |message| {
        message["method"] == "roots/list"
    });
    // It checks the folder before it uses it, without a notification.
    session.call_until("list_allowed_directories", json!({}), |answer| {
        !answer.to_string().contains("still")
    });
}
