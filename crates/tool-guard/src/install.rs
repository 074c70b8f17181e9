//! `tool-guard install`: puts the guard in front of the MCP servers in a client's files, and takes it out again.
//!
//! All files are read and edited in memory before the first is written: if one is refused, none is changed.
pub(crate) mod client;
mod edit;
pub(crate) mod files;
mod reach;
pub(crate) mod servers;
mod shown;
pub(crate) mod tree;

#[cfg(test)]
mod tests;

use self::{
    client::Client,
    edit::{Done, EditOptions, Edited, What, edit},
    files::{Environment, Place, Scope, places},
    shown::shown,
};
use crate::{
    engine::setup::read_catalog,
    files::{CliError, File, is_program, replace_file},
    terminal::{quoted, say, word},
};
use anyhow::{Context as _, anyhow};
use clap::Args;
use similar::TextDiff;
use std::{
    collections::HashSet,
    env,
    fmt::Write as _,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{ExitCode, Stdio},
    time::Duration,
};
use tokio::{process::Command, runtime::Handle, time::timeout};
use tr_core::printable;

/// Examples and exit codes, for the help.
const EXAMPLES: &str = "\
Examples:
  tool-guard install claude-code --dry-run
  tool-guard install claude-code
  tool-guard install claude-code --server shop --catalog tools.toml
  tool-guard install claude-code --undo

Exit codes:
  0  done, or nothing to do
  1  a file, or the server of --server, cannot be used; no file was changed, unless the message says so
  2  the command line cannot be used";

/// How long a guard may take to say its version.
const PATIENCE: Duration = Duration::from_secs(2);

/// What the old file's name ends with.
const BACKUP: &str = ".before-tool-guard";
const UNDONE: &str = ".with-tool-guard";

/// Puts the guard in front of the MCP servers in a client's configuration.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Options {
    /// The client whose servers are guarded
    #[arg(value_enum)]
    client: Client,

    /// Only the server NAME
    #[arg(long, value_name = "NAME")]
    server: Option<String>,

    /// Only the files of this scope [default: both]
    #[arg(long, value_enum, value_name = "WHOSE")]
    scope: Option<Scope>,

    /// Guard servers over HTTP too: the client starts `tool-guard mcp --upstream URL` in place of connecting
    #[arg(long)]
    http: bool,

    /// What you declare of the server's tools, as TOML or JSON: the guard reads FILE at each start
    #[arg(long, value_name = "FILE", requires = "server", conflicts_with = "undo")]
    catalog: Option<PathBuf>,

    /// Show what would change, and change nothing
    #[arg(long)]
    dry_run: bool,

    /// Take the guard out again, and leave all else as it is
    #[arg(long, conflicts_with = "http")]
    undo: bool,
}

/// A file with its edited text.
struct Planned {
    place: Place,
    file: File,
    before: String,
    edited: Edited,
}

/// Runs the subcommand.
pub(crate) fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let guard = program()?;
    let catalog = options.catalog.as_deref().map(usable).transpose()?;
    let here = Environment::here().context("the current folder cannot be read")?;
    let places = places(options.client, &here);
    let wanted = |place: &&Place| options.scope.is_none_or(|scope| scope == place.scope);
    let places: Vec<Place> = places.iter().filter(wanted).cloned().collect();
    let unfit = |url: &str| Handle::current().block_on(reach::unfit(url));
    let (mut planned, mut refused) = (Vec::new(), Vec::new());
    for place in distinct(&places) {
        let is_stale = |path: &str| {
            is_in_cache(path) && !is_in_cache(&guard)
                || !is_program(Path::new(path))
                // A project's file comes from others: the programs that it names are not started.
                || place.scope == Scope::User && Handle::current().block_on(is_older(path))
        };
        let order = EditOptions {
            guard: &guard,
            server: options.server.as_deref(),
            http: options.http,
            catalog: catalog.as_deref(),
            undo: options.undo,
            unfit: Some(&unfit),
            stale: Some(&is_stale),
        };
        match plan(place, options, &order) {
            Ok(plan) => planned.push(plan),
            Err(error) => refused.push(error),
        }
    }
    if !refused.is_empty() {
        for error in &refused {
            eprintln!("tool-guard: {}", printable(&format!("{error:#}")));
        }
        eprintln!("tool-guard: no file was changed");
        return Ok(ExitCode::FAILURE);
    }
    if planned.iter().all(|plan| plan.edited.servers.is_empty()) {
        let others: Vec<_> = planned.into_iter().flat_map(|plan| plan.edited.others).collect();
        return nothing(options, &places, &others);
    }
    let mut out = String::new();
    for plan in &planned {
        if !plan.edited.servers.is_empty() {
            let done = carry_out(plan, options, &mut out);
            if done.is_err() {
                // What was done before belongs to the report.
                say(&out)?;
            }
            done?;
        }
    }
    let has_changed = planned.iter().any(|plan| plan.edited.text != plan.before);
    let client = options.client.form().name;
    out += &match (has_changed, options.dry_run, options.undo) {
        (true, true, _) => "nothing was changed: this was a dry run\n".to_owned(),
        (true, false, true) => format!("restart {client}: it starts its servers then\n"),
        (true, false, false) => {
            let client_word = word(&options.client);
            format!(
                "restart {client}: it starts its servers then; `tool-guard doctor {client_word}` tries them, and shows what to declare\n"
            )
        }
        (false, _, false) => {
            "nothing was changed: no server is without the guard that could have it\n".to_owned()
        }
        (false, _, true) => {
            "nothing was changed: no server has a guard that this command put there\n".to_owned()
        }
    };
    let of_project = planned
        .iter()
        .find(|plan| plan.place.scope == Scope::Project && plan.edited.text != plan.before);
    if let (Some(plan), false) = (of_project, options.undo) {
        let _ = writeln!(
            out,
            "{} belongs to the project: who shares it needs the guard at the same path, or use --scope user",
            quoted(&plan.place.path)
        );
    }
    if !options.undo && has_changed && is_in_cache(&guard) {
        let _ = writeln!(
            out,
            "the guard is in a folder that its installer may empty, {}: install it for good (npm i -g, uv tool install, cargo install), and run the command again",
            printable(&guard)
        );
    }
    say(&out)?;
    let is_left = |done: &Done| matches!(done.what, What::Left(_) | What::ByHand);
    let mut all = planned.iter().flat_map(|plan| &plan.edited.servers);
    let is_refused = options.server.is_some() && !has_changed && all.any(is_left);
    Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The absolute path of a catalog that the guard can read.
fn usable(catalog: &Path) -> anyhow::Result<String> {
    read_catalog(catalog)?;
    let path = std::path::absolute(catalog)?;
    path.into_os_string().into_string().map_err(|path| {
        anyhow!("the path of {} is no UTF-8, which a client's file needs", path.display())
    })
}

/// This program's absolute path, as text: the one by which it was called, if that leads here. A link of Homebrew's or
/// Nix' stays where it is when the next version is installed, and the folder that it leads to does not.
fn program() -> anyhow::Result<String> {
    let real = env::current_exe().context("the path of this program cannot be read")?;
    let called = env::args_os().next().map(PathBuf::from).unwrap_or_default();
    let path = env::var_os("PATH").unwrap_or_default();
    let folders = match called.components().count() {
        1 => env::split_paths(&path).collect(),
        _ => vec![PathBuf::new()],
    };
    let found = folders.into_iter().filter_map(|it| std::path::absolute(it.join(&called)).ok());
    let path = found.into_iter().find(|it| it.canonicalize().is_ok_and(|it| it == real));
    let path = path.unwrap_or(real);
    path.to_str().map(str::to_owned).ok_or_else(|| {
        anyhow!(
            "the path of this program is no UTF-8, which a client's file needs: {}",
            path.display()
        )
    })
}

/// Whether the guard at this path is older than this one, or does not say its version in time.
async fn is_older(path: &str) -> bool {
    let mut asked = Command::new(path);
    asked.arg("--version").stdin(Stdio::null()).kill_on_drop(true);
    let Ok(Ok(said)) = timeout(PATIENCE, asked.output()).await else { return true };
    let said = String::from_utf8_lossy(&said.stdout);
    let version = said.split_whitespace().nth(1).and_then(numbers);
    version.is_none_or(|version| Some(version) < numbers(env!("CARGO_PKG_VERSION")))
}

/// The numbers of a version.
fn numbers(version: &str) -> Option<Vec<u64>> {
    let release = version.split(['-', '+']).next()?;
    release.split('.').map(|number| number.parse().ok()).collect()
}

fn is_in_cache(guard: &str) -> bool {
    ["/.cache/", "/_npx/", "/Caches/"].iter().any(|part| guard.contains(part))
}

/// The files that exist, each once: several paths may lead to one file.
pub(crate) fn distinct(places: &[Place]) -> Vec<&Place> {
    let mut seen = HashSet::new();
    // A link to nothing is found, and refused where it is opened.
    let found = places.iter().filter(|place| fs::symlink_metadata(&place.path).is_ok());
    let real = |place: &Place| place.path.canonicalize().unwrap_or_else(|_| place.path.clone());
    found.filter(|place| seen.insert(real(place))).collect()
}

fn plan(place: &Place, options: &Options, order: &EditOptions<'_>) -> anyhow::Result<Planned> {
    let shown = place.path.display();
    let refused = |error: CliError| anyhow!("{shown} {}", error.what);
    let is_regular =
        fs::metadata(&place.path).with_context(|| format!("{shown} cannot be read"))?;
    if !is_regular.is_file() {
        return Err(anyhow!("{shown} is not a regular file: replace it with one"));
    }
    // Opened to be changed only if it will be.
    let file = File::open(&place.path).map_err(refused)?;
    let before = String::from_utf8(file.bytes().map_err(refused)?).map_err(|error| {
        let line = tree::line_of(
            &String::from_utf8_lossy(error.as_bytes()),
            error.utf8_error().valid_up_to(),
        );
        anyhow!("{shown}:{line} is no UTF-8: save it as UTF-8")
    })?;
    let edited = edit(&before, options.client.form(), order).map_err(|refusal| {
        anyhow!("{shown}:{} {}", tree::line_of(&before, refusal.at), refusal.what)
    })?;
    if edited.text != before && !options.dry_run && file.found.permissions().mode() & 0o222 == 0 {
        return Err(anyhow!("{shown} is read-only: chmod u+w it, if it is yours to change"));
    }
    Ok(Planned { place: place.clone(), file, before, edited })
}

/// No server was found.
fn nothing(options: &Options, places: &[Place], others: &[String]) -> anyhow::Result<ExitCode> {
    let client = options.client.form().name;
    let looked: Vec<_> = places.iter().map(|place| quoted(&place.path)).collect();
    let looked = if looked.is_empty() {
        "no place, since HOME is not set".into()
    } else {
        looked.join(", ")
    };
    let which = match &options.server {
        Some(name) => format!("no MCP server {name:?}"),
        None => "no MCP servers".into(),
    };
    let said = format!("{client} has {which} in its files; looked at {looked}");
    if options.undo && options.server.is_none() {
        say(&format!("nothing to do: {said}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let advice = match others {
        [] => "add the server to the client first, then run the command again".to_owned(),
        _ => format!("its servers are {}", others.join(", ")),
    };
    eprintln!("tool-guard: {}", printable(&format!("{said}: {advice}")));
    Ok(ExitCode::FAILURE)
}

/// Shows the change, or makes it; reports both.
fn carry_out(plan: &Planned, options: &Options, out: &mut String) -> anyhow::Result<()> {
    let path = quoted(&plan.place.path);
    let _ = writeln!(out, "{}, {}: {path}", options.client.form().name, word(&plan.place.scope));
    let would = if options.dry_run { "would be " } else { "" };
    for Done { title, line, what } in &plan.edited.servers {
        let what = match what {
            What::Guarded => format!("{would}guarded"),
            What::AlreadyGuarded => "is guarded already".into(),
            What::Repaired(path) => format!("{would}guarded by this program, in place of {path}"),
            What::Declared(catalog) => format!("{would}guarded with the catalog {catalog}"),
            What::Left(why) => format!("is left as it is: {why}"),
            What::Restored => format!("{would}restored, without the guard"),
            What::NotGuarded => "has no guard".into(),
            What::ByHand => "has a guard that was written by hand, and is left as it is".into(),
        };
        let _ = writeln!(out, "  {}", printable(&format!("{title} (line {line}): {what}")));
    }
    if plan.edited.text == plan.before {
        return Ok(());
    }
    if options.dry_run {
        // Other values may be secrets.
        let hidden = |text| shown(text, options.client.form());
        let hidden = |text| hidden(text).map_err(|it: tree::Refusal| anyhow!("{path} {}", it.what));
        let (before, after) = (hidden(&plan.before)?, hidden(&plan.edited.text)?);
        let diff = TextDiff::from_lines(&before, &after);
        let diff = diff.unified_diff().context_radius(1).header(&path, &path).to_string();
        out.push_str(&diff.replace('\r', ""));
        return Ok(());
    }
    let shown = plan.place.path.display();
    let failed = |error: CliError| anyhow!("{shown} {}; {}", error.what, error.help);
    let file = File::open_to_change(&plan.place.path).map_err(failed)?;
    let stamp = file.stamp().map_err(failed)?;
    if file.bytes().map_err(failed)? != plan.before.as_bytes() {
        return Err(anyhow!("another program changed {shown} meanwhile: run the command again"));
    }
    let ending = if options.undo { UNDONE } else { BACKUP };
    let new = plan.edited.text.as_bytes();
    let backup = replace_file(&file, stamp, ending, new).map_err(failed)?;
    if options.undo && forget(&plan.file.real, &plan.edited.text, options.client) {
        let _ = fs::remove_file(&backup);
        let _ = writeln!(out, "  it is byte for byte as it was before the guard");
    } else {
        let _ = writeln!(out, "  the old file is {}", quoted(&backup));
    }
    Ok(())
}

/// Removes the backups that equal the restored file, but for the guard; `false` if none equals it.
fn forget(file: &Path, restored: &str, client: Client) -> bool {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return false };
    let mut start = name.to_owned();
    start.push(BACKUP);
    let start = start.to_string_lossy().into_owned();
    let Ok(all) = fs::read_dir(folder) else { return false };
    let mut is_same = false;
    for found in all.flatten() {
        let rest = found.file_name().to_string_lossy().strip_prefix(&start).map(str::to_owned);
        let is_backup = rest.is_some_and(|rest| {
            rest.is_empty() || rest.strip_prefix('-').is_some_and(|it| it.parse::<u32>().is_ok())
        });
        let Some(old) = is_backup.then(|| fs::read_to_string(found.path()).ok()).flatten() else {
            continue;
        };
        let undo = EditOptions { undo: true, ..EditOptions::default() };
        let is_between = || edit(&old, client.form(), &undo).is_ok_and(|it| it.text == restored);
        if old == restored || is_between() {
            is_same |= fs::remove_file(found.path()).is_ok() && old == restored;
        }
    }
    is_same
}
