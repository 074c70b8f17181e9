//! A minimal parser of Redis's protocol, to find the end of a frame.

/// Error: the bytes are not Redis's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotResp;

/// The end of the first frame of `bytes`; `None` if it is incomplete.
pub(crate) fn frame_end(bytes: &[u8]) -> Result<Option<usize>, NotResp> {
    let (mut at, mut values) = (0, 1_u64);
    while values > 0 {
        values -= 1;
        let Some(header) = Header::at(bytes, at)? else { return Ok(None) };
        at = header.end;
        match header.kind {
            b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => {}
            b'$' | b'=' | b'!' => at += header.count.map_or(0, |bytes| bytes + 2),
            b'*' | b'~' | b'>' => values += header.count.unwrap_or(0) as u64,
            b'%' => values += 2 * header.count.unwrap_or(0) as u64,
            // Attributes come before the value that they belong to.
            b'|' => values += 2 * header.count.unwrap_or(0) as u64 + 1,
            _ => return Err(NotResp),
        }
    }
    Ok((at <= bytes.len()).then_some(at))
}

/// The first line of a value: its type and its count.
pub(crate) struct Header {
    pub(crate) kind: u8,
    /// `None` without a count, or for a null (`-1`).
    pub(crate) count: Option<usize>,
    pub(crate) end: usize,
}

/// The largest accepted count; more than any test sends.
const MOST: usize = 1 << 30;

impl Header {
    /// The line that begins at `from`; `None` if it is incomplete.
    pub(crate) fn at(bytes: &[u8], from: usize) -> Result<Option<Self>, NotResp> {
        let Some(rest) = bytes.get(from..).filter(|rest| !rest.is_empty()) else {
            return Ok(None);
        };
        let kind = rest[0];
        if !b"+-:_,#($=!*~>%|".contains(&kind) {
            return Err(NotResp);
        }
        let Some(line) = rest.windows(2).position(|two| two == b"\r\n") else { return Ok(None) };
        let text = str::from_utf8(&rest[1..line]);
        let count = match kind {
            b'+' | b'-' | b':' | b'_' | b',' | b'#' | b'(' => None,
            _ if text == Ok("-1") => None,
            _ => match text.ok().and_then(|text| text.parse().ok()) {
                Some(count) if count <= MOST => Some(count),
                _ => return Err(NotResp),
            },
        };
        Ok(Some(Self { kind, count, end: from + line + 2 }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_ends_where_its_last_value_does() {
        for frame in [
            "+OK\r\n",
            "-ERR no\r\n",
            ":-5\r\n",
            "$-1\r\n",
            "$0\r\n\r\n",
            "$5\r\na\r\nbc\r\n",
            "*0\r\n",
            "*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
            "%1\r\n+a\r\n:1\r\n",
            "|1\r\n+ttl\r\n:9\r\n$1\r\na\r\n",
            ">2\r\n+message\r\n_\r\n",
            "#t\r\n",
        ] {
            let bytes = frame.as_bytes();
            for cut in 0..bytes.len() {
                assert_eq!(frame_end(&bytes[..cut]), Ok(None), "{frame:?} cut at {cut}");
            }
            let and_more = [bytes, b"+more\r\n"].concat();
            assert_eq!(frame_end(&and_more), Ok(Some(bytes.len())), "{frame:?}");
        }
    }

    #[test]
    fn what_is_no_frame_is_said_to_be_none() {
        for bytes in ["PING\r\n", "GET / HTTP/1.1\r\n", "$x\r\n", "*-2\r\n", "$99999999999\r\n"] {
            assert_eq!(frame_end(bytes.as_bytes()), Err(NotResp), "{bytes:?}");
        }
    }
}
