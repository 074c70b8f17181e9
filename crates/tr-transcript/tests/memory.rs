//! A session file of any size is checked in bounded memory. Beside no other tests: what the process held is measured, too.
use std::io::Read;
use tr_testkit::{
    alloc::{self, CountingAllocator},
    rounds,
    sessions::{Form, SessionLines},
};
use tr_transcript::{FileCheck, FileReport, Piece, Records};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const FORMS: [Form; 3] = [Form::ClaudeCode, Form::OpenClaw, Form::Anthropic];
const MIB: u64 = 1 << 20;

fn check(read: impl Read) -> FileReport {
    FileCheck::new().run(read, |_| {}).unwrap()
}

/// 64 MiB for 1 GiB, as the whole process holds them.
#[test]
fn a_file_of_a_gigabyte_is_checked_in_64_mib() {
    let size = rounds(24, 1_024) * MIB;
    for form in FORMS {
        let (report, peak) = alloc::peak(|| check(SessionLines::new(form, size)));
        assert!(report.is_clean(), "{:?}", report.findings);
        assert!(report.bytes.total >= size && report.messages > 0);
        println!(
            "{form:?}: {} MiB, {} records, peak {} KiB",
            size / MIB,
            report.records,
            peak >> 10
        );
        // 20 MiB whatever the size, and a thirtieth of the file for the tool ids.
        assert!(peak <= 20 * MIB + size / 30, "{form:?} took {peak} bytes for {size}");
    }
    #[cfg(target_os = "linux")]
    {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let most = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let most: u64 = most.trim().trim_end_matches(" kB").parse().unwrap();
        println!("the process held {most} KiB at most");
        assert!(most <= 64 << 10, "the process held {most} KiB");
    }
}

/// A run of zeros, a line without an end: skipped in the memory of the limit.
#[test]
fn garbage_without_an_end_is_skipped_in_bounded_memory() {
    for (byte, why) in [(0, "NUL"), (b'x', "long"), (b' ', "blank")] {
        let file = std::io::repeat(byte)
            .take(64 * MIB)
            .chain(&b"\n{\"role\":\"user\",\"content\":\"hi\"}\n"[..]);
        let (report, peak) =
            alloc::peak(|| FileCheck::new().max_record(MIB as usize).run(file, |_| {}).unwrap());
        assert_eq!((report.bytes.skipped, report.messages), (64 * MIB, 1), "{why}");
        assert!(peak <= 4 * MIB, "{why}: {peak} bytes");
    }
}

/// However many runs of bytes that are not UTF-8 a record has, they are told one at a time.
#[test]
fn a_record_of_garbage_is_told_in_bounded_memory() {
    let garbage: Vec<u8> = b"a\xff\xff".iter().copied().cycle().take(3 << 18).collect();
    let file = [b"{\"a\":\"", &*garbage, b"\"}\n"].concat();
    let told = || {
        let mut records = Records::new(&*file);
        let (mut runs, mut bytes) = (0, 0);
        while let Some(piece) = records.next().unwrap() {
            match piece {
                Piece::Skipped(skipped) => (runs, bytes) = (runs + 1, bytes + skipped.length),
                Piece::Record(record) => {
                    assert_eq!((record.invalid, record.length), (bytes, file.len() as u64 - 1));
                }
            }
        }
        (runs, bytes)
    };
    let (told, peak) = alloc::peak(told);
    assert_eq!(told, (MIB / 4, MIB / 2));
    // The line in the buffer, and its text, in which a byte may become three; both while they grow.
    assert!(peak <= 8 * MIB, "{peak} bytes");
}
