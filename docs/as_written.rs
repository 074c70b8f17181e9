//! Runs guides as a reader would who types them into an empty folder: `docs/start.md`, `docs/envelopes.md`,
//! `docs/documents.md`.
//!
//! A block ```` ```console ```` is run line by line, each behind its `$ `; one that ends with `&` runs until the guide ends. The
//! lines below a command are what it prints, where `…` stands for anything. A block ```` ```rust src/lib.rs ```` is written into
//! that file, in whichever language. The folder has this repository beside it, under the name that the guides use. It is the same folder each time,
//! not below this workspace, which `cargo new` would change; so a second run builds little. Crates come from cargo's own cache: what the guides need is in the workspace's lock file.
mod blocks;
mod folder;

use std::{
    env, fs,
    os::unix::process::CommandExt as _,
    path::Path,
    process::{Child, Command},
};

/// Follows a guide; the commands share one shell, so `cd` works.
fn follow(guide: &str) {
    let repository = folder::repository();
    let mut place = folder::emptied(guide);
    std::os::unix::fs::symlink(&repository, place.join("tool-reliability")).unwrap();
    let text = fs::read_to_string(repository.join("docs").join(guide)).unwrap();
    // Where it is installed; its records are this guide's own.
    let guard = env::var("TR_TOOL_GUARD").expect("`cargo xtask test` names the guard's binary");
    let installed = Path::new(&guard).parent().unwrap().display();
    let path = format!("{installed}:{}", env::var("PATH").unwrap());
    let state = place.join("state");
    let (mut ran, mut behind) = (0, Vec::new());
    for block in blocks::blocks(&text) {
        if let Some((_, file)) = block.language.split_once(' ') {
            fs::write(made(&place.join(file)), &block.text).unwrap();
        }
        if block.language != "console" {
            continue;
        }
        // Each command with what it is to print.
        for block_text in block.text.split("$ ").filter(|text| !text.is_empty()) {
            let (line, wanted) = block_text.split_once('\n').unwrap_or((block_text, ""));
            if let Some(inner) = line.strip_prefix("cd ") {
                place = place.join(inner);
                continue;
            }
            let line_alone = line.strip_suffix(" &");
            let mut command = Command::new("sh");
            command
                .args(["-c", line_alone.unwrap_or(line)])
                .current_dir(&place)
                .env("PATH", &path)
                .env("XDG_STATE_HOME", &state)
                .env("CARGO_NET_OFFLINE", "true")
                .env("CARGO_TARGET_DIR", folder::target());
            ran += 1;
            if line_alone.is_some() {
                behind.push(Behind(command.process_group(0).spawn().unwrap()));
                continue;
            }
            let output = command.output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{guide}:{}: {line}\n{said}", block.line);
            let printed = String::from_utf8_lossy(&output.stdout);
            assert!(is_like(&printed, wanted.trim_end()), "{guide}: {line}\n{printed}\n{wanted}");
        }
    }
    assert!(ran > 0, "{guide} has no commands");
}

/// A command that runs in the background, with the processes that it started.
struct Behind(Child);

impl Drop for Behind {
    fn drop(&mut self) {
        let kill = format!("kill -TERM -{}", self.0.id());
        drop(Command::new("sh").args(["-c", &kill]).status());
        drop(self.0.wait());
    }
}

/// Whether `printed` has the parts of `wanted` between `…`, in this order.
fn is_like(printed: &str, wanted: &str) -> bool {
    let mut rest = printed;
    wanted.split('…').all(|part| match rest.split_once(part) {
        Some((_, after)) => {
            rest = after;
            true
        }
        None => false,
    })
}

/// The path, with its folder made.
fn made(path: &Path) -> &Path {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    path
}

#[test]
fn from_an_empty_folder_to_a_payment_that_is_paid_once() {
    follow("start.md");
}

#[test]
fn from_an_empty_folder_to_an_envelope_that_curl_sends() {
    follow("envelopes.md");
}

#[test]
fn each_of_the_five_documents_is_played() {
    follow("documents.md");
}

#[test]
fn what_is_printed_is_compared_but_for_dots() {
    assert!(is_like("a 12 b\n", "a … b") && is_like("anything", ""));
    assert!(!is_like("a 12 c\n", "a … b") && !is_like("b a", "a…b"));
}
