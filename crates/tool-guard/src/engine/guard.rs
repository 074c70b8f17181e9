//! The guard that all connections of one server share: the stack, the records, what is known about its tools.
use super::{
    effects::{Declared, Effects, Known},
    equal_calls::EqualCalls,
    identity::Client,
    in_flight::InFlight,
    limits::{Limits, OBSERVED},
    log::{self, recent},
    operation,
    options::{Mode, Options, StatusRules, signals},
    proxy::Proxy,
    records::guards_folder,
    setup::{self, Files, reload},
    stores::{Records, Store},
    tool::{ServerLink, ServerTool},
    unknowns::Unknowns,
    watching::Watching,
};
use crate::{
    export::Export,
    front::own_socket::OwnSocket,
    signals::Signals,
    wire::{
        jsonrpc::{self, LIST_CHANGED, Line},
        mark,
    },
};
use anyhow::bail;
use bytes::Bytes;
use serde_json::json;
use std::{
    future::Future,
    path::PathBuf,
    process,
    sync::{Arc, Mutex},
    time::Duration,
};
use tokio::task::JoinHandle;
use tool_reliability::{
    admin::Admin,
    config::{IdentityConfig, Live},
    idempotency::{DerivedKeys, Janitor},
    telemetry::TelemetryLayer,
};
use tr_core::{Effect, Observer, SystemClock, WallClock as _, internal::lock};

/// How long a repeat waits for the same call, unless the configuration or the limit of a call says less.
const MAX_WAIT: Duration = Duration::from_secs(30);

/// What the connections to one server share.
pub(crate) struct Guard {
    pub(crate) mode: Mode,
    pub(crate) limits: Limits,
    /// Names the server in the records.
    pub(crate) server: String,
    /// The same for people.
    label: String,
    /// The longest message that is forwarded, in bytes.
    pub(crate) max_line: usize,
    /// What the operator knows about the statuses of a server at an address.
    pub(crate) statuses: StatusRules,
    identity: Vec<IdentityConfig>,
    pub(crate) live: Live,
    /// Whether calls without a key are recognized by their params.
    pub(crate) derives_keys: bool,
    /// Whether answers are compared with earlier ones.
    compares: bool,
    /// Whether the client runs the tools itself.
    host_runs: bool,
    unknowns: Arc<Unknowns>,
    pub(crate) equal_calls: EqualCalls,
    timeouts: Arc<dyn Observer>,
    refusals: TelemetryLayer,
    keeps_answers: bool,
    /// What is known of the server's tools.
    pub(crate) effects: Arc<Mutex<Effects>>,
    declared: Declared,
    files: Files,
    pub(crate) watching: Watching,
    export: Mutex<Option<Export>>,
    store: Option<Store>,
}

/// What works beside the calls of a guard.
#[derive(Debug)]
pub(crate) struct Beside {
    _logging: Option<log::Written>,
    _janitor: Janitor,
    _socket: Option<OwnSocket>,
    admin: Option<JoinHandle<()>>,
}

impl Guard {
    /// Logs, forgets expired records and serves the admin page, until the guard finishes. The future waits for the
    /// signal that ends the guard; another one has the files read again.
    ///
    /// # Errors
    /// If options, variables or files cannot be used, or the records cannot be opened.
    pub(crate) async fn start(
        options: &Options,
    ) -> anyhow::Result<(Self, Beside, impl Future<Output = u8> + Send + use<>)> {
        let logging = options.operation.log()?;
        let guard = Self::new(options, logging.is_some()).await?;
        let (files, live, declared) =
            (guard.files.clone(), guard.live.clone(), guard.declared.clone());
        let janitor = live.stack().records().spawn_janitor();
        let ended = Signals::new()?.end(reload(files.clone(), live.clone(), declared.clone()));
        let known = declared.clone();
        let admin = Admin::new(live.stack()).manifests(move || known.all());
        let admin = admin.on_reload(move || files.read_again(&live, &declared));
        let socket = guard.own_socket(admin.clone());
        let admin = operation::bind(admin, &options.operation).await?.map(tokio::spawn);
        let beside = Beside { _logging: logging, _janitor: janitor, _socket: socket, admin };
        Ok((guard, beside, ended))
    }

    /// # Errors
    /// If options, variables or files cannot be used, or the records cannot be opened.
    pub(crate) async fn new(options: &Options, logs: bool) -> anyhow::Result<Self> {
        let (config, catalog) = (options.config.as_deref(), options.catalog.as_deref());
        let files = Files::new(config, catalog, options.mode);
        let setup = files.read().map_err(anyhow::Error::msg)?;
        let declared = Declared::default();
        setup.declare(&declared);
        if options.host_runs {
            setup.warn_of_server_keys();
        }
        let limits_of = if options.host_runs { Limits::of_host } else { Limits::new };
        let hard = options.max_timeout;
        let configured = setup.config.attempt_timeout.map(|timeout| {
            // Without one, only the limit of a call in all.
            timeout.unwrap_or_else(|| limits_of(None, hard).hard)
        });
        let limits = match options.mode {
            Mode::Observe => Limits::new(Some(OBSERVED), Some(OBSERVED)),
            _ => limits_of(options.overrides.timeout.or(configured), hard),
        };
        if limits.hard < limits.idle {
            bail!(
                "--max-timeout {:?} is shorter than the timeout {:?}: raise it, or lower --timeout",
                limits.hard,
                limits.idle
            );
        }
        let keys = options.overrides.derive_keys.map(Into::into);
        let keys = keys.or(setup.config.idempotency.derived_keys).unwrap_or(DerivedKeys::Off);
        let loops = setup.loops(options.overrides.loops);
        let compares = signals(loops, setup.config.loops.signals.clone()).is_some();
        let recording = options.overrides.recording.clone().over(&setup.config.records);
        let server = recording.server(&options.server_words());
        let label = recording.label(&options.server_words());
        let mut records = match options.mode {
            Mode::Enforce => recording.open(&server).await?,
            // Calls that are only watched are not recorded.
            Mode::Off | Mode::Observe | Mode::Shadow => Records::default(),
        };
        // A guard that hangs ends no call that another one waits for.
        let max_wait = setup.config.idempotency.max_wait.unwrap_or(MAX_WAIT);
        records.max_wait = Some(max_wait.min(limits.idle));
        let (store, keeps_answers) = (records.store.clone(), records.keep_answers);
        let identity = setup.config.identity.iter().map(|(_, rule)| rule.clone()).collect();
        let statuses = setup.config.upstream.status.iter().flatten();
        let statuses = statuses.chain(&options.http.status).copied().collect();
        let log_path = options.overrides.attribution.attribution_log.clone();
        let log_path =
            log_path.or_else(|| setup.config.loops.log_path.as_deref().map(PathBuf::from));
        let guards_loops =
            matches!(options.mode, Mode::Shadow | Mode::Enforce) && setup.guards_loops(loops);
        if log_path.is_some() && !guards_loops {
            eprintln!(
                "tool-guard: nothing is written to the attribution log: the loop guard is off"
            );
        }
        let log_path = log_path.filter(|_| guards_loops);
        let watching = Watching::new(options.mode, log_path.as_deref(), logs)?;
        let watch = |builder| watching.watch(builder);
        let export = Export::start(&setup.config.telemetry, &options.overrides.export).await?;
        let signals = export.signals.clone();
        let live = setup::live(setup.config, keys, loops, records, &signals, watch)?;
        let timeouts: Arc<dyn Observer> = match options.mode {
            Mode::Shadow => signals.shadow().observer(),
            _ => signals.observer(),
        };
        let effects = Effects::beside(declared.clone(), options.trust());
        Ok(Self {
            mode: options.mode,
            limits,
            server,
            label,
            max_line: options.max_line,
            statuses,
            identity,
            live,
            derives_keys: keys != DerivedKeys::Off,
            compares,
            host_runs: options.host_runs,
            unknowns: Arc::default(),
            equal_calls: EqualCalls::joining(options.join_after.0),
            timeouts,
            refusals: TelemetryLayer::call(&signals),
            keeps_answers,
            effects: Arc::new(Mutex::new(effects)),
            declared,
            files,
            watching,
            export: Mutex::new(Some(export)),
            store,
        })
    }

    /// What is known about a client of this connection.
    pub(crate) fn client(&self, connection: &str) -> Client {
        let mut client = Client::new(&self.server, connection, self.identity.clone());
        client.by_params = self.derives_keys;
        client
    }

    /// Whether a call of this tool may change something.
    pub(crate) fn may_change(&self, tool: &str) -> bool {
        let effects = lock(&self.effects);
        let effect_of = |known: Known| known.by_server.or(known.manifest.effect);
        let known = effects.of(tool).and_then(effect_of);
        let effect = known.or_else(|| effects.undeclared(tool));
        effect.is_none_or(|effect| effect == Effect::Mutating)
    }

    /// A proxy for this client.
    pub(crate) fn proxy(&self, client: Client) -> Proxy {
        // A client cannot guess the prefix.
        let prefix = format!("tool-guard-{:08x}-", fastrand::u32(..));
        let observe = self.mode.rollout().is_some();
        let records = self.live.stack().records();
        let mut wire = ServerLink::new(InFlight::new(prefix), self.limits, observe, records);
        (wire.derived, wire.compares) = (self.derives_keys, self.compares);
        wire.unknowns = self.unknowns.clone();
        wire.timeouts = Some(self.timeouts.clone());
        wire.refusals = Some(self.refusals.clone());
        (wire.effects, wire.host_runs) = (self.effects.clone(), self.host_runs);
        wire.keeps_answers = self.keeps_answers;
        wire.others = client.via.others.clone();
        let wire = Arc::new(wire);
        let stack = self.live.stack().service(ServerTool(wire.clone()));
        let mut proxy = Proxy::new(self.mode, wire, stack, client);
        proxy.watching = self.watching.clone();
        proxy.equal_calls = self.equal_calls.clone();
        proxy.server = self.label.as_str().into();
        proxy
    }

    /// Reads a message that passes: what it says of the tools, and whether it speaks in the guard's name;
    /// returns it without that.
    pub(crate) fn overheard(&self, line: &Bytes) -> Bytes {
        if let Line::One(message) = jsonrpc::read(line)
            && message.method.as_deref() == Some(LIST_CHANGED)
        {
            lock(&self.effects).forget();
        }
        mark::without(line)
    }

    /// The socket that `tool-guard status` asks. Where none can be made, the guard goes on without.
    fn own_socket(&self, admin: Admin) -> Option<OwnSocket> {
        let (watching, server, since) =
            (self.watching.clone(), self.label.clone(), SystemClock.unix_ms());
        let mode = format!("{:?}", self.mode).to_lowercase();
        let document = move || {
            let mut guard = json!({
                "pid": process::id(),
                "version": env!("CARGO_PKG_VERSION"),
                "server": server,
                "mode": mode,
                "since": since,
                "counts": watching.shown(),
                "events": recent(),
            });
            let admin = admin.clone();
            async move {
                guard["state"] = admin.state().await;
                guard
            }
        };
        OwnSocket::serve(&guards_folder().ok()?, document).ok()
    }

    /// Sends and writes what is left, after all calls have ended, and closes the records.
    pub(crate) async fn finish(&self, beside: Beside) {
        if let Some(admin) = &beside.admin {
            admin.abort();
        }
        let export = lock(&self.export).take();
        if let Some(export) = export {
            export.finish().await;
        }
        self.watching.finish();
        if let Some(store) = &self.store {
            store.close().await;
        }
    }
}
