//! Google's Gemini API: uses and results are parts of a content. A call without an id is paired
//! with its response by name and position.
use super::{
    ReadError,
    form::{Form, id, step, text},
    known,
    refused::{Refused, Text, Why, must_be},
    written::{Asked, NewUse, is_synthetic},
};
use crate::{
    json::{self, Piece, quote},
    message::{Block, Body, Kind, Message, Role, Unknown},
    name::Name,
    validate::{Fault, Finding},
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The provider's own placeholder for a missing signature.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

#[derive(Deserialize)]
struct Wire<'t> {
    #[serde(borrow)]
    role: Option<&'t RawValue>,
    parts: Option<&'t RawValue>,
}

/// A part, in the spelling of JSON or of the Python SDK.
#[derive(Default, Deserialize)]
struct WirePart<'t> {
    #[serde(borrow, alias = "function_call", rename = "functionCall")]
    call: Option<&'t RawValue>,
    #[serde(alias = "function_response", rename = "functionResponse")]
    response: Option<&'t RawValue>,
    #[serde(alias = "thought_signature", rename = "thoughtSignature")]
    signature: Option<&'t RawValue>,
}

/// A call or a response.
#[derive(Default, Deserialize)]
struct WireFunction<'t> {
    #[serde(borrow)]
    id: Option<&'t RawValue>,
    name: Option<&'t RawValue>,
    args: Option<&'t RawValue>,
    response: Option<&'t RawValue>,
    /// Images and files next to the response.
    parts: Option<&'t RawValue>,
}

/// A tool's answer that is a single text.
#[derive(Default, Deserialize)]
struct Answer<'t> {
    #[serde(borrow)]
    output: Option<&'t RawValue>,
    result: Option<&'t RawValue>,
    error: Option<&'t RawValue>,
}

/// The members of a part that hold content, and those next to them.
const SAYING: [&str; 9] = [
    "codeExecutionResult",
    "executableCode",
    "fileData",
    "functionCall",
    "functionResponse",
    "inlineData",
    "text",
    "toolCall",
    "toolResponse",
];
const BESIDE: [&str; 5] =
    ["mediaResolution", "partMetadata", "thought", "thoughtSignature", "videoMetadata"];

/// The known members of a call, and of a response.
const CALL: [&str; 5] = ["id", "name", "args", "partialArgs", "willContinue"];
const RESPONSE: [&str; 6] = ["id", "name", "response", "parts", "scheduling", "willContinue"];

/// The form of Gemini's API.
pub(super) struct Gemini;

impl Form for Gemini {
    fn read(&self, raw: Box<str>) -> Result<Body, ReadError> {
        let wire: Wire<'_> =
            json::object(&raw).map_err(|error| ReadError::json("not a content", error))?;
        let role = match wire.role.map(|role| text(Some(role))).as_deref() {
            // A content without a role is the user's.
            None | Some("" | "user" | "function") => Role::User,
            Some("model") => Role::Assistant,
            Some("system") => Role::System,
            _ => Role::Other,
        };
        let is_list = known::has_shape(wire.parts, false);
        let list = wire.parts.filter(|_| is_list).map(|parts| json::span(&raw, parts.get()));
        let parts = wire.parts.and_then(|parts| json::elements(parts.get()).ok());
        let mut blocks = Vec::new();
        for part in parts.unwrap_or_default() {
            let wire = json::object(part).ok();
            let refused = wire.as_ref().and_then(|wire| refused_in(part, wire)).map(Box::new);
            let kind = wire.map_or(Kind::Unread, |part| kind(&raw, &part));
            let block = Block::new(json::span(&raw, part), kind);
            Block { unknown: unknown(part), refused, ..block }.add_to(&mut blocks);
        }
        let is_signed = blocks.iter().any(|block| is_signed(&raw[block.span.clone()]));
        let is_system = role == Role::System;
        let unknown = match role {
            Role::Other => Some(Unknown::Content),
            _ if !is_list => Some(Unknown::Content),
            _ => known::message(&raw, &["role", "parts"], wire.parts),
        };
        let refused = Refused::new(Fault::RefusedRole, "role", Why::Place);
        let refused = is_system.then_some(refused).map(Box::new);
        Ok(Body { role, list, blocks, is_system, is_signed, unknown, refused, ..Body::of(raw) })
    }

    fn evidence(&self, message: &str) -> usize {
        let Ok(Wire { parts: Some(parts), role }) = json::object(message) else { return 0 };
        let is_ours = matches!(&*text(role), "" | "user" | "model" | "function");
        2 * usize::from(is_ours && parts.get().starts_with('['))
    }

    fn write_uses(&self, uses: &[NewUse<'_>]) -> Vec<String> {
        step(r#"{"role":"model","parts":["#, uses, |id, name, input| {
            format!(r#"{{"functionCall":{{"id":{id},"name":{name},"args":{input}}}}}"#)
        })
    }

    /// Writes an id if the call has one, in the call's spelling.
    fn write_result(&self, asked: &Asked<'_>, content: &str, is_error: bool) -> String {
        let part: WirePart<'_> = json::object(asked.text).unwrap_or_default();
        let call: WireFunction<'_> = part.call.and_then(function).unwrap_or_default();
        let id = match part.call {
            Some(_) if call.id.is_none() => String::new(),
            _ => format!(r#""id":{},"#, quote(asked.id)),
        };
        let response = if asked.text.contains(r#""function_call""#) {
            "function_response"
        } else {
            "functionResponse"
        };
        let (name, content) = (quote(asked.name), quote(content));
        let said = if is_error { "error" } else { "output" };
        format!(r#"{{"{response}":{{{id}"name":{name},"response":{{"{said}":{content}}}}}}}"#)
    }

    fn hold(&self, results: &[String]) -> Vec<String> {
        vec![format!(r#"{{"role":"user","parts":[{}]}}"#, results.join(","))]
    }

    /// Parallel calls carry one signature, on the first: if that call is removed, the next first
    /// one gets the placeholder.
    fn rewrite(&self, message: &Message, pieces: &[Piece]) -> Option<String> {
        let mut pieces = pieces.to_vec();
        let was_signed =
            message.blocks().iter().any(|block| is_signed_call(message.text(&block.span)));
        let first = pieces.iter_mut().find(|piece| is_call(&piece.text));
        if let Some(first) = first.filter(|first| was_signed && !is_signed_call(&first.text)) {
            first.text = signed(&first.text);
        }
        Some(message.with_pieces(&pieces))
    }

    /// A text with the title and the answer, then the response's other parts.
    fn result_as_text(&self, title: &str, _: &str, content: Option<&str>) -> Vec<String> {
        let Some(whole) = content else { return vec![text_part(title)] };
        let function: WireFunction<'_> = json::object(whole).unwrap_or_default();
        let response = function.response.map_or(whole, RawValue::get);
        let said = answer(response).unwrap_or(response.into());
        let beside = function.parts.map_or("[]", RawValue::get);
        let mut parts = vec![text_part(&format!("{title}\n{said}"))];
        match json::elements(beside) {
            Ok(beside) => parts.extend(beside.into_iter().map(str::to_owned)),
            Err(_) => parts.push(text_part(beside)),
        }
        parts
    }

    /// The provider demands a signature for each step with calls.
    fn waive_thoughts(&self, messages: &[Message]) -> Vec<(usize, String)> {
        let unsigned = messages.iter().enumerate().filter(|(_, message)| !message.is_signed());
        let waive = |(at, message): (usize, &Message)| {
            let mut calls = message.blocks().iter().map(|block| &block.span);
            let span = calls.find(|span| is_call(message.text(span)))?;
            let raw = message.raw();
            let (before, behind) = (&raw[..span.start], &raw[span.end..]);
            Some((at, format!("{before}{}{behind}", signed(message.text(span)))))
        };
        unsigned.filter_map(waive).collect()
    }

    fn error(&self, finding: &Finding) -> String {
        let at = finding.message_index;
        match finding.fault {
            Fault::MissingSignature => format!(
                "Function call is missing a thought_signature in functionCall parts. This is \
                 required for tools to work correctly, and missing thought_signature may lead to \
                 degraded model performance. Additional data, function call `default_api:{}` , \
                 position {}. Please refer to \
                 https://ai.google.dev/gemini-api/docs/thought-signatures for more details.",
                finding.about,
                at + 1
            ),
            Fault::ResultWithoutAssistant => "Please ensure that function response turn comes \
                                              immediately after a function call turn."
                .to_owned(),
            Fault::RefusedRole => "Please use a valid role: user, model.".to_owned(),
            Fault::UseOutOfTurn | Fault::MisplacedBlock => {
                "Please ensure that function call turn comes immediately after \
                                    a user turn or after a function response turn."
                    .to_owned()
            }
            Fault::EmptyMessage => format!(
                "* GenerateContentRequest.contents[{at}].parts: contents.parts must not be empty."
            ),
            _ => match &finding.refused {
                Some(refused) => words(refused, at, finding.block_index.unwrap_or_default()),
                None => "Please ensure that the number of function response parts is equal to the \
                         number of function call parts of the function call turn."
                    .to_owned(),
            },
        }
    }
}

/// The provider's limit for tool names: any name that is not empty.
const CALL_NAME: Text = Text::name("function_call.name", usize::MAX, false);
const RESPONSE_NAME: Text = Text::name("function_response.name", usize::MAX, false);

/// The provider's error text for a refused member.
fn words(refused: &Refused, at: usize, part: usize) -> String {
    let place = format!("contents[{at}].parts[{part}].{}", refused.member);
    match refused.why {
        Why::Type { expected: "an object", .. } => {
            format!("Invalid value at '{place}' (type.googleapis.com/google.protobuf.Struct)")
        }
        Why::Type { .. } => format!("Invalid value at '{place}' (TYPE_STRING)"),
        _ if refused.fault == Fault::RefusedName => {
            format!("* GenerateContentRequest.{place}: Name cannot be empty.")
        }
        _ => format!(
            "* GenerateContentRequest.{place}: required oneof field 'data' must have one \
             initialized field"
        ),
    }
}

/// Why the provider refuses a part. A `null` member counts as missing.
fn refused_in(part: &str, wire: &WirePart<'_>) -> Option<Refused> {
    let is_struct = |member, value: Option<&RawValue>| {
        value.and_then(|value| must_be("an object", Fault::RefusedInput, member, Some(value)))
    };
    if let Some(call) = wire.call.and_then(function) {
        let name = CALL_NAME.refused(call.name);
        return name.or_else(|| is_struct("function_call.args", call.args));
    }
    if let Some(response) = wire.response.and_then(function) {
        let name = RESPONSE_NAME.refused(response.name);
        let said = || is_struct("function_response.response", response.response);
        return name.or_else(said);
    }
    let is_bare = json::members(part).is_ok_and(|members| members.is_empty());
    is_bare.then(|| Refused::new(Fault::RefusedContent, "data", Why::Missing))
}

/// Whether a part has unknown members.
fn unknown(part: &str) -> Option<Unknown> {
    let members = json::members(part).ok()?;
    let mut names = members.keys().map(|name| json::camel_case(name));
    if !names.clone().any(|name| SAYING.contains(&&*name)) {
        return Some(Unknown::Content).filter(|_| !members.is_empty());
    }
    let is_known = |name: &str| SAYING.contains(&name) || BESIDE.contains(&name);
    let knows = |name: &str, known: &[&str]| {
        let inner = members.iter().find(|(member, _)| json::camel_case(member) == name);
        let inner = inner.and_then(|(_, value)| json::members(value.get()).ok());
        inner.is_none_or(|inner| inner.keys().all(|name| known.contains(&&*json::camel_case(name))))
    };
    let is_understood = names.all(|name| is_known(&name))
        && knows("functionCall", &CALL)
        && knows("functionResponse", &RESPONSE);
    (!is_understood).then_some(Unknown::Members)
}

fn kind(raw: &str, part: &WirePart<'_>) -> Kind {
    let at = |part: Option<&RawValue>| part.map(|part| json::span(raw, part.get()));
    if let Some(call) = part.call.and_then(function) {
        let name = text(call.name);
        let id = call.id.map_or_else(|| Name::from(&*name), |it| id(Some(it)));
        return Kind::Use { id, id_at: at(call.id), name, noun: "" };
    }
    let Some(response) = part.response.and_then(function) else {
        return if part.call.or(part.response).is_some() { Kind::Unread } else { Kind::Other };
    };
    let name = text(response.name);
    let id = response.id.map_or_else(|| Name::from(&*name), |it| id(Some(it)));
    let (id_at, content) = (at(response.id), at(part.response));
    let synthetic = response.response.is_some_and(is_made_up);
    Kind::Result { id, id_at, name, content, synthetic }
}

/// A call or a response; a `null` counts as missing, and so does an id that is `null` or empty.
fn function(raw: &RawValue) -> Option<WireFunction<'_>> {
    let mut function: WireFunction<'_> = json::object(raw.get()).ok()?;
    function.id = function.id.filter(|id| json::string(id).is_some_and(|id| !id.is_empty()));
    Some(function)
}

fn answered(response: &str) -> Option<&RawValue> {
    let answer: Answer<'_> = json::object(response).ok()?;
    answer.output.or(answer.result).or(answer.error)
}

/// The text of an answer that holds nothing else.
fn answer(response: &str) -> Option<std::borrow::Cow<'_, str>> {
    let members: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(response).ok()?;
    answered(response).filter(|_| members.len() == 1).and_then(json::string)
}

/// Whether a repair wrote this response.
fn is_made_up(response: &RawValue) -> bool {
    is_synthetic(answered(response.get()))
}

fn is_call(part: &str) -> bool {
    json::object::<WirePart<'_>>(part).is_ok_and(|part| part.call.is_some())
}

fn is_signed(part: &str) -> bool {
    json::object::<WirePart<'_>>(part).is_ok_and(|part| part.signature.is_some())
}

fn is_signed_call(part: &str) -> bool {
    let part: WirePart<'_> = json::object(part).unwrap_or_default();
    part.call.is_some() && part.signature.is_some()
}

/// A call with the placeholder signature, in the call's spelling.
fn signed(part: &str) -> String {
    #[derive(Deserialize)]
    struct Signature<'t> {
        #[serde(borrow, alias = "thought_signature", rename = "thoughtSignature")]
        signature: &'t RawValue,
    }
    let is_snake = part.contains(r#""function_call""#);
    let name = if is_snake { "thought_signature" } else { "thoughtSignature" };
    let member = format!(r#""{name}":"{NO_SIGNATURE}""#);
    match json::object::<Signature<'_>>(part) {
        Ok(Signature { signature }) => {
            json::with_member(part, &json::span(part, signature.get()), &member)
        }
        Err(_) => part.replacen('{', &format!("{{{member},"), 1),
    }
}

fn text_part(text: &str) -> String {
    format!(r#"{{"text":{}}}"#, quote(text))
}
