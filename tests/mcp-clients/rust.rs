//! Plays a script to servers with Rust's `rmcp`, in this process.
use crate::play::Seen;
use futures_util::future::join_all;
use rmcp::{
    ClientHandler, ErrorData, Peer, RoleClient, ServiceExt as _,
    model::{
        CallToolRequest, CallToolRequestParams, ClientConfig, ClientRequest, ElicitRequestParams,
        ElicitResult, ElicitationAction, ElicitationCapability, ProgressNotificationParam,
    },
    service::{
        NotificationContext, PeerRequestOptions, RequestContext, RequestHandle, RunningService,
        ServiceError,
    },
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};
use std::{path::Path, process::Stdio, time::Duration};
use tokio::{
    process::Command,
    runtime,
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    time::{Instant, sleep, timeout},
};

/// How long a client waits for an answer.
const LIMIT: Duration = Duration::from_secs(15);

/// Tells of progress; a user whom a server asks confirms after 6 s.
struct Handler(UnboundedSender<ProgressNotificationParam>);

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut config = ClientConfig::default();
        config.capabilities.elicitation = Some(ElicitationCapability::default());
        config
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        sleep(Duration::from_secs(6)).await;
        Ok(ElicitResult::new(ElicitationAction::Accept).with_content(json!({})))
    }

    async fn on_progress(
        &self,
        progress: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        let _ = self.0.send(progress);
    }
}

type Progress = UnboundedReceiver<ProgressNotificationParam>;

/// Plays every target's script, all at once: it waits for seconds until a server has ended.
pub(crate) fn play(targets: &[Value]) -> Seen {
    let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { join_all(targets.iter().map(play_one)).await.into_iter().collect() })
}

/// A target's script `again` is played by another client once the first has ended, and its file `back` is there, if it
/// names one.
async fn play_one(target: &Value) -> Seen {
    let mut seen = Seen::default();
    play_script(&mut seen, target, "script", "").await;
    if target["again"].is_array() {
        if let Some(back) = target["back"].as_str() {
            exists(back).await;
        }
        play_script(&mut seen, target, "again", "again ").await;
    }
    seen
}

async fn play_script(seen: &mut Seen, target: &Value, script: &str, which: &str) {
    let name = target["name"].as_str().unwrap();
    let (send, mut progress) = unbounded_channel();
    let client = connect(Handler(send), target).await;
    let info = client.peer_info();
    seen.note(name, &format!("{which}initialized"), json!(info.as_deref()));
    for (number, step) in target[script].as_array().unwrap().iter().enumerate() {
        let what = format!("{which}{number} {}", step["do"].as_str().unwrap());
        let answer = match step["do"].as_str().unwrap() {
            "list" => told(client.list_tools(None).await),
            "call" => told(client.call_tool(params(step)).await),
            "within" => within(&client, step).await,
            "both" => {
                let both = [within(&client, step), within(&client, step)];
                for answer in join_all(both).await {
                    seen.note(name, &format!("{what} within"), answer);
                }
                continue;
            }
            "wait" => {
                exists(step["file"].as_str().unwrap()).await;
                continue;
            }
            "progress" => {
                let answer = begin(&client, step, None).await.unwrap().await_response();
                tokio::pin!(answer);
                loop {
                    tokio::select! {
                        answer = &mut answer => break told(answer),
                        Some(made) = progress.recv() => note_progress(seen, name, &what, &made),
                    }
                }
            }
            _ => cancel(begin(&client, step, None).await.unwrap(), &mut progress).await,
        };
        seen.note(name, &what, answer);
    }
    client.cancel().await.unwrap();
}

async fn exists(file: &str) {
    let exists = async {
        while !Path::new(file).exists() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(LIMIT, exists).await.unwrap();
}

async fn connect(handler: Handler, target: &Value) -> RunningService<RoleClient, Handler> {
    if let Some(url) = target["url"].as_str() {
        return handler.serve(StreamableHttpClientTransport::from_uri(url)).await.unwrap();
    }
    let words = target["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let words: Vec<_> = words.collect();
    let variables = target["env"].as_object().unwrap().iter();
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).env_clear();
    command.envs(variables.map(|(name, value)| (name, value.as_str().unwrap())));
    let server = TokioChildProcess::builder(command).stderr(Stdio::null()).spawn();
    handler.serve(server.unwrap().0).await.unwrap()
}

/// A call for which the client, or this, waits for so long.
async fn within(client: &Peer<RoleClient>, step: &Value) -> Value {
    let begun = Instant::now();
    let own = step["limit"].as_f64().map(Duration::from_secs_f64);
    let answer =
        timeout(LIMIT, async { begin(client, step, own).await?.await_response().await }).await;
    let took = u64::try_from(begun.elapsed().as_millis()).unwrap();
    json!({ "took": took, "seen": answer.ok().map(told) })
}

fn params(step: &Value) -> CallToolRequestParams {
    let tool = step["tool"].as_str().unwrap().to_owned();
    let arguments = step["arguments"].as_object().unwrap().clone();
    let mut params = CallToolRequestParams::new(tool).with_arguments(arguments);
    params.meta = serde_json::from_value(step["meta"].clone()).unwrap();
    params
}

/// Begins a call, for which the client may have a limit of its own.
async fn begin(
    peer: &Peer<RoleClient>,
    step: &Value,
    limit: Option<Duration>,
) -> Result<RequestHandle<RoleClient>, ServiceError> {
    let call = ClientRequest::CallToolRequest(CallToolRequest::new(params(step)));
    let mut options = PeerRequestOptions::no_options();
    options.timeout = limit;
    peer.send_cancellable_request(call, options).await
}

/// Its handlers run on their own, so those of late progress may run after the answer: only the first half counts.
fn note_progress(seen: &mut Seen, name: &str, what: &str, made: &ProgressNotificationParam) {
    if made.total.is_some_and(|total| 2.0 * made.progress <= total) {
        let of = format!("{what} of {}", made.progress);
        seen.note(name, &of, json!([made.total, made.message]));
    }
}

/// Cancels a call after its first progress.
async fn cancel(handle: RequestHandle<RoleClient>, progress: &mut Progress) -> Value {
    // What came late of the calls before it.
    while progress.recv().await.unwrap().progress_token != handle.progress_token {}
    told(handle.cancel(Some("enough".into())).await)
}

fn told<T: serde::Serialize>(answer: Result<T, ServiceError>) -> Value {
    match answer {
        Ok(answer) => json!(answer),
        Err(ServiceError::McpError(error)) => json!({ "McpError": error }),
        Err(error) => json!({ "error": error.to_string() }),
    }
}
