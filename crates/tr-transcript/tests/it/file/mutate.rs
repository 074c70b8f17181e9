//! What crashes, bugs and people do to files.
use proptest::prelude::*;

/// One thing that is done to a file; numbers are taken modulo what there is.
#[derive(Clone, Debug)]
pub(crate) enum Mutation {
    DropLine(usize),
    DoubleLine(usize),
    SwapLines(usize, usize),
    MoveLine(usize, usize),
    /// Takes out a line's end.
    Glue(usize),
    Truncate(usize),
    DropBytes(usize, usize),
    Nuls(usize, usize),
    Insert(usize, Vec<u8>),
    Set(usize, u8),
    /// Gives a call's id to another.
    Rename(usize, usize),
    Crlf,
    Mark,
}

pub(crate) fn mutation() -> impl Strategy<Value = Mutation> {
    use Mutation::*;
    let at = || 0..100_000_usize;
    prop_oneof![
        at().prop_map(DropLine),
        at().prop_map(DoubleLine),
        (at(), at()).prop_map(|(a, b)| SwapLines(a, b)),
        (at(), at()).prop_map(|(a, b)| MoveLine(a, b)),
        at().prop_map(Glue),
        at().prop_map(Truncate),
        (at(), 1..200_usize).prop_map(|(at, count)| DropBytes(at, count)),
        (at(), 1..50_usize).prop_map(|(at, count)| Nuls(at, count)),
        (at(), prop::collection::vec(any::<u8>(), 1..8)).prop_map(|(at, bytes)| Insert(at, bytes)),
        (at(), any::<u8>()).prop_map(|(at, byte)| Set(at, byte)),
        (at(), at()).prop_map(|(a, b)| Rename(a, b)),
        Just(Crlf),
        Just(Mark),
    ]
}

impl Mutation {
    pub(crate) fn act(&self, file: &mut Vec<u8>) {
        let len = file.len();
        if len == 0 {
            return;
        }
        match self {
            Self::Truncate(at) => file.truncate(at % len),
            Self::DropBytes(at, count) => {
                let at = at % len;
                drop(file.drain(at..(at + count).min(len)));
            }
            Self::Nuls(at, count) => {
                let at = at % len;
                drop(file.splice(at..at, std::iter::repeat_n(0, *count)));
            }
            Self::Insert(at, bytes) => {
                let at = at % len;
                drop(file.splice(at..at, bytes.iter().copied()));
            }
            Self::Set(at, byte) => file[at % len] = *byte,
            Self::Mark => drop(file.splice(0..0, *b"\xef\xbb\xbf")),
            Self::Glue(at) => {
                let ends: Vec<_> = (0..len).filter(|&at| file[at] == b'\n').collect();
                if !ends.is_empty() {
                    file.remove(ends[at % ends.len()]);
                }
            }
            Self::Crlf => {
                *file = file.split(|&byte| byte == b'\n').collect::<Vec<_>>().join(&b"\r\n"[..]);
            }
            _ => self.act_on_lines(file),
        }
    }

    fn act_on_lines(&self, file: &mut Vec<u8>) {
        let mut lines: Vec<Vec<u8>> =
            file.split_inclusive(|&byte| byte == b'\n').map(<[u8]>::to_vec).collect();
        let len = lines.len();
        match *self {
            Self::DropLine(at) => drop(lines.remove(at % len)),
            Self::DoubleLine(at) => lines.insert(at % len, lines[at % len].clone()),
            Self::SwapLines(a, b) => lines.swap(a % len, b % len),
            Self::MoveLine(from, to) => {
                let line = lines.remove(from % len);
                lines.insert(to % len, line);
            }
            Self::Rename(from, to) => {
                let ids: Vec<String> = calls(file);
                if let (Some(from), Some(to)) =
                    (ids.get(from % ids.len().max(1)), ids.get(to % ids.len().max(1)))
                {
                    let at = lines.iter().position(|line| {
                        String::from_utf8_lossy(line).contains(&format!("\"{from}\""))
                    });
                    if let Some(at) = at {
                        let line = String::from_utf8_lossy(&lines[at]).into_owned();
                        let (from, to) = (format!("\"{from}\""), format!("\"{to}\""));
                        lines[at] = line.replacen(&from, &to, 1).into_bytes();
                    }
                }
            }
            _ => {}
        }
        *file = lines.concat();
    }
}

fn calls(file: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(file);
    let strings = text.split('"').filter(|part| part.starts_with("call_"));
    strings.map(str::to_owned).collect()
}
