//! Runs guides as a reader would who types them into an empty folder: `docs/start.md`.
//!
//! A block ```` ```console ```` is run line by line, each behind its `$ `; a block ```` ```rust src/lib.rs ```` is written into
//! that file. The folder has this repository beside it, under the name that the guides use. It is the same folder each time,
//! not below this workspace, which `cargo new` would change; so a second run builds little. Crates come from cargo's own cache: what the guides need is in the workspace's lock file.
mod blocks;
mod folder;

use std::{fs, path::Path, process::Command};

/// Follows a guide; the commands share one shell, so `cd` works.
fn follow(guide: &str) {
    let repository = folder::repository();
    let mut place = folder::emptied(guide);
    std::os::unix::fs::symlink(&repository, place.join("tool-reliability")).unwrap();
    let text = fs::read_to_string(repository.join("docs").join(guide)).unwrap();
    let mut ran = 0;
    for block in blocks::blocks(&text) {
        if let Some(file) = block.language.strip_prefix("rust ") {
            fs::write(made(&place.join(file)), &block.text).unwrap();
        }
        if block.language != "console" {
            continue;
        }
        for line in block.text.lines().filter_map(|line| line.strip_prefix("$ ")) {
            if let Some(inner) = line.strip_prefix("cd ") {
                place = place.join(inner);
                continue;
            }
            let output = Command::new("sh")
                .args(["-c", line])
                .current_dir(&place)
                .env("CARGO_NET_OFFLINE", "true")
                .env("CARGO_TARGET_DIR", folder::target())
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{guide}:{}: {line}\n{said}", block.line);
            ran += 1;
        }
    }
    assert!(ran > 0, "{guide} has no commands");
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
