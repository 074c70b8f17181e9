//! An MCP server with `rmcp` whose tools are behind the stack: retries, idempotency keys, loop detection.
//!
//! rmcp's client calls it over an in-memory pipe; over stdio it is `serve(rmcp::transport::stdio())`. The server lists
//! what its tools do to the world, and so does the stack. `cargo run -p examples --example mcp_server`
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, JsonObject,
        ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
        ToolAnnotations,
    },
    service::RequestContext,
};
use serde_json::{Value, json};
use std::sync::{
    Arc,
    atomic::{AtomicU32, Ordering::Relaxed},
};
use tool_reliability::ToolStack;
use tower::{ServiceExt as _, service_fn, util::BoxCloneSyncService};
use tr_core::{BoxError, Effect, Params, ToolCall, ToolError, ToolOutcome};

static CHARGES: AtomicU32 = AtomicU32::new(0);
static SEARCHES: AtomicU32 = AtomicU32::new(0);

/// The tools themselves. The search fails once; every payment charges.
async fn tools(call: ToolCall) -> Result<ToolOutcome, BoxError> {
    Ok(match call.parts().tool.label() {
        "search" if SEARCHES.fetch_add(1, Relaxed) == 0 => return Err("read ECONNRESET".into()),
        "search" => ToolOutcome::success(json!(["tea", "cake"])),
        "pay" => ToolOutcome::success(json!({ "charge": CHARGES.fetch_add(1, Relaxed) + 1 })),
        _ => ToolOutcome::failure(ToolError::new(
            "invalid_params",
            "Missing required parameter: path",
        )),
    })
}

type Guarded = BoxCloneSyncService<ToolCall, ToolOutcome, BoxError>;

struct Shop {
    tools: Guarded,
}

/// The effect of each tool: what the stack may repeat.
fn effect(tool: &str) -> Effect {
    if tool == "pay" { Effect::Mutating } else { Effect::ReadOnly }
}

impl ServerHandler for Shop {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = Arc::new(object(&json!({ "type": "object" })));
        let tools = ["search", "pay", "read"].map(|name| {
            let reads = effect(name) == Effect::ReadOnly;
            Tool::new(name, name, schema.clone())
                .with_annotations(ToolAnnotations::new().read_only(reads))
        });
        Ok(ListToolsResult::with_all_items(tools.into()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let params = Value::Object(request.arguments.unwrap_or_default());
        let params = Params::from_text(params.to_string())
            .map_err(|error| ErrorData::invalid_params(error.to_string(), None))?;
        let mut call = ToolCall::new(&*request.name, params)
            .effect(effect(&request.name))
            .session("one client on one pipe");
        let key = context.meta.get("idempotencyKey").and_then(Value::as_str);
        if let Some(key) = key {
            call = call.idempotency_key(key);
        }
        let result = match self.tools.clone().oneshot(call).await {
            Ok(outcome) => match outcome.content() {
                Some(content) => CallToolResult::success(vec![ContentBlock::text(content.get())]),
                None => {
                    let message = outcome.error().map_or("no answer", |error| &*error.message);
                    CallToolResult::error(vec![ContentBlock::text(message)])
                }
            },
            // The model reads why, and whether the tool ran.
            Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
        };
        Ok(result.into())
    }
}

fn object(value: &Value) -> JsonObject {
    value.as_object().cloned().unwrap_or_default()
}

fn call(tool: &'static str, arguments: &Value) -> CallToolRequestParams {
    CallToolRequestParams::new(tool).with_arguments(object(arguments))
}

fn pay(key: &str, cents: u32) -> CallToolRequestParams {
    let mut pay = call("pay", &json!({ "cents": cents }));
    let mut meta = rmcp::model::RequestMetaObject::new();
    meta.insert("idempotencyKey".into(), key.into());
    pay.meta = Some(meta);
    pay
}

fn text(result: &CallToolResult) -> &str {
    result.content.first().and_then(|block| block.as_text()).map_or("", |text| &text.text)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    let stack = ToolStack::default();
    let shop = Shop { tools: BoxCloneSyncService::new(stack.service(service_fn(tools))) };
    let (near, far) = tokio::io::duplex(64 * 1024);
    let server =
        tokio::spawn(async { shop.serve(far).await?.waiting().await.map_err(BoxError::from) });
    let client = ().serve(near).await?;

    let listed = client.list_all_tools().await?;
    println!("tools: {}", listed.iter().map(|tool| &*tool.name).collect::<Vec<_>>().join(", "));

    let found = client.call_tool(call("search", &json!({ "q": "tea" }))).await?;
    println!("search: {} after {} runs", text(&found), SEARCHES.load(Relaxed));
    assert_eq!((text(&found), SEARCHES.load(Relaxed)), (r#"["tea","cake"]"#, 2), "it only reads");

    for again in ["", ", again"] {
        let paid = client.call_tool(pay("order-42", 500)).await?;
        println!("pay{again}: {}", text(&paid));
        assert_eq!(text(&paid), r#"{"charge":1}"#);
    }
    let other = client.call_tool(pay("order-42", 900)).await?;
    println!("pay another amount: {}", text(&other));
    assert_eq!((other.is_error, CHARGES.load(Relaxed)), (Some(true), 1));

    let mut last = String::new();
    for n in 1..=3 {
        let read = client.call_tool(call("read", &json!({}))).await?;
        assert_eq!(read.is_error, Some(true));
        text(&read).clone_into(&mut last);
        println!("read({{}}), {n}: {}", last.lines().next().unwrap_or_default());
    }
    assert!(last.contains("[LOOP DETECTED]"), "{last}");

    client.cancel().await?;
    server.await??;
    Ok(())
}

#[test]
fn it_does_what_it_says() {
    main().unwrap();
}
