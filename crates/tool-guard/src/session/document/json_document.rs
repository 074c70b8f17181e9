//! Reads a session in one JSON text: an array of messages, or a request with messages.
use super::{
    agents,
    messages::{Messages, ends_in},
    outline::{Members, Outline, TooMany},
};
use crate::{
    files::CliError,
    session::verdict::{Failure, NotJudged},
};
use serde::de::IgnoredAny;
use std::error::Error as _;
use tr_transcript::{Message, ReadError, Transcript};

/// Of these a request has one also without messages: it names a model, or has a system prompt.
const OF_REQUESTS: [&str; 5] =
    ["model", "system", "systemInstruction", "system_instruction", "instructions"];

/// Reads the text of a file.
pub(crate) fn read(bytes: Vec<u8>) -> Result<Messages, Failure> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        Failure::NoSession(format!("line {} is not UTF-8", 1 + ends_in(valid)))
    })?;
    if let Some(outline) = Outline::of(&text).map_err(|TooMany| too_many(&text))? {
        agents::refuse_document(&outline)?;
    }
    let transcript = Transcript::read(&text).map_err(|error| unread(&text, &error))?;
    if transcript.is_empty() && !has_any(&text, &OF_REQUESTS) {
        return Err(Failure::NoSession("there are no messages in it".into()));
    }
    let is_message = |message: &Message| !message.says_unknown();
    if !transcript.is_empty() && !transcript.messages().iter().any(is_message) {
        return Err(Failure::NoSession("there are no messages of a known form in it".into()));
    }
    if let Some(api) = transcript.unknown_api() {
        return Err(NotJudged::of_unknown_api(api).into());
    }
    if transcript.is_words() && !has_any(&text, &["model"]) {
        return Err(Failure::NoSession("it has an input, and names no model".into()));
    }
    Ok(Messages::of_file(text, transcript))
}

/// A list of more messages than any provider accepts is not judged; without roles it is no session.
fn too_many(text: &str) -> Failure {
    let reason = "it has more than 100,000 messages, and no provider takes so many";
    if !names_a_role(text) {
        return Failure::NoSession(
            "it is a list of more than 100,000 elements, and none has a role".into(),
        );
    }
    let help =
        "it was not changed; to have it judged, check a copy with only the messages that are sent";
    NotJudged::new(reason, help).into()
}

/// Distinguishes a damaged session from other content.
fn unread(text: &str, error: &ReadError) -> Failure {
    let mut what = error.to_string();
    if let Some(source) = error.source() {
        what = format!("{what}: {source}");
    }
    if !names_a_role(text) {
        return Failure::NoSession(what);
    }
    if error.message_index().is_some() {
        let help = "the program that wrote it is not known here; to have it judged, give a request whose \
                    messages are all in the provider's form";
        return NotJudged::new(what, help).into();
    }
    let help = if serde_json::from_str::<IgnoredAny>(text).is_ok() {
        "nothing in it is broken: another program keeps its sessions so, and this one does not \
         read them; leave it as it is"
    } else {
        "if it was cut off, take an earlier copy of it; else fix the JSON by hand"
    };
    Failure::CliError(CliError::new(what, help))
}

/// Whether a text has a known role.
fn names_a_role(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find("\"role\"") {
        rest = &rest[at + "\"role\"".len()..];
        let value = rest.trim_start().strip_prefix(':').map(str::trim_start).unwrap_or_default();
        let roles = ["user", "assistant", "system", "developer", "tool", "model"];
        if roles.iter().any(|role| value.strip_prefix('"').is_some_and(|v| v.starts_with(role))) {
            return true;
        }
    }
    false
}

/// Whether an object has one of these members: many other files have an `input`, and name no model.
fn has_any(text: &str, names: &[&str]) -> bool {
    let members: Members<'_> = serde_json::from_str(text).unwrap_or_default();
    names.iter().any(|name| members.get(*name).is_some_and(|raw| raw.get() != "null"))
}
