//! What a catalog declares of the tools that its server lists, and what it could declare.
use serde_json::{Value, json};
use tool_reliability::config::ToolCatalog;
use tr_core::canonical::Pointer;
use tr_wire::closest;

/// The most tools for which an identity is proposed.
const MOST_PROPOSED: usize = 5;
/// How the names of params end that may say what is wanted, in lower case and without `_` and `-`.
const IDENTITIES: [&str; 14] = [
    "orderid",
    "ordernumber",
    "orderno",
    "orderref",
    "invoiceid",
    "invoicenumber",
    "paymentid",
    "bookingid",
    "reservationid",
    "refundid",
    "transferid",
    "idempotencykey",
    "requestid",
    "clienttoken",
];

/// Identities that could be declared besides, as lines of TOML.
pub(super) fn proposed(catalog: Option<&ToolCatalog>, tools: &[Value]) -> Vec<String> {
    let is_declared = |name: &Value| {
        let mut declared = catalog.into_iter().flat_map(ToolCatalog::iter);
        declared.any(|it| *name == it.tool.name() && !it.identity.is_empty())
    };
    let is_identity = |param: &str| {
        let letters = param.chars().filter(|c| !matches!(c, '_' | '-'));
        let letters: String = letters.flat_map(char::to_lowercase).collect();
        IDENTITIES.iter().any(|name| letters.ends_with(name))
    };
    let line = |tool: &Value| {
        let mut params = tool["inputSchema"]["properties"].as_object()?.keys();
        let param = params.find(|param| is_identity(param))?;
        let at = format!("/{}", param.replace('~', "~0").replace('/', "~1"));
        Some(format!("tools.{}.keys.identity = {}", tool["name"], json!([at])))
    };
    let tools = tools.iter().filter(|tool| tool["annotations"]["readOnlyHint"] != true);
    tools.filter(|tool| !is_declared(&tool["name"])).filter_map(line).take(MOST_PROPOSED).collect()
}

/// What is declared of tools and arguments that the server does not have.
pub(super) fn unmatched(catalog: &ToolCatalog, tools: &[Value]) -> Vec<String> {
    let listed = |name: &str| tools.iter().find(|tool| tool["name"] == name);
    let no_tool = |name: &str| {
        let like = closest(name, tools.iter().filter_map(|tool| tool["name"].as_str()));
        let like = like.map(|like| format!(", but {like:?}")).unwrap_or_default();
        format!("the server has no tool {name:?}{like}")
    };
    let mut all = Vec::new();
    for declared in catalog.iter() {
        let name = declared.tool.name();
        let Some(tool) = listed(name) else {
            all.push(no_tool(name));
            continue;
        };
        let check = declared.check.as_ref();
        let asked = check.into_iter().flat_map(|it| it.args.iter().chain(&it.matches));
        let all_params = declared.identity.iter().chain(asked.map(|(_, at)| at));
        let absent = all_params.filter(|at| !may_have(tool, at));
        all.extend(absent.map(|at| format!("{name:?} has no argument {at}")));
        all.extend(check.filter(|it| listed(&it.tool).is_none()).map(|it| no_tool(&it.tool)));
    }
    all
}

/// Whether the tool may take an argument there, as far as its schema says.
fn may_have(tool: &Value, at: &Pointer) -> bool {
    let schema = &tool["inputSchema"];
    let is_open = |name: &str| !matches!(schema[name], Value::Null | Value::Bool(false));
    let others = ["additionalProperties", "patternProperties", "allOf", "anyOf", "oneOf", "$ref"];
    let params = schema["properties"].as_object().filter(|_| !others.into_iter().any(is_open));
    let name = at.tokens().next();
    name.zip(params).is_none_or(|(name, params)| params.contains_key(name))
}
