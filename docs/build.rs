//! Makes a function of each block of Rust in the guides, named by its line, so that it has to compile.
mod blocks;
mod compiled;

use std::{env, error::Error, fs, path::Path};

/// What the guides take as given. A block that needs more has to say it.
const GIVEN: &str = "
    tool: Tool, my_tool: Tool, tools: Tool, call: tr_core::ToolCall, stack: tool_reliability::ToolStack,
    retry: tr_retry::RetryLayer, breaker: tr_breaker::BreakerLayer,
    attempt_timeout: tr_timeout::AttemptTimeoutLayer, layer: tr_breaker::BreakerLayer,
    recorder: tr_turn::Recorder, sessions: tr_integrity::Sessions, hyper_client: HyperClient,
    mut request: http::Request<bytes::Bytes>, provider: opentelemetry_sdk::metrics::SdkMeterProvider,
    tracers: opentelemetry_sdk::trace::SdkTracerProvider, new_config: tool_reliability::config::Config";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=.");
    println!("cargo:rerun-if-changed=../README.md");
    let mut guides: Vec<_> =
        fs::read_dir(".")?.map(|it| Ok(it?.path())).collect::<Result<_, std::io::Error>>()?;
    guides.retain(|path| path.extension().is_some_and(|it| it == "md"));
    // Its other half is code of peers: `lab/migrating` compiles it.
    guides.retain(|path| !path.ends_with("migrating.md"));
    guides.push("../README.md".into());
    guides.sort();
    let mut code = String::new();
    for path in &guides {
        compiled::append(&mut code, path, GIVEN)?;
    }
    fs::write(Path::new(&env::var("OUT_DIR")?).join("guides.rs"), code)?;
    Ok(())
}
