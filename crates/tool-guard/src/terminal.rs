//! Formats output for display, and prints it.
use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use indicatif::HumanCount;
use std::{
    fmt,
    io::{self, Write as _},
    os::unix::ffi::OsStrExt as _,
    path::Path,
    process::ExitCode,
};
use tr_core::{canonical::Key, printable, printable_lines};

/// The beginning of a terminal style.
const ESCAPE: &str = "\u{1b}";

pub(crate) const TITLE: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
pub(crate) const WARN: Style = AnsiColor::Yellow.on_default();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const MINUS: Style = AnsiColor::Red.on_default();
pub(crate) const PLUS: Style = AnsiColor::Green.on_default();

/// How many digits of an ID distinguish records.
pub(crate) const SHORT: usize = 12;

/// The beginning of a record's ID that messages show.
pub(crate) fn short_id(key: &Key) -> String {
    let mut text = key.to_string();
    text.truncate(SHORT);
    text
}

/// Prints `text`, with colors if the terminal supports them. A reader that closed the pipe (`|
/// head`) is no error.
pub(crate) fn say(text: &str) -> io::Result<()> {
    unless_closed(anstream::stdout().lock().write_all(harmless(text).as_bytes()))
}

/// Prints `text` as it is. A reader that closed the pipe is no error.
pub(crate) fn print(text: impl AsRef<[u8]>) -> io::Result<()> {
    unless_closed(io::stdout().lock().write_all(text.as_ref()))
}

/// Prints the last that a command says, which has done its work.
pub(crate) fn end_with(text: impl AsRef<[u8]>) -> anyhow::Result<ExitCode> {
    print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// Reports on standard error, like the standard library's macro. If the reader has closed the pipe, that
/// one panics, and here the text is lost.
macro_rules! eprint {
    ($($text:tt)*) => { $crate::terminal::report(format_args!($($text)*)) };
}

/// The same, with a line break.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::terminal::report(format_args!("{}\n", format_args!($($text)*))) };
}

/// See [`eprint!`].
pub(crate) fn report(text: fmt::Arguments<'_>) {
    let _ = io::stderr().lock().write_fmt(text);
}

/// Says why a command does not do its work, which ends with this code.
pub(crate) fn refuse(code: u8, why: &str) -> anyhow::Result<ExitCode> {
    eprintln!("tool-guard: {why}");
    Ok(ExitCode::from(code))
}

fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints `text` on standard error.
pub(crate) fn say_error(text: &str) {
    let _ = anstream::stderr().lock().write_all(harmless(text).as_bytes());
}

/// Removes control characters that were not escaped on input: only line breaks and the styles above
/// reach the terminal.
fn harmless(text: &str) -> String {
    let styles = [TITLE, DIM, BAD, WARN, GOOD].map(|style| format!("{style}{style:#}")).concat();
    let ours: Vec<&str> = styles.split(ESCAPE).filter(|code| !code.is_empty()).collect();
    let mut parts = text.split(ESCAPE);
    let mut out = printable_lines(parts.next().unwrap_or_default()).into_owned();
    for part in parts {
        let code = ours.iter().find(|code| part.starts_with(**code)).copied();
        match code {
            Some(code) => out.extend([ESCAPE, code]),
            None => out.push_str(&printable(ESCAPE)),
        }
        out.push_str(&printable_lines(&part[code.map_or(0, str::len)..]));
    }
    out
}

/// `1 message`, `2 messages`, `1,234 messages`.
pub(crate) fn count(count: u64, what: &str) -> String {
    format!("{} {what}{}", HumanCount(count), if count == 1 { "" } else { "s" })
}

/// `311 bytes`, `4.2 MB`.
pub(crate) fn size(bytes: u64) -> String {
    let units = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")];
    #[expect(clippy::cast_precision_loss, reason = "one digit is shown")]
    let in_unit = |(one, unit): (u64, &str)| format!("{:.1} {unit}", bytes as f64 / one as f64);
    let unit = units.into_iter().find(|(one, _)| bytes >= *one);
    unit.map_or_else(|| count(bytes, "byte"), in_unit)
}

/// A value's name on the command line.
pub(crate) fn word(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |it| it.get_name().to_owned())
}

/// A path quoted for a shell.
pub(crate) fn quoted(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    let path = path.to_string_lossy();
    if path.as_bytes() != bytes || printable(&path) != path {
        let byte = |byte: &u8| match byte {
            b'\'' | b'\\' => format!("\\{}", char::from(*byte)),
            b' '..=b'~' => char::from(*byte).to_string(),
            byte => format!("\\x{byte:02x}"),
        };
        return format!("$'{}'", bytes.iter().map(byte).collect::<String>());
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !path.is_empty() && path.chars().all(plain) {
        return path.into_owned();
    }
    format!("'{}'", path.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_paths_can_be_read() {
        assert_eq!(count(1, "message"), "1 message");
        assert_eq!(count(1_234_567, "message"), "1,234,567 messages");
        assert_eq!([size(1), size(311), size(4_240_000)], ["1 byte", "311 bytes", "4.2 MB"]);
        assert_eq!(quoted(Path::new("a/b-c.jsonl")), "a/b-c.jsonl");
        assert_eq!(quoted(Path::new("it's mine")), r"'it'\''s mine'");
        assert_eq!(quoted(Path::new("a\u{1b}[2J\n'\\ é")), r"$'a\x1b[2J\x0a\'\\ \xc3\xa9'");
        assert_eq!(quoted(Path::new(std::ffi::OsStr::from_bytes(b"caf\xe9"))), r"$'caf\xe9'");
    }

    #[test]
    fn only_our_own_styles_reach_a_terminal() {
        let ours = format!("{BAD}✗{BAD:#} {TITLE}a{TITLE:#}\n{DIM}{WARN}{GOOD}b{GOOD:#}");
        assert_eq!(harmless(&ours), ours);
        let theirs = "\u{1b}[8mhidden\u{1b}]0;title\u{7}\u{9b}2J\u{1b}";
        let shown = r"\u{1b}[8mhidden\u{1b}]0;title\u{7}\u{9b}2J\u{1b}";
        assert_eq!(harmless(theirs), shown);
    }
}
