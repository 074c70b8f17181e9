//! A tool that answers in chunks: as it goes, from its record, and when it falls silent.
//!
//! ```sh
//! cargo run -p examples --example streaming
//! ```
use futures_util::{StreamExt, stream};
use std::{pin::pin, time::Duration};
use tokio::time::sleep;
use tool_reliability::{Guarded, Streaming, ToolStack, streaming::stream_fn};
use tower::Service;
use tr_core::{BoxError, Effect, Params, ToolCall, ToolOutcome};

const LINES: [&str; 3] = ["fetch\n", "compile\n", "link\n"];

/// The outcomes of a call, a line for each.
async fn told<T>(tool: &Streaming<Guarded<T>>, call: ToolCall) -> Vec<String>
where
    T: Service<ToolCall, Response = ToolOutcome, Error = BoxError> + Clone + Send + 'static,
    T::Future: Send,
{
    let mut answer = pin!(tool.stream(call));
    let mut told = Vec::new();
    while let Some(outcome) = answer.next().await {
        let chunk = outcome.parts().chunk.expect("each has its index");
        let said = match (outcome.error(), outcome.content()) {
            (Some(error), _) => error.to_string(),
            (None, Some(content)) => content.get().to_owned(),
            (None, None) => "the end".into(),
        };
        let replay = if outcome.from_cache() { " (replayed)" } else { "" };
        told.push(format!("{} {said}{replay}", chunk.index));
    }
    told
}

async fn run() -> Result<[Vec<String>; 3], BoxError> {
    let stack = ToolStack::builder()
        .attempt_timeout(|attempt| attempt.idle(Duration::from_secs(2)))
        .build()?;
    let build = Streaming::new(stack.service(stream_fn(|_: ToolCall| {
        stream::iter(LINES).then(async |line| {
            sleep(Duration::from_millis(10)).await;
            Ok::<_, BoxError>(line)
        })
    })));
    let call = || {
        ToolCall::new("build", Params::empty_object())
            .effect(Effect::Mutating)
            .session("s-1")
            .idempotency_key("build-7")
    };
    let first = told(&build, call()).await;
    let again = told(&build, call()).await;

    let silent = Streaming::new(stack.service(stream_fn(|_: ToolCall| {
        stream::iter([Ok::<_, BoxError>("fetch\n")]).chain(stream::pending())
    })));
    let silent = told(&silent, call().idempotency_key("build-8")).await;
    Ok([first, again, silent])
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), BoxError> {
    for (title, lines) in ["first", "again", "silent"].into_iter().zip(run().await?) {
        println!("{title}:");
        lines.iter().for_each(|line| println!("  {line}"));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_replayed_and_one_that_falls_silent_ends() {
    let [first, again, silent] = run().await.unwrap();
    assert_eq!(first, [r#"0 "fetch\n""#, r#"1 "compile\n""#, r#"2 "link\n""#, "3 the end"]);
    let replayed: Vec<_> = first.iter().map(|line| format!("{line} (replayed)")).collect();
    assert_eq!(again, replayed);
    assert_eq!(silent, [r#"0 "fetch\n""#, "1 Tool timeout: no chunk for 2s (timeout)"]);
}
