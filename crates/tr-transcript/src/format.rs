//! The transcript forms of providers, one module for each.
mod anthropic;
mod form;
mod forms;
mod gemini;
mod known;
mod media;
mod openai_chat;
mod openai_items;
mod openai_responses;
mod openclaw;
mod read_error;
mod refused;
mod request;
mod rules;
#[cfg(test)]
mod tests;
mod written;

pub(crate) use self::{
    form::types,
    known::{is_of_server, is_untouched, may_say},
    openclaw::form_of as form_of_api,
    refused::{Applies, CACHE, MANY_IMAGES, Refused, Why, is_plain},
    request::{NEITHER, Request, Sent},
    rules::{Blanks, Results, Rules},
    written::{is_synthetic, is_synthetic_text, with_mark_of},
};
pub use self::{
    forms::is_of_messages,
    read_error::ReadError,
    rules::Format,
    written::{NewResult, OUTCOME_UNKNOWN},
};
