//! A response as it is recorded and replayed.
use super::body::GuardedBody;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use std::io::Write;
use tr_core::{BoxError, debug_parts};
use tr_idempotency::store::Persist;

/// The version of the bytes in a store.
const FORMAT: u8 = 1;

/// The status, the headers and the body of a handler's response, as the records hold it.
///
/// [`HttpBuilder::records`](super::HttpBuilder::records) takes records of it; a
/// [`Probe`](tr_idempotency::store::Probe) makes one by [`new`](Self::new).
#[derive(Clone, PartialEq, Eq)]
pub struct RecordedResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

impl RecordedResponse {
    /// A response of these parts.
    #[must_use]
    pub fn new(status: StatusCode, headers: HeaderMap, body: impl Into<Bytes>) -> Self {
        Self { status, headers, body: body.into() }
    }

    /// The status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// The headers that are replayed.
    #[must_use]
    pub const fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// The body.
    #[must_use]
    pub const fn body(&self) -> &Bytes {
        &self.body
    }

    /// How many bytes it takes.
    pub(super) fn size(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        self.body.len() + headers.sum::<usize>()
    }

    /// The response that it was.
    pub(super) fn into_response<B>(self) -> Response<GuardedBody<B>> {
        let mut response = Response::new(GuardedBody::whole(self.body));
        (*response.status_mut(), *response.headers_mut()) = (self.status, self.headers);
        response
    }
}

/// The format's number, the status, the number of headers; each header's name and value with their
/// lengths; the body.
impl Persist for RecordedResponse {
    fn write_to(&self, out: &mut dyn Write) -> Result<(), BoxError> {
        out.write_all(&[FORMAT])?;
        out.write_all(&self.status.as_u16().to_le_bytes())?;
        out.write_all(&u16::try_from(self.headers.len())?.to_le_bytes())?;
        for (name, value) in &self.headers {
            out.write_all(&u16::try_from(name.as_str().len())?.to_le_bytes())?;
            out.write_all(name.as_str().as_bytes())?;
            out.write_all(&u32::try_from(value.len())?.to_le_bytes())?;
            out.write_all(value.as_bytes())?;
        }
        Ok(out.write_all(&self.body)?)
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, BoxError> {
        let mut left = bytes;
        let [format] = take(&mut left)?;
        if format != FORMAT {
            return Err(format!(
                "the recorded response has format {format}, which a newer version wrote: update this program"
            )
            .into());
        }
        let status = StatusCode::from_u16(u16::from_le_bytes(take(&mut left)?))?;
        let mut headers = HeaderMap::new();
        for _ in 0..u16::from_le_bytes(take(&mut left)?) {
            let length = u16::from_le_bytes(take(&mut left)?);
            let name = HeaderName::from_bytes(take_slice(&mut left, length.into())?)?;
            let length = u32::from_le_bytes(take(&mut left)?);
            let value = HeaderValue::from_bytes(take_slice(&mut left, length as usize)?)?;
            headers.try_append(name, value)?;
        }
        Ok(Self { status, headers, body: Bytes::copy_from_slice(left) })
    }
}

/// What a record says where its end should be.
const SHORT: &str = "the recorded response is cut off: clear its record once its outcome is known";

fn take<const N: usize>(left: &mut &[u8]) -> Result<[u8; N], BoxError> {
    let (taken, rest) = left.split_first_chunk().ok_or(SHORT)?;
    *left = rest;
    Ok(*taken)
}

fn take_slice<'b>(left: &mut &'b [u8], length: usize) -> Result<&'b [u8], BoxError> {
    let (taken, rest) = left.split_at_checked(length).ok_or(SHORT)?;
    *left = rest;
    Ok(taken)
}

// Shows no values: they may be secret.
debug_parts! { RecordedResponse, |it| status = it.status, headers = it.headers.len(), bytes = it.body.len() }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_comes_back_from_its_bytes_and_from_no_others() {
        let mut headers = HeaderMap::new();
        headers.append("location", HeaderValue::from_static("/orders/1"));
        headers.append("link", HeaderValue::from_static("a"));
        headers.append("link", HeaderValue::from_bytes(b"\xff").unwrap());
        let response = RecordedResponse::new(StatusCode::CREATED, headers, "order 1");
        let mut bytes = Vec::new();
        response.write_to(&mut bytes).unwrap();
        assert_eq!(RecordedResponse::from_bytes(&bytes).unwrap(), response);
        let head = bytes.len() - response.body().len();
        for cut in 0..head {
            assert!(RecordedResponse::from_bytes(&bytes[..cut]).is_err(), "{cut}");
        }
        let newer = [&[2], &bytes[1..]].concat();
        assert!(RecordedResponse::from_bytes(&newer).unwrap_err().to_string().contains("newer"));
        assert!(!format!("{response:?}").contains("orders"));
    }
}
