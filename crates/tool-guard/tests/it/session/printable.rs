//! Nothing that others have named acts on the terminal of who looks at it.
use super::{
    bad_database::database_of,
    folder::{Folder, ORPHANED},
};

/// Clears the screen, begins a line, sets the title, and turns what follows round.
const ATTACK: &str = "\u{1b}[2J\n✓ \u{9b}2J\u{1b}]0;x\u{7}\u{202e}";

/// What our own styles begin and end with.
const STYLES: [&str; 6] =
    ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m"];

fn harmless(folder: &Folder, arguments: &[&str]) -> String {
    // As to a terminal, but into a pipe.
    let output = folder.command(arguments).env("CLICOLOR_FORCE", "1").output().unwrap();
    let mut said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    for style in STYLES {
        said = said.replace(style, "");
    }
    let acts = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert!(!said.contains(acts), "{arguments:?}: {said:?}");
    assert!(!said.lines().any(|line| line.starts_with("✓ \\u{9b}")), "{arguments:?}: {said}");
    said
}

#[tokio::test]
async fn what_others_named_is_shown_and_does_nothing() {
    let folder = Folder::new();
    let name = format!("a{ATTACK}.json");
    let id = serde_json::to_string(ATTACK).unwrap();
    let session =
        ORPHANED.replace("\"toolu_01A\"", &id).replace("I pay it.", "I \u{202e}pay\u{9b} it.");
    folder.write(&name, &session);
    folder.write("notes/b\u{1b}[2J.md", "hello");
    database_of(&folder.path("s.db"), ATTACK).await.close().await;
    for json in [&[][..], &["--json"]] {
        for (target, several) in
            [(&[&*name][..], false), (&["--session", ATTACK, "s.db"], false), (&["."], true)]
        {
            let commands: [&[&str]; 7] = [
                &["check"],
                &["diff"],
                &["repair"],
                &["checkpoints"],
                &["rollback", "--before-fault"],
                &["rollback", "--to", ATTACK],
                &["reset"],
            ];
            for command in &commands[..if several { 3 } else { commands.len() }] {
                let said = harmless(&folder, &[command, json, target].concat());
                let shown = if json.is_empty() {
                    r"\u{1b}[2J\n✓ \u{9b}"
                } else {
                    r"\u001b[2J\n✓ \u009b"
                };
                let quoted = r"\x1b[2J\x0a\xe2\x9c\x93 \xc2\x9b";
                assert!(said.contains(shown) || said.contains(quoted), "{command:?}: {said}");
            }
        }
    }
    harmless(&folder, &["check", "notes", &format!("none{ATTACK}")]);
    harmless(&folder, &["checkpoints", "--create", "--note", ATTACK, &name]);
    harmless(&folder, &["repair", "--write", &name]);
}

/// What is proposed can be pasted into a shell, and means the file.
#[test]
fn what_is_proposed_names_the_file() {
    let folder = Folder::new();
    let name = format!("a'{ATTACK}\\.json");
    folder.write(&name, ORPHANED);
    let said = harmless(&folder, &["check", &name]);
    let proposed = said.split("tool-guard session repair ").nth(1).unwrap().trim();
    let mut shell = std::process::Command::new("bash");
    let shell = shell.args(["-c", &format!("test -f {proposed}")]).current_dir(folder.path(""));
    assert!(shell.status().expect("bash: install it").success(), "{proposed}");
}
