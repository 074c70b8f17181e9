//! Metrics and spans for an OpenTelemetry collector, as the variables `OTEL_*` say.
//!
//! The SDK's threads collect and send; calls only put spans into a queue, which loses them when it is full.
use anyhow::Context as _;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{MetricExporter, SpanExporter, WithHttpConfig as _};
use opentelemetry_sdk::{
    Resource,
    metrics::{PeriodicReader, Temporality},
};
use std::{
    env, fs,
    future::{Future, ready},
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};
use tokio_rustls::rustls::crypto::ring;
use tool_reliability::telemetry::TARGET;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

/// What the variables ask for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Otlp {
    pub(super) metrics: bool,
    pub(super) traces: bool,
    /// What is asked for and not done.
    pub(super) warnings: Vec<String>,
}

impl Otlp {
    /// Reads the variables. Without any of them nothing is sent: a guard does not look for a collector.
    pub(super) fn from_env(get: impl Fn(&str) -> Option<String>) -> Self {
        let get =
            |name: &str| get(name).map(|value| value.trim().to_owned()).filter(|it| !it.is_empty());
        if get("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
            return Self::default();
        }
        let mut warnings = Vec::new();
        let mut wants = |signal: &str| {
            let of_signal = |what: &str| of_signal(signal, what, get);
            let (endpoint, schemes) = (of_signal("ENDPOINT"), ["http://", "https://"]);
            let exporters = get(&format!("OTEL_{signal}_EXPORTER"));
            let is_wanted = match exporters {
                Some(exporters) => exporters.split(',').any(|exporter| exporter.trim() == "otlp"),
                None => endpoint.is_some(),
            };
            let unusable = [
                of_signal("PROTOCOL").filter(|(_, protocol)| protocol != "http/protobuf").map(
                    |(name, protocol)| {
                        format!("{name}={protocol} is not supported: set http/protobuf, and the collector's port for it (4318)")
                    },
                ),
                endpoint.filter(|(_, url)| !schemes.iter().any(|it| url.starts_with(it))).map(|(name, _)| {
                    format!("{name}: this is no address that begins with https:// or http://")
                }),
                of_signal("COMPRESSION").filter(|(_, how)| !["none", "gzip"].contains(&&**how)).map(
                    |(name, how)| format!("{name}={how} is not supported: set gzip, or remove it"),
                ),
            ];
            let unusable: Vec<_> = unusable.into_iter().flatten().filter(|_| is_wanted).collect();
            let is_usable = unusable.is_empty();
            for why in unusable {
                let why = format!("{why}; nothing is sent");
                if !warnings.contains(&why) {
                    warnings.push(why);
                }
            }
            is_wanted && is_usable
        };
        let (metrics, traces) = (wants("METRICS"), wants("TRACES"));
        Self { metrics, traces, warnings }
    }
}

/// A variable of one signal, else that of all, with its name.
fn of_signal(
    signal: &str,
    what: &str,
    get: impl Fn(&str) -> Option<String>,
) -> Option<(String, String)> {
    let own = format!("OTEL_EXPORTER_OTLP_{signal}_{what}");
    let all = format!("OTEL_EXPORTER_OTLP_{what}");
    get(&own).map(|value| (own, value)).or_else(|| Some((all.clone(), get(&all)?)))
}

/// The authorities that the collector's certificate is checked by: those of `OTEL_EXPORTER_OTLP_CERTIFICATE`, else the
/// system's.
fn authorities(signal: &str) -> anyhow::Result<Vec<Certificate<'static>>> {
    let Some((name, file)) = of_signal(signal, "CERTIFICATE", |name| env::var(name).ok()) else {
        let system = rustls_native_certs::load_native_certs().certs;
        return Ok(system.iter().map(|it| Certificate::from_der(it).to_owned()).collect());
    };
    let pem = fs::read(&file).with_context(|| format!("{name}: cannot read {file}"))?;
    let certificate = |item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(certificate),
        _ => None,
    };
    let all: Vec<_> = parse_pem(&pem).filter_map(certificate).collect();
    anyhow::ensure!(!all.is_empty(), "{name}: {file} has no certificate in PEM");
    Ok(all)
}

/// What says of all metrics and spans where they come from.
pub(super) fn resource() -> Resource {
    let is_named = env::var_os("OTEL_SERVICE_NAME").is_some_and(|name| !name.is_empty())
        || env::var("OTEL_RESOURCE_ATTRIBUTES").is_ok_and(|all| all.contains("service.name="));
    let resource = Resource::builder();
    let resource =
        if is_named { resource } else { resource.with_service_name(env!("CARGO_PKG_NAME")) };
    let version = opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION"));
    resource.with_attribute(version).build()
}

/// Sends metrics every minute, or as `OTEL_METRIC_EXPORT_INTERVAL` says.
pub(super) fn metrics() -> anyhow::Result<PeriodicReader<MetricExporter>> {
    let exporter = MetricExporter::builder()
        .with_http()
        .with_http_client(Client::new("METRICS", "metrics")?)
        .with_temporality(Temporality::Cumulative)
        .build()?;
    Ok(PeriodicReader::builder(exporter).build())
}

/// Sends spans in batches, as `OTEL_BSP_*` say.
pub(super) fn spans() -> anyhow::Result<SpanExporter> {
    let client = Client::new("TRACES", "spans")?;
    Ok(SpanExporter::builder().with_http().with_http_client(client).build()?)
}

/// The limit of one request, unless `OTEL_EXPORTER_OTLP_TIMEOUT` says another (in milliseconds).
const TIMEOUT: Duration = Duration::from_secs(10);
/// The most of a collector's answer that is read.
const ANSWER: u64 = 64 * 1024;

/// Sends requests on the thread that asks for it, which is the SDK's.
#[derive(Debug)]
struct Client {
    agent: ureq::Agent,
    what: &'static str,
    /// The collector took the last request, or none was sent yet.
    delivers: AtomicBool,
}

impl Client {
    fn new(signal: &str, what: &'static str) -> anyhow::Result<Self> {
        let millis = env::var("OTEL_EXPORTER_OTLP_TIMEOUT").ok().and_then(|it| it.parse().ok());
        let timeout = millis.map_or(TIMEOUT, Duration::from_millis);
        let endpoint = of_signal(signal, "ENDPOINT", |name| env::var(name).ok());
        let mut tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()));
        if endpoint.is_some_and(|(_, url)| url.trim().starts_with("https://")) {
            tls = tls.root_certs(RootCerts::Specific(Arc::new(authorities(signal)?)));
        }
        let agent = ureq::Agent::config_builder()
            .tls_config(tls.build())
            .timeout_global(Some(timeout))
            .http_status_as_error(false)
            .max_redirects(0)
            .build();
        Ok(Self { agent: agent.into(), what, delivers: AtomicBool::new(true) })
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (head, body) = request.into_parts();
        let response = self.agent.run(Request::from_parts(head, body.to_vec()))?;
        let (head, mut body) = response.into_parts();
        let body = body.with_config().limit(ANSWER).read_to_vec()?;
        Ok(Response::from_parts(head, body.into()))
    }

    /// Logs when the collector stops or starts to take what is sent.
    fn note(&self, sent: &Result<Response<Bytes>, HttpError>) {
        let delivers = sent.as_ref().is_ok_and(|response| response.status().is_success());
        if self.delivers.swap(delivers, Ordering::Relaxed) == delivers {
            return;
        }
        let what = self.what;
        if delivers {
            tracing::warn!(target: TARGET, event = "telemetry_delivered", what);
            return;
        }
        // An address may hold a password, so only the kind of error is shown.
        let why = match sent {
            Ok(response) => format!("the collector answered {}", response.status()),
            Err(error) => match error.downcast_ref::<ureq::Error>() {
                Some(ureq::Error::Io(error)) if tr_tls::is_refusal(error) => {
                    "the collector's certificate is not trusted".into()
                }
                Some(ureq::Error::Timeout(_)) => "the collector does not answer in time".into(),
                Some(ureq::Error::Io(error)) => {
                    format!("the collector cannot be reached: {}", error.kind())
                }
                Some(ureq::Error::HostNotFound) => "the collector's name is not known".into(),
                _ => "the collector cannot be reached".into(),
            },
        };
        tracing::warn!(target: TARGET, event = "telemetry_not_delivered", what, why);
    }
}

impl HttpClient for Client {
    fn send_bytes<'c, 'f>(
        &'c self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'f>>
    where
        'c: 'f,
        Self: 'f,
    {
        let sent = self.send(request);
        self.note(&sent);
        Box::pin(ready(sent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(vars: &[(&str, &str)]) -> Otlp {
        Otlp::from_env(|name| {
            let found = vars.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn nothing_is_sent_unless_a_variable_asks_for_it() {
        assert_eq!(read(&[]), Otlp::default());
        assert_eq!(read(&[("OTEL_EXPORTER_OTLP_HEADERS", "a=b")]), Otlp::default());
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4318");
        let both = Otlp { metrics: true, traces: true, warnings: vec![] };
        assert_eq!(read(&[endpoint]), both);
        assert_eq!(
            read(&[("OTEL_METRICS_EXPORTER", "otlp"), ("OTEL_TRACES_EXPORTER", "otlp")]),
            both
        );
        assert_eq!(read(&[endpoint, ("OTEL_SDK_DISABLED", "TRUE")]), Otlp::default());
        let traces = Otlp { traces: true, ..Otlp::default() };
        assert_eq!(read(&[endpoint, ("OTEL_METRICS_EXPORTER", "none")]), traces);
        assert_eq!(read(&[("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://c/v1")]), traces);
        assert_eq!(read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", " ")]), Otlp::default());
    }

    #[test]
    fn what_is_not_supported_is_named_once_and_not_tried() {
        let endpoint = ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://c:4317");
        let grpc = read(&[endpoint, ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]);
        assert!(!grpc.metrics && !grpc.traces && grpc.warnings.len() == 1, "{grpc:?}");
        assert!(grpc.warnings[0].starts_with("OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported"));
        let own = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "grpc");
        let traces = read(&[endpoint, own]);
        assert!(traces.metrics && !traces.traces);
        let odd = read(&[("OTEL_EXPORTER_OTLP_ENDPOINT", "ftp://u:secret@c")]);
        assert!(!odd.metrics && odd.warnings.len() == 1 && !odd.warnings[0].contains("secret"));
        let tls = ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://c");
        assert!(read(&[tls, ("OTEL_EXPORTER_OTLP_COMPRESSION", "gzip")]).metrics);
        assert!(!read(&[tls, ("OTEL_EXPORTER_OTLP_COMPRESSION", "zstd")]).metrics);
        // Another program's settings that the guard does not use are not its business.
        assert_eq!(read(&[("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")]), Otlp::default());
    }
}
