//! A file of any size is checked by the command in bounded memory.
use crate::folder::Folder;
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
        // Again and again: once the first is told, the process lives until it is killed.
        let mut command = folder.command(&["check", "--json"]);
        command.args(["large.jsonl"; 100]);
        let start = Instant::now();
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let told = first_line(child.stdout.take().unwrap());
        let took = start.elapsed();
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();

        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        assert_eq!(told["status"], "clean", "{told}");
        assert!(told["bytes"].as_u64().unwrap() >= size);
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let most: u64 = most.expect("it lives").trim().trim_end_matches(" kB").parse().unwrap();
        let speed = size as f64 / 1e6 / took.as_secs_f64();
        println!("{form:?}: {} MiB at {speed:.0} MB/s, at most {most} KiB held", size / MIB);
        assert!(most <= 64 << 10, "{form:?}: the process held {most} KiB");
    }
}

fn first_line(out: ChildStdout) -> String {
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line).unwrap();
    line
}
