//! `tool-guard serve`: envelopes over HTTP, or as lines on standard input and output, in front of tools that
//! are HTTP endpoints or commands.
mod checks;
mod guard;
mod lines;
mod wire;

use self::{
    guard::Guard,
    wire::{Door, ONCE},
};
use crate::{
    connect::Reach,
    engine::{
        effects::Declared,
        operation::{self, Operation},
        options::{Attribution, Mode, address},
        recording::Recording,
        setup::{Files, reload},
    },
    export::{Export, ExportOptions},
    front::{
        access::{Access, token},
        listener,
    },
    servers::endpoint::Upstream,
    signals::Signals,
};
use anyhow::Context as _;
use clap::Args;
use std::{fs, net::SocketAddr, path::PathBuf, process::ExitCode, sync::Arc};
use tokio::time::{sleep, timeout};
use tool_reliability::admin::Admin;

/// Serves the tools of a configuration.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// The stack's configuration with the tools, as TOML or JSON; variables override it. Read again on SIGHUP
    #[arg(long, value_name = "FILE")]
    config: PathBuf,

    /// The address that serves POST /call, POST /cancel and GET /tools
    #[arg(long, value_parser = address, value_name = "ADDRESS", default_value = "127.0.0.1:9480")]
    listen: SocketAddr,

    /// Read requests from standard input and write answers to standard output, one on a line, instead of
    /// listening
    #[arg(long, conflicts_with_all = ["listen", "token_file", "behind_tls", "allow_host", "allow_origin"])]
    stdio: bool,

    /// The file with the token that requests must carry as x-tool-guard-token
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// A proxy in front of this address speaks TLS; needed, with a token, to listen to other machines
    #[arg(long)]
    behind_tls: bool,

    /// A name, besides those of this machine, that requests may have in `host`
    #[arg(long, value_name = "HOST")]
    allow_host: Vec<String>,

    /// An origin whose web pages may send requests, such as `https://console.example`
    #[arg(long, value_name = "ORIGIN")]
    allow_origin: Vec<String>,

    /// The longest request, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = 2 * 1024 * 1024, value_parser = clap::value_parser!(u32).range(1024..))]
    max_body: u32,

    #[command(flatten)]
    attribution: Attribution,

    #[command(flatten)]
    reach: Reach,

    #[command(flatten)]
    operation: Operation,

    #[command(flatten)]
    recording: Recording,

    #[command(flatten)]
    export: ExportOptions,
}

/// Serves until a signal, or until standard input ends.
pub(crate) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    let _logging = options.operation.log()?;
    let files = Files::new(Some(&options.config), None, Mode::Enforce);
    let mut setup = files.read().map_err(anyhow::Error::msg)?;
    setup.warn_of_server_keys();
    if let Some(path) = &options.attribution.attribution_log {
        setup.config.loops.log_path = Some(path.to_string_lossy().into());
    }
    let upstream = Upstream::new(setup.config.catalog.endpoints(), &options.reach)
        .with_context(|| format!("{} cannot be used", options.config.display()))?;
    let loops = setup.loops(None);
    let recording = options.recording.over(&setup.config.records);
    // The records of calls that name no session belong to the front of this file, whenever it runs.
    let server = recording.server(&["serve".into(), fs::canonicalize(&options.config)?.into()]);
    let records = recording.open(&server).await?;
    let store = records.store.clone();
    let max_body = options.max_body as usize;
    let export = Export::start(&setup.config.telemetry, &options.export).await?;
    let guard = Guard::new(setup, loops, records, upstream, &export.signals, max_body)?;
    let live = guard.live.clone();
    let calls = live.stack().records().clone();
    let _janitor = calls.spawn_janitor();
    let declared = Declared::default();
    let reload = reload(files.clone(), live.clone(), declared.clone());
    let ended = Signals::new()?.end(reload);
    let admin = Admin::live(&live);
    let admin = admin.on_reload(move || files.read_again(&live, &declared));
    let admin = operation::bind(admin, &options.operation).await?.map(tokio::spawn);
    let signal = if options.stdio {
        lines::serve(guard, max_body, ended)
            .await
            .context("cannot read standard input or write standard output")?
    } else {
        let token = options.token_file.as_deref().map(token).transpose()?;
        let (hosts, origins) = (options.allow_host, options.allow_origin);
        let listener =
            listener::bind(options.listen, token.is_some() && options.behind_tls).await?;
        let access = Access { token, hosts, origins, once: &ONCE, ..Access::default() };
        let listener = (listener, "serve_listening");
        Some(listener::serve(listener, Arc::new(Door { guard, access, max_body }), ended).await)
    };
    // Calls that run on for their record, since their clients have left.
    let ended = async move {
        while calls.counts().inflight > 0 {
            sleep(listener::GRACE / 200).await;
        }
    };
    let _ = timeout(listener::GRACE, ended).await;
    if let Some(admin) = admin {
        admin.abort();
    }
    export.finish().await;
    if let Some(store) = store {
        store.close().await;
    }
    Ok(signal.map_or(ExitCode::SUCCESS, |signal| ExitCode::from(128 + signal)))
}
