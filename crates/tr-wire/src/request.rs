//! A request of either form: telling the forms apart, reading, and what can be said of one that is
//! refused.
use crate::{
    Arrival, InvalidEnvelope,
    bs_tim_5::ToolCallEnvelope,
    fault::Faults,
    read::{Members as _, Source},
    utee::ToolRequest,
};
use serde_json::value::RawValue;
use std::borrow::Cow;
use tr_core::{ToolCall, call::CallContext};

/// One of the two forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// BS-TIM-5 v1.1: `contractVersion`, `toolName`, `payload`, …
    BsTim5,
    /// UTEE: `tool`, `action`, `params`, …
    Utee,
}

/// How much of a text that is no JSON is searched for such a member.
const SEARCHED: usize = 4 << 10;

impl Form {
    /// The form with more of its own members among `names`; `None` if neither has one.
    fn of<'n>(names: impl Iterator<Item = &'n str>) -> Option<Self> {
        let known = (ToolCallEnvelope::names(), ToolRequest::names());
        let (mut bs_tim_5, mut utee) = (0, 0);
        // Both have an id.
        for name in names.filter(|name| *name != "requestId") {
            bs_tim_5 += u32::from(known.0.contains(&name));
            utee += u32::from(known.1.contains(&name));
        }
        match (bs_tim_5, utee) {
            (0, 0) => None,
            _ if bs_tim_5 >= utee => Some(Self::BsTim5),
            _ => Some(Self::Utee),
        }
    }

    /// The form of a text that cannot be read: UTEE, unless its beginning names a member of BS-TIM-5
    /// that each of its requests has.
    #[must_use]
    pub fn guess(text: &[u8]) -> Self {
        let beginning = String::from_utf8_lossy(&text[..text.len().min(SEARCHED)]);
        let is_there = |name: &str| beginning.contains(&format!("\"{name}\""));
        let is_bs_tim_5 = is_there("contractVersion") || is_there("toolName");
        if is_bs_tim_5 { Self::BsTim5 } else { Self::Utee }
    }
}

/// A request of either form.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Of BS-TIM-5.
    BsTim5(Box<ToolCallEnvelope>),
    /// Of UTEE.
    Utee(Box<ToolRequest>),
}

/// What can be said of a request that was refused, so that its sender gets an answer in its own form
/// under its own id. The tool did not run.
#[derive(Debug)]
#[non_exhaustive]
pub struct RefusedRequest {
    /// The form that it was read as.
    pub form: Form,
    /// Its id, if that could be read.
    pub request_id: Option<Box<str>>,
    /// Its tool, if that could be read.
    pub tool: Option<Box<str>>,
    /// Every fault.
    pub error: InvalidEnvelope,
}

impl Request {
    /// Reads a request of whichever form it has more members of.
    ///
    /// ```
    /// use tr_wire::{Form, Request};
    ///
    /// let request = Request::read(r#"{"tool": "clock", "action": "", "params": {}}"#).unwrap();
    /// assert_eq!(request.form(), Form::Utee);
    ///
    /// let refused = Request::read(r#"{"contractVersion": "1.0", "requestId": "r"}"#).unwrap_err();
    /// assert_eq!((refused.form, refused.request_id.as_deref()), (Form::BsTim5, Some("r")));
    /// assert!(refused.error.faults().len() > 1);
    /// ```
    ///
    /// # Errors
    /// Names every fault of the text.
    pub fn read(json: impl AsRef<[u8]>) -> Result<Self, RefusedRequest> {
        let json = json.as_ref();
        let raw = serde_json::from_slice::<&RawValue>(json).ok();
        let members = raw.and_then(|raw| Source::Json(raw).members().ok());
        let Some(members) = members else { return Err(unreadable(json)) };
        let text = |name: &str| {
            let named = members.iter().find(|(own, _)| own == name);
            named.and_then(|(_, value)| value.text()).filter(|text| !text.is_empty())
        };
        let said = |name: &str| text(name).map(Cow::into_owned).map(String::into_boxed_str);
        let form = Form::of(members.iter().map(|(name, _)| &**name));
        let refused = |error, form, tool| RefusedRequest {
            form,
            request_id: said("requestId"),
            tool: said(tool),
            error,
        };
        match form {
            None => Err(refused(of_no_form(), Form::Utee, "tool")),
            Some(Form::BsTim5) => ToolCallEnvelope::read(json)
                .map(|call| Self::BsTim5(call.into()))
                .map_err(|error| refused(error, Form::BsTim5, "toolName")),
            Some(Form::Utee) => ToolRequest::read(json)
                .map(|request| Self::Utee(request.into()))
                .map_err(|error| refused(error, Form::Utee, "tool")),
        }
    }

    /// Which form it has.
    #[must_use]
    pub const fn form(&self) -> Form {
        match self {
            Self::BsTim5(_) => Form::BsTim5,
            Self::Utee(_) => Form::Utee,
        }
    }

    /// The call that it asks for. What `context` says of the caller comes before what the request says;
    /// `new_id` names the request if it has no id.
    ///
    /// # Errors
    /// If `_utee` in the params does not have its form, which [`read`](Self::read) has checked.
    pub fn into_call(
        self,
        context: CallContext,
        arrival: Arrival,
        new_id: impl FnOnce() -> Box<str>,
    ) -> Result<ToolCall, RefusedRequest> {
        let (form, request_id, tool) = match &self {
            Self::BsTim5(it) => (Form::BsTim5, Some(it.request_id.clone()), it.tool_name.clone()),
            Self::Utee(it) => (Form::Utee, it.request_id.clone(), it.tool.clone()),
        };
        let refused = |error| RefusedRequest { form, request_id, tool: Some(tool), error };
        let envelope = match self {
            Self::Utee(request) => return request.into_call(context, new_id).map_err(refused),
            Self::BsTim5(envelope) => envelope,
        };
        let mut call = envelope.into_call(arrival).map_err(refused)?;
        if context == CallContext::default() {
            return Ok(call);
        }
        let said = &mut call.parts_mut().context;
        for (said, known) in [
            (&mut said.session, context.session),
            (&mut said.actor, context.actor),
            (&mut said.tenant, context.tenant),
            (&mut said.workspace, context.workspace),
            (&mut said.agent, context.agent),
            (&mut said.correlation, context.correlation),
        ] {
            *said = known.or_else(|| said.take());
        }
        Ok(call)
    }
}

impl From<ToolCallEnvelope> for Request {
    fn from(envelope: ToolCallEnvelope) -> Self {
        Self::BsTim5(envelope.into())
    }
}

impl From<ToolRequest> for Request {
    fn from(request: ToolRequest) -> Self {
        Self::Utee(request.into())
    }
}

impl RefusedRequest {
    /// A request of more than `most` bytes, of which only the beginning is known.
    #[must_use]
    pub fn too_long(beginning: &[u8], most: usize) -> Self {
        let error = refusal(format!("at most {most} bytes"), "more");
        Self { form: Form::guess(beginning), request_id: None, tool: None, error }
    }
}

/// No JSON, or no object: the reader says where and why.
fn unreadable(json: &[u8]) -> RefusedRequest {
    let form = Form::guess(json);
    let error = match form {
        Form::BsTim5 => ToolCallEnvelope::read(json).err(),
        Form::Utee => ToolRequest::read(json).err(),
    };
    let error = error.unwrap_or_else(of_no_form);
    RefusedRequest { form, request_id: None, tool: None, error }
}

fn of_no_form() -> InvalidEnvelope {
    let expected = "an envelope of UTEE (with \"tool\", \"action\" and \"params\") \
                    or of BS-TIM-5 (with \"contractVersion\", \"toolName\" and \"payload\")";
    refusal(expected, "members of neither")
}

/// The one fault of a whole text.
fn refusal(expected: impl Into<Cow<'static, str>>, found: &str) -> InvalidEnvelope {
    let mut faults = Faults::of("");
    faults.add("", expected, found);
    InvalidEnvelope::new("envelope", faults)
}
