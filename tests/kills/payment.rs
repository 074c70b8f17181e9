//! A payment over HTTP, and what its client knows of it: without an ID it may not simply be sent again.
use crate::{
    call::{Answer, Call},
    tally::Tally,
};
use serde_json::Value;

/// A payment, and what its client knows of it.
#[derive(Debug)]
pub(crate) struct Payment {
    pub(crate) call: Call,
    /// Of a call without an ID.
    pub(crate) unnamed: Option<Unnamed>,
    /// The guard that a call without an ID is sent to: others do not know it.
    pub(crate) home: usize,
}

/// What the client of a call without an ID may do.
#[derive(Clone, Debug)]
pub(crate) enum Unnamed {
    /// It did not run, or was not sent.
    Due,
    /// Its connection was cut.
    Cut(Cut),
    /// It is not sent again: it has an answer, or its guard was killed, which remembers no such calls.
    Over,
}

#[derive(Clone, Debug)]
pub(crate) struct Cut {
    pub(crate) id: u64,
    pub(crate) session: Option<String>,
    /// Whether the server had begun to answer. Then the answer may count as received.
    pub(crate) was_answered: bool,
    pub(crate) is_same_bytes: bool,
}

impl Payment {
    pub(crate) fn new(call: Call, home: usize) -> Self {
        let unnamed = (!call.is_named()).then_some(Unnamed::Due);
        Self { call, unnamed, home }
    }

    /// How its client knows it in the end, if it does.
    pub(crate) fn end(&self) -> Option<&'static str> {
        let is_over = matches!(self.unnamed, Some(Unnamed::Over));
        self.call.end().or_else(|| is_over.then_some("given up"))
    }

    /// Takes the answer to a request in, that was sent when the end `is_known`.
    pub(crate) fn answered(
        &mut self,
        message: &Value,
        is_known: bool,
        tally: &mut Tally,
    ) -> Result<(), String> {
        let answer = Answer::of(message, self.unnamed.is_none())?;
        // Of two requests at once, that which ended first may be heard later.
        let is_late = !is_known && self.call.end().is_some();
        if !is_late || matches!(answer, Answer::Paid(_)) {
            self.call.hear(&answer)?;
        }
        if let Some(unnamed) = &mut self.unnamed {
            if let Unnamed::Cut(Cut { is_same_bytes, .. }) = unnamed {
                tally.joined[0] += 1;
                tally.joined[1] += u64::from(*is_same_bytes);
            }
            let is_over = !matches!(answer, Answer::NotRun(_));
            *unnamed = if is_over { Unnamed::Over } else { Unnamed::Due };
        }
        Ok(())
    }
}
