//! Where the calls of a tool go.
use tr_wire::read::words;

/// Where `tool-guard serve` sends the calls of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Endpoint {
    /// An HTTP endpoint.
    Http {
        /// Its address.
        url: Box<str>,
        /// The method of its requests.
        method: Method,
        /// Their headers, with names of variables in their values.
        headers: Vec<(Box<str>, Box<str>)>,
    },
    /// A program and its arguments.
    Command(Vec<Box<str>>),
}

/// The method of a tool's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method {
    /// `POST`.
    #[default]
    Post,
    /// `PUT`.
    Put,
    /// `PATCH`.
    Patch,
    /// `DELETE`.
    Delete,
}

impl Method {
    /// Its name in a request.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        <Self as tr_wire::read::Words>::word(self)
    }
}

words! {
    Method { Post = "POST", Put = "PUT", Patch = "PATCH", Delete = "DELETE" }
}
