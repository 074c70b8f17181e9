//! All that the tables know, for tests that go through it.
use super::{Kind, grpc, phrases};

/// Every phrase, identifier, status, gRPC and SQLSTATE code that the tables know, each as a text
/// that is found.
///
/// For tests: a tool that has acted may fail with any of them.
#[doc(hidden)]
pub fn tables() -> impl Iterator<Item = String> {
    let phrases = phrases::all().map(|(first, rest)| {
        let rest = rest.replace("..", "it");
        if rest.is_empty() { first.to_owned() } else { format!("{first} {rest}") }
    });
    let statuses = (400..600).map(|status| format!("HTTP {status}"));
    let states = ["40001", "55P03", "57014", "57P01", "08006", "53300", "23505", "42501", "53100"];
    let codes = Kind::all().map(|kind| kind.code().to_owned());
    phrases.chain(statuses).chain(grpc::texts()).chain(codes).chain(states.map(str::to_owned))
}
