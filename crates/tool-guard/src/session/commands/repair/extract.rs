//! Keeps the images and documents that a repair removes, as files.
use crate::{
    files::{CliError, make_folder},
    session::document::Document,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;
use std::{
    collections::HashSet,
    fs::{self, File},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
};
use tr_transcript::{Piece, Records};

/// Writes what `after` no longer has into a folder, which is made; returns the files. No file is overwritten.
pub(super) fn extract(
    folder: &Path,
    session: &str,
    before: &dyn Document,
    after: &dyn Document,
) -> Result<Vec<PathBuf>, CliError> {
    let stays: HashSet<&[u8]> = after.numbered().map(|(_, record)| record).collect();
    let gone = before.numbered().filter(|(_, record)| !stays.contains(record));
    let mut files = Vec::new();
    for (record, value) in values(gone) {
        let mut found = Vec::new();
        media(&value, &mut found);
        let removed = found.iter().filter(|(_, data)| {
            data.is_empty() || memchr::memmem::find(after.bytes(), data.as_bytes()).is_none()
        });
        for (number, (kind, data)) in removed.enumerate() {
            let line = before.line_of(record).unwrap_or(record);
            let path = folder.join(format!("{session}-{line}-{}.{}", number + 1, extension(kind)));
            let decoded = STANDARD.decode(data.split_whitespace().collect::<String>());
            let bytes = decoded.unwrap_or_else(|_| data.clone().into());
            let written = make_folder(&path).and_then(|()| {
                let mut file =
                    File::options().write(true).create_new(true).mode(0o600).open(&path)?;
                files.push(path.clone());
                file.write_all(&bytes)
            });
            written.map_err(|error| {
                files.iter().for_each(|file| drop(fs::remove_file(file)));
                let what = format!("cannot write {}: {error}", path.display());
                CliError::new(what, "nothing was changed; give a folder without such a file")
            })?;
        }
    }
    Ok(files)
}

/// The values of records, of which raw line breaks may divide some; each with its number, or that of its first line.
fn values<'t>(records: impl Iterator<Item = (u64, &'t [u8])>) -> Vec<(u64, Value)> {
    let (mut values, mut numbers, mut torn) = (Vec::new(), Vec::new(), Vec::new());
    for (number, text) in records {
        match serde_json::from_slice(text) {
            Ok(value) => values.push((number, value)),
            Err(_) => {
                numbers.push(number);
                torn.extend(text.iter().chain(b"\n"));
            }
        }
    }
    let mut records = Records::new(&*torn).max_record(usize::MAX);
    // Reading a slice cannot fail.
    while let Ok(Some(piece)) = records.next() {
        let Piece::Record(record) = piece else { continue };
        let value = serde_json::from_str(&record.text).unwrap_or_default();
        values.push((numbers[record.line as usize - 1], value));
    }
    values
}

/// The type and the data of each image and document in a record.
fn media(value: &Value, found: &mut Vec<(String, String)>) {
    let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
    let url = || {
        let url = text("url").or_else(|| text("image_url"))?;
        let (kind, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
        Some((kind.to_owned(), data.to_owned()))
    };
    match (text("media_type").or_else(|| text("mimeType")), text("data")) {
        (Some(kind), Some(data)) => found.push((kind, data)),
        _ => found.extend(url()),
    }
    match value {
        Value::Array(inside) => inside.iter().for_each(|inside| media(inside, found)),
        Value::Object(inside) => inside.values().for_each(|inside| media(inside, found)),
        _ => {}
    }
}

fn extension(kind: &str) -> &str {
    match kind {
        "image/jpeg" => "jpg",
        "image/png" => "png",
        "image/gif" => "gif",
        "image/webp" => "webp",
        "application/pdf" => "pdf",
        _ => "bin",
    }
}
