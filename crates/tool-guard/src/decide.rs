//! `tool-guard decide`: the stack for hosts that run their tools themselves. A host says which call it is
//! about to make and how each ended, as lines of JSON; it learns which to make, and what to add for the model.
mod options;
mod run;

pub(crate) use self::{options::Options, run::run};
