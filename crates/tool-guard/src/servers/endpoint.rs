//! The tools: HTTP endpoints and commands, as one tower service.
mod answer;
mod command;
mod http;

use self::http::HttpTool;
use crate::{
    connect::{Reach, Trust},
    engine::failure::Failure,
    secrets as known,
};
use anyhow::Context as _;
use std::{
    collections::HashMap,
    env,
    ffi::OsString,
    future::{Future, ready},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};
use tower_service::Service;
use tr_config::Endpoint;
use tr_core::{
    BoxError, FailureInfo, NotSent, Ran, ToolCall, ToolId, ToolOutcome, Verdict, call::Runs,
};

/// All tools.
#[derive(Clone)]
pub(crate) struct Upstream {
    tools: Arc<HashMap<ToolId, Tool>>,
    /// The variables in headers of endpoints, which commands do not get.
    secrets: Arc<[String]>,
}

enum Tool {
    Http(Arc<HttpTool>),
    Command(Arc<[OsString]>),
}

impl Upstream {
    /// # Errors
    /// If an address, a header or a program cannot be used.
    pub(crate) fn new<'e>(
        endpoints: impl Iterator<Item = (&'e ToolId, &'e Endpoint)>,
        reach: &Reach,
    ) -> anyhow::Result<Self> {
        let mut trust = Trust::new(reach)?;
        let (mut tools, mut secrets) = (HashMap::new(), Vec::new());
        for (tool, endpoint) in endpoints {
            let made = match endpoint {
                Endpoint::Http { url, method, headers } => {
                    let headers = headers.iter().map(|(name, value)| {
                        let mut value_of = |name: &str| {
                            secrets.push(name.to_owned());
                            env::var(name).ok().inspect(|value| known::keep(value))
                        };
                        let value = with_variables(value, &mut value_of)?;
                        known::keep(&value);
                        Ok((&**name, value))
                    });
                    let headers = headers.collect::<anyhow::Result<Vec<_>>>();
                    headers
                        .and_then(|headers| {
                            HttpTool::new(url, method.as_str(), &headers, &mut trust)
                        })
                        .map(Tool::Http)
                }
                Endpoint::Command(command) => {
                    let words = || command.iter().map(|word| (&**word).into()).collect();
                    command::check(command).map(|()| Tool::Command(words()))
                }
                _ => continue,
            };
            tools.insert(tool.clone(), made.with_context(|| format!("tools.{tool}"))?);
        }
        anyhow::ensure!(
            !tools.is_empty(),
            "no tool has a `url` or a `command`: nothing can be called"
        );
        Ok(Self { tools: Arc::new(tools), secrets: secrets.into() })
    }
}

/// The text with the values of variables in the places of `${NAME}`.
fn with_variables(
    text: &str,
    mut value: impl FnMut(&str) -> Option<String>,
) -> anyhow::Result<String> {
    let (mut whole, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) =
            after.split_once('}').context("a `${` in a header has no `}`: write `${NAME}`")?;
        let value = value(name).with_context(|| {
            format!("a header names the variable {name}, which is not set: set it")
        })?;
        whole.push_str(before);
        whole.push_str(&value);
        rest = after;
    }
    whole.push_str(rest);
    Ok(whole)
}

impl Service<ToolCall> for Upstream {
    type Response = ToolOutcome;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<ToolOutcome, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        match self.tools.get(&call.parts().tool) {
            Some(Tool::Http(tool)) => Box::pin(tool.clone().call(call)),
            Some(Tool::Command(command)) => {
                Box::pin(command::call(command.clone(), self.secrets.clone(), call))
            }
            None => {
                call.parts().runs.iter().for_each(Runs::take_back);
                let mut known: Vec<_> = self.tools.keys().map(ToString::to_string).collect();
                known.sort_unstable();
                let info = FailureInfo::new("no_such_tool", Ran::No, Verdict::Permanent).by_layer();
                let (tool, known) = (&call.parts().tool, known.join(", "));
                let said = format!("unknown tool {tool}: configured tools are {known}");
                Box::pin(ready(Err(NotSent::new(Failure::said(said, info)).into())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_put_in_their_places() {
        let value = |name: &str| (name == "KEY").then(|| "s3cret".to_owned());
        for (text, wanted) in [
            ("Bearer ${KEY}", Some("Bearer s3cret")),
            ("${KEY}${KEY}", Some("s3crets3cret")),
            ("$KEY {KEY}", Some("$KEY {KEY}")),
            ("${OTHER}", None),
            ("${KEY", None),
        ] {
            assert_eq!(with_variables(text, value).ok().as_deref(), wanted, "{text}");
        }
    }
}
