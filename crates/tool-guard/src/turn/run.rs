//! Runs the turn, and reports its result.
use super::{Client, Keys, Options};
use crate::{
    engine::{
        effects::Effects,
        failure, options,
        records::{Place, RecordsCommand},
        setup::{Files, Setup, timed},
        stores::Records,
    },
    terminal::{print, refuse},
};
use anyhow::{Context as _, bail};
use serde_json::Value;
use std::{
    collections::{HashMap, HashSet},
    fmt::Display,
    fs::{self, File, OpenOptions},
    io::{self, Write as _},
    process::ExitCode,
    sync::Arc,
};
use tokio::signal::unix::{SignalKind, signal};
use tool_reliability::{
    Builder, Mode, ToolStack,
    config::{Config, Preset},
};
use tower::{service_fn, util::MapRequest};
use tr_config::ToolCatalog;
use tr_core::{Effect, ToolManifest, printable_lines};
use tr_turn::{Plan, Recorder, Report, Tools, Turns};

/// The plan, the catalog or a variable cannot be used.
const UNUSABLE: u8 = 2;
/// A result is missing that the turn can do without.
const PARTIAL: u8 = 3;
/// A result is missing that needs the user's attention: it is required, or calls may have run that change
/// something.
const ESCALATED: u8 = 4;

/// The first sentence of the advice on repeating the plan.
const INCOMPLETE: &str =
    "tool-guard: the turn is not complete, and some of its calls may have run.";
/// The advice for a run with a name.
const GOES_ON: &str = "With the same --run, a repeat of the plan makes no call again that ended, nor one \
     that may have run before a person has settled it.";
/// The advice for a run without a name.
const RUNS_AGAIN: &str = "A repeat of the plan makes all of its calls again except those with an idempotency_key, also \
     those that succeeded: check which calls ran, and remove them from the plan. With --run ID, a later run \
     under the same ID makes no call again that ended.";
/// The advice if nothing was recorded.
const RUNS_ALL_AGAIN: &str = "A repeat of the plan makes all of its calls again, also those that succeeded, since \
     nothing was recorded beyond this run: check which calls ran, and remove them from the plan.";

/// Runs a turn.
pub(crate) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    let (config, catalog) = (options.config.as_deref(), options.catalog.as_deref());
    let files = Files::new(config, catalog, options::Mode::Enforce);
    let text = fs::read_to_string(&options.plan)
        .with_context(|| format!("cannot read {}", options.plan.display()));
    let text = text.map_err(|error| format!("{error:#}"));
    let (setup, catalog, text) = match (usable(&files), text) {
        (Ok((setup, catalog)), Ok(text)) => (setup, catalog, text),
        (setup, text) => {
            // All errors, so that the user can fix them together.
            for said in setup.err().into_iter().chain(text.err()) {
                eprintln!("tool-guard: {}", printable_lines(&said));
            }
            return Ok(ExitCode::from(UNUSABLE));
        }
    };
    let unusable = |error: &anyhow::Error| {
        let said = format!("{}: {}", options.plan.display(), failure::in_full(&**error));
        refuse(UNUSABLE, &printable_lines(&said))
    };
    // Mistakes of the plan itself are reported before the server starts; missing tools afterwards.
    let plan = match Plan::from_json(&text, &Tools::any().catalog(catalog.clone())) {
        Ok(plan) => plan,
        Err(error) => return unusable(&error.into()),
    };
    let run = options.run.as_deref();
    let recording = options.recording.over(&setup.config.records);
    let server = recording.server(&options.command);
    let command = RecordsCommand::of(recording.place.as_ref());
    if run.is_some() && recording.place == Some(Place::Memory) {
        let why = "--run needs records that outlive the command: remove --records memory";
        return refuse(UNUSABLE, why);
    }
    let rollout = setup.config.rollout.as_ref();
    if run.is_some() && rollout.is_some_and(|rollout| rollout.uniform() != Some(Mode::Enforce)) {
        let why = "--run must record every call, but [rollout] leaves some out: remove --run, or set mode = \"enforce\" for all calls";
        return refuse(UNUSABLE, why);
    }
    // Without a key for any call there is nothing to record, and no file is created.
    let is_recorded = run.is_some() || plan.has_keys();
    let records = match is_recorded || recording.place.is_some() {
        true => recording.open(&server).await?,
        false => Records::default(),
    };
    if run.is_some() && records.store.is_none() {
        bail!("--run needs records that outlive the command: name a store with --records");
    }
    let store = records.store.clone();
    let is_kept = store.is_some();
    let keys = Keys::new(&server, run, command);
    // Opened before any call is made, so that a wrong path loses no results.
    let results_file = options.results.as_deref().map(|path| {
        let open = OpenOptions::new().write(true).create(true).truncate(false).open(path);
        open.with_context(|| format!("cannot write {}; no call was made", path.display()))
    });
    let results_file = results_file.transpose()?;
    let (client, effects) = Client::connect(&options.command).await?;
    let catalog = completed(&catalog, &effects);
    let report = match catalog {
        Ok(catalog) => play(&client, &effects, &text, &setup.config, catalog, &keys, records).await,
        Err(error) => Err(error),
    };
    client.end().await;
    if let Some(store) = store {
        store.close().await;
    }
    let (report, unrecorded) = match report {
        Ok(ended) => ended,
        Err(error) => return unusable(&error),
    };
    let trace = if options.json { report.trace.to_json_lines() } else { report.trace.to_string() };
    let printed = print(trace);
    if let Some(file) = results_file {
        write_results(file, &report)
            .context("the calls were made, but --results cannot be written")?;
    }
    printed.context("the calls were made, but the trace cannot be printed")?;
    eprint!("{}", printable_lines(&unrecorded));
    let is_repeatable = report.is_repeatable();
    let code = match report.is_complete() {
        true => 0,
        false if report.escalated().any(|call| call.required || !is_repeatable) => ESCALATED,
        false => PARTIAL,
    };
    if code == ESCALATED && !is_repeatable {
        let again = match (&options.run, is_kept && is_recorded) {
            (Some(_), _) => GOES_ON,
            (None, true) => RUNS_AGAIN,
            (None, false) => RUNS_ALL_AGAIN,
        };
        eprintln!("{INCOMPLETE} {again}");
        if is_kept {
            eprint!("{}", printable_lines(&keys.unknown(&report)));
        }
    }
    Ok(ExitCode::from(code))
}

/// The settings and the catalog of the files, if a stack can be built from them.
fn usable(files: &Files) -> Result<(Setup, ToolCatalog), String> {
    let setup = files.read()?;
    let unusable = |error: &dyn Display| format!("{} cannot be used: {error}", files.said_in());
    builder(&setup.config).build().map_err(|error| unusable(&error))?;
    setup.warn_of_server_keys();
    let catalog = setup.catalog().map_err(|error| unusable(&error))?;
    Ok((setup, catalog))
}

/// The stack for a turn: the preset `error_handling`, unless the configuration names another, with the
/// settings of the configuration on top.
fn builder(config: &Config) -> Builder {
    let mut config = config.clone();
    config.preset.get_or_insert(Preset::ErrorHandling);
    // The guard sees no transcript.
    config.sessions = None;
    ToolStack::builder()
        .config(&config)
        // A plan does not loop as a model does, and each of its calls may fail on its own.
        .loop_guard(|guard| guard.enabled(false))
        // MCP marks a failure by `isError`; other members are the server's answer.
        .silent_failures(false)
        .idempotency(|layer| timed(layer, &config.idempotency))
}

/// Runs the plan over `client`'s tools; returns which ends are not recorded, too, as text. A signal cancels the calls
/// that have not ended.
async fn play(
    client: &Client,
    effects: &Effects,
    plan: &str,
    config: &Config,
    catalog: ToolCatalog,
    keys: &Keys,
    records: Records,
) -> anyhow::Result<(Report, String)> {
    let names = effects.listed().map(|tool| tool.tool.name().to_owned());
    let plan = keys.plan(Plan::from_json(plan, &Tools::any().catalog(catalog).offered(names))?);
    let recorder = Recorder::default();
    let stack = builder(config)
        .idempotency(|layer| records.keep(layer))
        .hook(recorder.clone())
        .observer(Arc::new(recorder.clone()))
        .build()?;
    let _janitor = stack.records().spawn_janitor();
    let told = keys.clone();
    let client = client.clone();
    let tools = stack.service(service_fn(move |call| client.call(call)));
    let keyed = MapRequest::new(tools, move |call| told.tell(call));
    let turn = Turns::new(keyed).recorder(recorder).run(plan);
    let canceller = turn.canceller();
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    tokio::pin!(turn);
    loop {
        tokio::select! {
            biased;
            report = &mut turn => {
                let store = stack.records().in_store();
                return Ok((report, store.map_or_else(String::new, |it| keys.unrecorded(&it))));
            }
            _ = interrupted.recv() => canceller.cancel_turn(),
            _ = terminated.recv() => canceller.cancel_turn(),
        }
    }
}

/// The user's catalog, completed by the server's list of tools.
fn completed(catalog: &ToolCatalog, effects: &Effects) -> anyhow::Result<ToolCatalog> {
    let listed: HashMap<_, _> =
        effects.listed().map(|manifest| (manifest.tool.name(), manifest)).collect();
    let declared: HashSet<_> = catalog.iter().map(|manifest| manifest.tool.name()).collect();
    let rest = listed.values().copied().filter(|it| !declared.contains(it.tool.name()));
    let all = catalog.iter().chain(rest).map(|manifest| ToolManifest::clone(manifest));
    let mut all: Vec<_> = all.collect();
    for manifest in &mut all {
        let name = manifest.tool.name();
        let said = listed.get(name).and_then(|manifest| manifest.effect);
        let harmful = effects.is_harmful(name).then_some(Effect::Mutating);
        manifest.effect = manifest.effect.or(said).or(harmful);
    }
    Ok(ToolCatalog::new(all)?.with_undeclared_effect(catalog.undeclared_effect()))
}

/// Replaces the file's content, if it is no pipe, with the results by the calls' names, as the tools wrote them.
fn write_results(mut file: File, report: &Report) -> io::Result<()> {
    if file.metadata()?.is_file() {
        file.set_len(0)?;
    }
    let results = report.calls.iter().filter_map(|call| Some((call, call.content()?)));
    let members =
        results.map(|(call, content)| format!("  {}: {}", Value::from(&*call.name), content.get()));
    let results = format!("{{\n{}\n}}\n", members.collect::<Vec<_>>().join(",\n"));
    file.write_all(results.as_bytes())
}
