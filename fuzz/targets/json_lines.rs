//! Any bytes: each is a record's, skipped, or between them, however they are read.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tr_transcript::{FileCheck, Piece, Records};

fuzz_target!(|bytes: &[u8]| {
    for max in [8, usize::MAX] {
        let mut told = vec![false; bytes.len()];
        let mut records = Records::new(bytes).max_record(max);
        while let Some(piece) = records.next().expect("a slice can be read") {
            let (offset, length) = match piece {
                Piece::Record(record) => {
                    serde_json::from_str::<serde::de::IgnoredAny>(&record.text).expect("JSON");
                    (record.offset, record.length)
                }
                Piece::Skipped(skipped) => (skipped.offset, skipped.length),
            };
            told[offset as usize..(offset + length) as usize].fill(true);
        }
        for (at, told) in told.into_iter().enumerate() {
            let is_mark = at < 3 && bytes.starts_with("\u{feff}".as_bytes());
            assert!(told || is_mark || b" \t\r\n".contains(&bytes[at]), "byte {at} is not told");
        }
        let report = FileCheck::new().max_record(max).run(bytes, |_| {}).expect("it can be read");
        let spread = report.bytes;
        assert_eq!(spread.total, bytes.len() as u64);
        assert_eq!(spread.total, spread.records + spread.skipped + spread.separators);
    }
});
