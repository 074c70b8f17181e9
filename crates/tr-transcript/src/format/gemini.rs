//! Google's Gemini API: uses and results are parts of a content. A call without an id is paired
//! with its response by name and position.
use super::{
    ReadError,
    form::{Form, step},
    known,
    refused::{Refused, Text, Why, must_be},
    written::{NewResult, NewUse, is_synthetic},
};
use crate::{
    json::{self, Members, Piece, quote},
    message::{Block, Body, Kind, Message, Role, Unknown},
    name::Name,
    validate::{Fault, Finding},
};
use serde::Deserialize;
use serde_json::value::RawValue;

/// The provider's own placeholder for a missing signature.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

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

/// The members of a call or a response that are read; `parts` are images and files next to it.
const FUNCTION: [&str; 5] = ["id", "name", "args", "response", "parts"];

/// The known members of a call, and of a response.
const CALL: [&str; 5] = ["id", "name", "args", "partialArgs", "willContinue"];
const RESPONSE: [&str; 6] = ["id", "name", "response", "parts", "scheduling", "willContinue"];

/// The form of Gemini's API.
pub(super) struct Gemini;

impl Form for Gemini {
    fn read(&self, raw: Box<str>) -> Result<Body, ReadError> {
        let wire = Members::of(&raw, &["role", "parts"])
            .map_err(|error| ReadError::json("not a content", error))?;
        let role = match &*wire.text("role") {
            // A content without a role is the user's.
            "" | "user" | "function" => Role::User,
            "model" => Role::Assistant,
            "system" => Role::System,
            _ => Role::Other,
        };
        let content = wire.get("parts");
        let is_list = known::has_shape(content, false);
        let list = content.filter(|_| is_list).map(|parts| json::span(&raw, parts.get()));
        let parts = content.and_then(|parts| json::elements(parts.get()).ok());
        let mut blocks = Vec::new();
        for part in parts.unwrap_or_default() {
            let wire = json::object(part).ok();
            let refused = wire.as_ref().and_then(|wire| refused_in(part, wire)).map(Box::new);
            let kind = wire.map_or(Kind::Unread, |part| kind(&raw, &part));
            let block = Block::new(json::span(&raw, part), kind);
            Block { unknown: unknown(part), refused, ..block }.add_to(&mut blocks);
        }
        let is_signed = blocks.iter().any(|block| is_signed(&raw[block.span.clone()]));
        let is_known = role != Role::Other && is_list;
        let unknown = known::message(&raw, &["role", "parts"], content, is_known);
        let refused = Refused::new(Fault::RefusedRole, "role", Why::Place);
        let refused = (role == Role::System).then_some(refused).map(Box::new);
        Ok(Body { role, list, blocks, is_signed, unknown, refused, ..Body::of(raw) })
    }

    fn evidence(&self, message: &str) -> usize {
        let Ok(wire) = Members::of(message, &["role", "parts"]) else { return 0 };
        let is_ours = matches!(&*wire.text("role"), "" | "user" | "model" | "function");
        let is_list = wire.get("parts").is_some_and(|parts| parts.get().starts_with('['));
        2 * usize::from(is_ours && is_list)
    }

    fn write_uses(&self, uses: &[NewUse<'_>]) -> Vec<String> {
        step(r#"{"role":"model","parts":["#, uses, |id, name, input| {
            format!(r#"{{"functionCall":{{"id":{id},"name":{name},"args":{input}}}}}"#)
        })
    }

    /// Writes an id if the call has one, in the call's spelling.
    fn write_result(&self, result: &NewResult<'_>, used: &str) -> String {
        let part: WirePart<'_> = json::object(used).unwrap_or_default();
        let call = part.call.and_then(function).unwrap_or_default();
        let id = match part.call {
            Some(_) if id_at(&call).is_none() => String::new(),
            _ => format!(r#""id":{},"#, quote(result.id)),
        };
        let is_snake = used.contains(r#""function_call""#);
        let response = if is_snake { "function_response" } else { "functionResponse" };
        let (name, content) = (quote(result.name), quote(result.content));
        let said = if result.is_error { "error" } else { "output" };
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
        let function = Members::of(whole, &FUNCTION).unwrap_or_default();
        let response = function.get("response").map_or(whole, RawValue::get);
        let said = answer(response).unwrap_or(response.into());
        let beside = function.get("parts").map_or("[]", RawValue::get);
        let mut parts = vec![text_part(&format!("{title}\n{said}"))];
        match json::elements(beside) {
            Ok(beside) => parts.extend(beside.into_iter().map(str::to_owned)),
            Err(_) => parts.push(text_part(beside)),
        }
        parts
    }

    /// The provider demands a signature for each step with calls.
    fn waive_thoughts(&self, messages: &[Message]) -> Vec<(usize, String)> {
        let unsigned = messages.iter().enumerate().filter(|(_, message)| !message.body.is_signed);
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
        let name = CALL_NAME.refused(call.get("name"));
        return name.or_else(|| is_struct("function_call.args", call.get("args")));
    }
    if let Some(response) = wire.response.and_then(function) {
        let name = RESPONSE_NAME.refused(response.get("name"));
        let said = || is_struct("function_response.response", response.get("response"));
        return name.or_else(said);
    }
    let is_bare = json::members(part).is_ok_and(|members| members.is_empty());
    is_bare.then(|| Refused::content("data", Why::Missing))
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
    // The name stands for an id.
    let id = |function: &Members<'_>| {
        let id = id_at(function);
        let name = if id.is_some() { "id" } else { "name" };
        (Name::from(&*function.text(name)), at(id), function.text("name").into())
    };
    if let Some(call) = part.call.and_then(function) {
        let (id, id_at, name) = id(&call);
        return Kind::Use { id, id_at, name, noun: "" };
    }
    let Some(response) = part.response.and_then(function) else {
        return if part.call.or(part.response).is_some() { Kind::Unread } else { Kind::Other };
    };
    let ((id, id_at, name), content) = (id(&response), at(part.response));
    let synthetic = response.get("response").is_some_and(|said| is_synthetic(answered(said.get())));
    Kind::Result { id, id_at, name, content, synthetic }
}

/// A call or a response.
fn function(raw: &RawValue) -> Option<Members<'_>> {
    Members::of(raw.get(), &FUNCTION).ok()
}

/// The id of a call or a response, if it is no empty text.
fn id_at<'t>(function: &Members<'t>) -> Option<&'t RawValue> {
    function.get("id").filter(|_| !function.text("id").is_empty())
}

fn answered(response: &str) -> Option<&RawValue> {
    let answer = Members::of(response, &["output", "result", "error"]).ok()?;
    answer.get("output").or(answer.get("result")).or(answer.get("error"))
}

/// The text of an answer that holds nothing else.
fn answer(response: &str) -> Option<std::borrow::Cow<'_, str>> {
    let members: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(response).ok()?;
    answered(response).filter(|_| members.len() == 1).and_then(json::string)
}

fn is_call(part: &str) -> bool {
    json::object::<WirePart<'_>>(part).is_ok_and(|part| part.call.is_some())
}

fn is_signed(part: &str) -> bool {
    json::object::<WirePart<'_>>(part).is_ok_and(|part| part.signature.is_some())
}

fn is_signed_call(part: &str) -> bool {
    is_call(part) && is_signed(part)
}

/// A call with the placeholder signature, in the call's spelling.
fn signed(part: &str) -> String {
    let is_snake = part.contains(r#""function_call""#);
    let name = if is_snake { "thought_signature" } else { "thoughtSignature" };
    let member = format!(r#""{name}":"{NO_SIGNATURE}""#);
    let members = json::members(part).unwrap_or_default();
    match members.get("thoughtSignature").or(members.get("thought_signature")) {
        Some(was) => json::with_member(part, &json::span(part, was.get()), &member),
        None => part.replacen('{', &format!("{{{member},"), 1),
    }
}

fn text_part(text: &str) -> String {
    format!(r#"{{"text":{}}}"#, quote(text))
}
