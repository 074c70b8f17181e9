//! A process is killed at every labelled point of a call, and the call is repeated: no mutating
//! tool runs twice, no confirmed answer is lost, and every repeat gets an answer of a known type.
mod child;
mod fuse;
mod rounds;
mod tool;
