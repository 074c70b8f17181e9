//! A file of any size is checked by the command in bounded memory.
use super::folder::Folder;
use std::time::Duration;
use std::{
    fs,
    io::{self, BufRead as _, BufReader},
    process::{ChildStdout, Stdio},
};
use tokio::time::Instant;
use tr_testkit::{
    rounds,
    sessions::{Form, SessionLines},
};

const FORMS: [Form; 3] = [Form::ClaudeCode, Form::OpenClaw, Form::Anthropic];
const MIB: u64 = 1 << 20;

/// 64 MiB for 1 GiB, as the whole process holds them.
#[cfg(target_os = "linux")]
#[test]
fn a_file_of_a_gigabyte_is_checked_in_64_mib() {
    // The smallest that would not fit if it were held: in memory, a file takes eight times its size.
    let size = rounds(12, 1_024) * MIB;
    for (form, _) in FORMS.into_iter().zip(0..rounds(1, 3)) {
        let folder = Folder::new();
        let mut file = fs::File::create(folder.path("large.jsonl")).unwrap();
        io::copy(&mut SessionLines::new(form, size), &mut file).unwrap();
        let (told, most, took) = first_of(&folder, &["check", "--json"]);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["status"], "clean", "{told}");
        assert!(told["bytes"].as_u64().unwrap() >= size);
        let speed = size as f64 / 1e6 / took.as_secs_f64();
        println!("{form:?}: {} MiB at {speed:.0} MB/s, at most {most} KiB held", size / MIB);
        assert!(most <= 64 << 10, "{form:?}: the process held {most} KiB");
    }
}

/// What depends on a line that is not read is not known, and not guessed.
#[test]
fn a_session_with_a_line_too_long_to_be_read_is_not_judged() {
    let line = |id: &str, parent: &str, message: &str| {
        format!(
            "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":\"{parent}\",\"message\":{message}}}\n"
        )
    };
    let call = r#"{"role":"assistant","content":[{"type":"toolCall","id":"c","name":"pay","arguments":{}}]}"#;
    let text = "a".repeat(257 * MIB as usize);
    let result = format!(
        r#"{{"role":"toolResult","toolCallId":"c","content":[{{"type":"text","text":"{text}"}}]}}"#
    );
    let file = [
        "{\"type\":\"session\",\"version\":3,\"id\":\"s\",\"timestamp\":\"\",\"cwd\":\"/\"}\n",
        &line("a", "", call),
        &line("b", "a", &result),
        &line("c", "b", r#"{"role":"user","content":"did it work?"}"#),
    ]
    .concat();
    let folder = Folder::with("long.jsonl", file);
    let done = folder.ends(3, &["check", "long.jsonl"]);
    assert!(done.out.contains("line 3 has 269484"), "{}", done.out);
    assert!(!done.out.contains("refuses"), "{}", done.out);
}

/// What the command says of the file, the KiB that the process held, and how long that took.
fn first_of(folder: &Folder, args: &[&str]) -> (String, u64, Duration) {
    // Again and again: once the first is told, the process lives until it is killed.
    let mut command = folder.command(args);
    command.args(["large.jsonl"; 100]);
    let start = Instant::now();
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let told = first_line(child.stdout.take().unwrap());
    let took = start.elapsed();
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    (told, most.expect("it lives").trim().trim_end_matches(" kB").parse().unwrap(), took)
}

/// The process holds the file, the new one, and the parts around what is wrong.
#[cfg(target_os = "linux")]
#[test]
fn a_large_file_is_repaired_in_four_times_its_size() {
    let size = rounds(24, 256) * MIB;
    for (form, _) in FORMS.into_iter().zip(0..rounds(1, 3)) {
        let folder = Folder::new();
        let mut whole = String::new();
        io::Read::read_to_string(&mut SessionLines::new(form, size), &mut whole).unwrap();
        let lines = whole.lines().enumerate();
        // Results, one at the beginning and others further back.
        let stays = |at: usize| ![14, 12 * 1_000 + 14, 12 * 2_000 + 14].contains(&at);
        let kept: Vec<_> = lines.filter(|(at, _)| stays(*at)).map(|(_, line)| line).collect();
        folder.write("large.jsonl", kept.join("\n") + "\n");
        let (told, most, took) = first_of(&folder, &["repair", "--json"]);
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!((&told["status"], &told["remaining"]["found"]), (&"planned".into(), &0.into()));
        assert!(told["repairs"].as_array().unwrap().len() >= 3, "{told}");
        println!("{form:?}: {} MiB in {took:?}, at most {most} KiB held", size / MIB);
        let kib = size >> 10;
        assert!(most <= 4 * kib, "{form:?}: the process held {most} KiB for {kib}");
    }
}

fn first_line(out: ChildStdout) -> String {
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).unwrap();
    line
}
