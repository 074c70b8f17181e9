//! Where events, metrics and spans go, and under which names: `[telemetry]`, and the variables of
//! OpenTelemetry. Each long-running subcommand starts this once, and gives its signals to the stack.
mod otlp;
mod scrape;

use self::otlp::Otlp;
use crate::secrets::{key, secret_in};
use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use opentelemetry::{metrics::MeterProvider as _, trace::TracerProvider as _};
use opentelemetry_sdk::{metrics::SdkMeterProvider, trace::SdkTracerProvider};
use serde_json::Value;
use std::{
    env,
    net::SocketAddr,
    path::{Path, PathBuf},
    thread,
    time::Duration,
};
use tokio::{
    sync::oneshot,
    task::JoinHandle,
    time::{sleep, timeout},
};
use tool_reliability::{
    config::{self, TelemetryConfig},
    telemetry::Signals,
};
use tr_core::{canonical::FingerprintKey, printable};

/// How long the end of the guard waits for a collector to take the last spans and metrics.
const LAST: Duration = Duration::from_secs(1);

/// How old the counts of a store's records may be that a collector is sent.
const REFRESH: Duration = Duration::from_secs(30);

/// The name of the meter and of the tracer.
const SCOPE: &str = "tool-guard";

/// The options of exporters; they override the configuration.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ExportOptions {
    /// The address that serves GET /metrics to Prometheus, such as 127.0.0.1:9464 [default: the
    /// configuration's, or none]
    #[arg(long, value_parser = crate::connect::address, value_name = "ADDRESS")]
    metrics: Option<SocketAddr>,

    /// The file with the token that scrapes must carry; without it only this machine has access
    #[arg(long, value_name = "FILE")]
    metrics_token_file: Option<PathBuf>,
}

impl ExportOptions {
    /// The keys of the configuration that these options set, their values, and the options.
    pub(crate) fn settings(&self) -> [(&'static str, Option<Value>, &'static str); 2] {
        let address = self.metrics.map(|address| address.to_string().into());
        let token = self.metrics_token_file.as_ref().map(|file| file.to_string_lossy().into());
        [
            ("telemetry.metrics", address, "--metrics"),
            ("telemetry.metrics_token_file", token, "--metrics-token-file"),
        ]
    }
}

/// The running exporters.
#[derive(Debug)]
pub(crate) struct Export {
    /// What a stack reports to.
    pub(crate) signals: Signals,
    meters: Option<SdkMeterProvider>,
    tracers: Option<SdkTracerProvider>,
    tasks: Vec<JoinHandle<()>>,
}

impl Export {
    /// Starts the exporters that the configuration, the options and the variables of this process name.
    ///
    /// # Errors
    /// If a key, a token or an address cannot be used.
    pub(crate) async fn start(
        config: &TelemetryConfig,
        options: &ExportOptions,
    ) -> anyhow::Result<Self> {
        let mut builder = config::telemetry(config);
        if let Some(key) = fingerprint_key(config)? {
            builder = builder.fingerprint_key(key);
        }
        let otlp = Otlp::from_env(|name| env::var(name).ok());
        for warning in &otlp.warnings {
            eprintln!("tool-guard: {}", printable(warning));
        }
        let token_file = options.metrics_token_file.as_deref();
        let token_file = token_file.or(config.metrics_token_file.as_deref().map(Path::new));
        let scrape = match options.metrics.or(config.metrics) {
            Some(address) => scrape::bind(address, token_file).await?,
            None if options.metrics_token_file.is_some() => {
                bail!("--metrics-token-file needs an address: add --metrics")
            }
            None => None,
        };
        let mut meters = None;
        if scrape.is_some() || otlp.metrics {
            let mut provider = SdkMeterProvider::builder().with_resource(otlp::resource());
            if let Some(scrape) = &scrape {
                provider = provider.with_reader(scrape.reader()?);
            }
            if otlp.metrics {
                provider = provider.with_reader(otlp::metrics()?);
            }
            let provider = provider.build();
            builder = builder.meter(provider.meter(SCOPE));
            meters = Some(provider);
        }
        let mut tracers = None;
        if otlp.traces {
            let provider = SdkTracerProvider::builder()
                .with_resource(otlp::resource())
                .with_batch_exporter(otlp::spans()?)
                .build();
            builder = builder.tracer(provider.tracer(SCOPE));
            tracers = Some(provider);
        }
        let signals = builder.build()?;
        let scrape = scrape.map(|scrape| tokio::spawn(scrape.serve(signals.clone())));
        let refresh = otlp.metrics.then(|| tokio::spawn(refresh(signals.clone())));
        Ok(Self { signals, meters, tracers, tasks: scrape.into_iter().chain(refresh).collect() })
    }

    /// Sends what is still to be sent, if the collector takes it in time.
    pub(crate) async fn finish(mut self) {
        if let Some(ended) = self.end() {
            let _ = timeout(LAST, ended).await;
        }
    }

    /// Ends the exporters, in a thread that the end of the process does not wait for: a collector may never
    /// answer.
    fn end(&mut self) -> Option<oneshot::Receiver<()>> {
        let (meters, tracers) = (self.meters.take(), self.tracers.take());
        if meters.is_none() && tracers.is_none() {
            return None;
        }
        let (done, ended) = oneshot::channel();
        thread::spawn(move || {
            if let Some(tracers) = tracers {
                let _ = tracers.shutdown_with_timeout(LAST);
            }
            if let Some(meters) = meters {
                let _ = meters.shutdown_with_timeout(LAST);
            }
            let _ = done.send(());
        });
        Some(ended)
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
        // Dropped on this thread, they would wait for the collector.
        drop(self.end());
    }
}

/// Reads the stores of records now and again, for a collector that is sent to and does not ask.
async fn refresh(signals: Signals) {
    loop {
        signals.refresh().await;
        sleep(REFRESH).await;
    }
}

/// The key of the hashes in events. It is in no error and no output.
fn fingerprint_key(config: &TelemetryConfig) -> anyhow::Result<Option<FingerprintKey>> {
    let key = match (&config.fingerprint_key_file, &config.fingerprint_key_variable) {
        (None, None) => return Ok(None),
        (Some(_), Some(_)) => bail!(
            "[telemetry] fingerprint_key_file and fingerprint_key_variable: give one of the two"
        ),
        (Some(file), None) => secret_in(&config::at_home(Path::new(&**file)))?,
        (None, Some(name)) => {
            let text = env::var(&**name).map_err(|_| {
                anyhow!("the variable {name} has no text: set it, or remove it from [telemetry] fingerprint_key_variable")
            })?;
            key(&text).with_context(|| format!("the variable {name} is no key"))?
        }
    };
    Ok(Some(FingerprintKey::new(key)))
}
