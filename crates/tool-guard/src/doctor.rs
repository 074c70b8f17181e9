//! `tool-guard doctor`: which clients are here, which servers are guarded, whether they answer.
mod catalog;
mod launch;
mod probe;

use self::{
    catalog::{proposed, unmatched},
    launch::{Launch, launch},
    probe::probe,
};
use crate::{
    build,
    engine::{options::duration, setup::read_catalog, stores::check_default},
    files::{in_path, is_program},
    install::{
        client::Client,
        distinct,
        files::{Environment, Place, Scope, places},
        servers::{CATALOG, Entry, Guarded, Reached, entries},
        tree::{Refusal, line_of, read},
    },
    terminal::{quoted, say, word},
};
use anyhow::Context as _;
use clap::{Args, ValueEnum as _};
use futures_util::{StreamExt as _, stream};
use std::{env, fmt::Write as _, fs, path::Path, process::ExitCode, time::Duration};
use tool_reliability::config::ToolCatalog;
use tr_core::{printable, printable_lines};

/// The exit codes, for the help.
const EXIT_CODES: &str = "\
Exit codes:
  0  all is well; a server without the guard is no fault
  1  a file cannot be read, a server does not answer, its guard is gone, or the records cannot be written
  2  the command line cannot be used";

/// How many servers are started at once.
const AT_ONCE: usize = 4;

/// Shows which servers of which clients are guarded, and whether they answer.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub(crate) struct Options {
    /// Only these clients [default: all]
    #[arg(value_enum)]
    client: Vec<Client>,

    /// Start no server
    #[arg(long)]
    no_start: bool,

    /// Start the servers of the project in the current folder, too: its files say what runs
    #[arg(long, conflicts_with = "no_start")]
    start_project: bool,

    /// How long a server may take to answer
    #[arg(long, value_parser = duration, default_value = "30s", value_name = "DURATION")]
    timeout: Duration,
}

/// A server and what is known without starting it.
struct Known {
    name: String,
    /// What it is, and what stands in front of it.
    said: String,
    /// Something is wrong with its guard.
    fault: bool,
    /// What its guard's catalog declares, if it has one that can be read.
    declared: Option<ToolCatalog>,
    /// Where to write what could be declared, and how its guard gets that.
    to: [String; 2],
    /// What is started, or why nothing is, if that need be said.
    launch: Result<Launch, Option<&'static str>>,
}

/// Runs the subcommand.
pub(crate) async fn run(options: &Options) -> anyhow::Result<ExitCode> {
    let guard = env::current_exe().context("the path of this program cannot be read")?;
    let here = Environment::here().context("the current folder cannot be read")?;
    let mut is_well = true;
    say(&format!("tool-guard {}: {}\n", build::facts(), quoted(&guard)))?;
    match check_default().await {
        Ok(file) => say(&format!("records: {} can be written\n", quoted(&file)))?,
        Err(error) => {
            is_well = false;
            say(&format!("records: {}\n", printable(&format!("{error:#}"))))?;
        }
    }
    let mut absent = Vec::new();
    for client in Client::value_variants() {
        if !options.client.is_empty() && !options.client.contains(client) {
            continue;
        }
        let places = places(*client, &here);
        let files = distinct(&places);
        let program = client.form().programs.iter().find_map(|name| in_path(name));
        if files.is_empty() && program.is_none() {
            absent.push(client.form().name);
            continue;
        }
        let program = program.map_or("its program is not in the PATH".into(), |it| quoted(&it));
        say(&format!("\n{}: {program}\n", client.form().name))?;
        if files.is_empty() {
            say("  no servers: it has no file\n")?;
        }
        for place in files {
            is_well &= file(place, *client, options, &here.folder, &guard).await?;
        }
    }
    if !absent.is_empty() {
        say(&format!("\nnot found: {}\n", absent.join(", ")))?;
    }
    Ok(if is_well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The servers without the guard of clients that `install` has put it in front of others of, each with its file. Files that
/// cannot be read are left out.
pub(crate) fn unguarded() -> anyhow::Result<Vec<String>> {
    let here = Environment::here()?;
    let mut all = Vec::new();
    for client in Client::value_variants() {
        let (form, places) = (client.form(), places(*client, &here));
        let (mut installed, mut without) = (false, Vec::new());
        for place in distinct(&places) {
            let text = fs::read_to_string(&place.path).unwrap_or_default();
            let Ok(root) = read(&text, form.syntax) else { continue };
            for entry in entries(root.as_ref(), form).unwrap_or_default() {
                let Ok(reached) = entry.reached(form) else { continue };
                let guarded = reached.guarded();
                installed |= guarded == Guarded::Installed;
                if guarded == Guarded::No && !reached.words().is_empty() {
                    let (title, file) = (entry.title(), quoted(&place.path));
                    without.push(format!("{title} of {} in {file}", form.name));
                }
            }
        }
        all.extend(without.into_iter().filter(|_| installed));
    }
    Ok(all)
}

/// Reports the servers of a file; `false` if something is wrong.
async fn file(
    place: &Place,
    client: Client,
    options: &Options,
    folder: &Path,
    guard: &Path,
) -> anyhow::Result<bool> {
    let shown = quoted(&place.path);
    // A client starts a project's servers there, not in the folder of its own files.
    let mut parents = place.path.ancestors().skip(1);
    let is_own =
        |it: &Path| it.file_name().is_some_and(|it| it.as_encoded_bytes().starts_with(b"."));
    let project = (place.scope == Scope::Project).then(|| parents.find(|it| !is_own(it)));
    let project = project.flatten();
    let known = match fs::read_to_string(&place.path) {
        Err(error) => Err(format!("cannot be read: {error}")),
        Ok(text) => known(&text, (client, place.scope), options, project.unwrap_or(folder), guard)
            .map_err(|refusal| format!("line {} {}", line_of(&text, refusal.at), refusal.what)),
    };
    say(&format!("  {shown} ({})\n", word(&place.scope)))?;
    let known = match known {
        Ok(known) => known,
        Err(why) => {
            say(&format!("    {}\n", printable(&why)))?;
            return Ok(false);
        }
    };
    if known.is_empty() {
        say("    no servers\n")?;
    }
    let mut is_well = true;
    let started: Vec<_> = known.iter().filter(|it| it.launch.is_ok()).map(|it| &*it.name).collect();
    if !started.is_empty() {
        let (names, patience) = (started.join(", "), options.timeout.as_secs_f64());
        eprintln!("tool-guard: waits for {}, up to {patience} s each", printable(&names));
    }
    let mut ends = stream::iter(&known)
        .map(|it| async move {
            match &it.launch {
                Ok(launch) => (it, Ok(probe(launch, options.timeout).await)),
                Err(why) => (it, Err(*why)),
            }
        })
        .buffered(AT_ONCE);
    while let Some((it, end)) = ends.next().await {
        let (mut line, mut more) = (it.said.clone(), String::new());
        match end {
            Ok(Ok(answered)) => {
                let _ = write!(line, "; answers after {} ms", answered.after.as_millis());
                if !answered.who.is_empty() {
                    let _ = write!(line, ": {}", answered.who);
                }
                let declared = it.declared.as_ref().filter(|_| !answered.tools.is_empty());
                let unmatched = declared.map(|it| unmatched(it, &answered.tools));
                if let Some(unmatched) = unmatched.filter(|all| !all.is_empty()) {
                    let _ = writeln!(more, "      its catalog: {}", unmatched.join("; "));
                }
                let proposed = proposed(declared, &answered.tools);
                if !proposed.is_empty() {
                    let [file, then] = &it.to;
                    let lines = proposed.iter().map(|line| format!("        {line}\n"));
                    let _ = writeln!(
                        more,
                        "      a payment that is asked for again under a new id is made again after ten minutes; if these arguments name it, write into {file}\n{}      and {then}",
                        lines.collect::<String>()
                    );
                }
            }
            Ok(Err(why)) => {
                is_well = false;
                let _ = write!(line, "; does not answer: {why}");
            }
            Err(Some(why)) => {
                let _ = write!(line, "; not started: {why}");
            }
            Err(None) => {}
        }
        is_well &= !it.fault;
        say(&format!("    {}\n{}", printable(&line), printable_lines(&more)))?;
    }
    Ok(is_well)
}

/// The servers of a file's text.
fn known(
    text: &str,
    (client, scope): (Client, Scope),
    options: &Options,
    folder: &Path,
    guard: &Path,
) -> Result<Vec<Known>, Refusal> {
    let form = client.form();
    let root = read(text, form.syntax)?;
    let of = |entry: Entry<'_>| {
        let at =
            |said: &str| format!("{} (line {}): {said}", entry.title(), line_of(text, entry.at));
        let reached = match entry.reached(form) {
            Ok(reached) => reached,
            Err(Refusal { what, .. }) => {
                let (name, said, fault) = (entry.title(), at(&what), entry.names_guard());
                let (declared, to) = (None, Default::default());
                return Ok(Known { name, said, fault, declared, to, launch: Err(None) });
            }
        };
        let (said, fault) = guarded(&reached, guard);
        let said = at(&said);
        let launch = match launch(&entry, &reached, form, folder)? {
            _ if fault || options.no_start => Err(None),
            Ok(_) if scope == Scope::Project && !options.start_project => {
                Err(Some("it is the project's: start such servers with --start-project"))
            }
            launch => launch,
        };
        let words = reached.words();
        let own = words.split(|word| *word == "--").next().unwrap_or_default();
        let (client, server) = (word(&client), quoted(Path::new(entry.name)));
        let mut places = 0..own.len();
        let file = places.find_map(|at| match own[at] {
            "--catalog" => own.get(at + 1).copied(),
            word => word.strip_prefix(CATALOG),
        });
        let file = file.filter(|_| reached.guarded() != Guarded::No);
        let to = match (file, reached.guarded()) {
            // Another file would take its place.
            (Some(file), _) => [quoted(Path::new(file)), "restart the client".to_owned()],
            (None, Guarded::ByHand) => ["a file".into(), "name it by --catalog after `mcp`".into()],
            (None, _) => [
                "a file".to_owned(),
                format!("run: tool-guard install {client} --server {server} --catalog FILE"),
            ],
        };
        let declared = file.map(|file| read_catalog(&folder.join(file))).transpose();
        let (declared, said, fault) = match declared {
            Ok(declared) => (declared, said, fault),
            Err(error) => (None, format!("{said}; its catalog: {error:#}"), true),
        };
        Ok(Known { name: entry.title(), said, fault, declared, to, launch })
    };
    entries(root.as_ref(), form)?.into_iter().map(of).collect()
}

/// What stands in front of a server, and whether that is a fault.
fn guarded(reached: &Reached<'_>, guard: &Path) -> (String, bool) {
    let words = reached.words();
    let program = Path::new(words.first().copied().unwrap_or_default());
    match (reached.guarded(), reached) {
        (Guarded::No, Reached::Other(why)) => (format!("not guarded: {why}"), false),
        (Guarded::No, Reached::Http { .. }) => {
            ("not guarded: it is reached over HTTP (install --http)".into(), false)
        }
        (Guarded::No, _) => ("not guarded".into(), false),
        (Guarded::ByHand, _) if !program.is_absolute() => ("guarded, by hand".into(), false),
        (how, _) if !is_program(program) => {
            let advice = match how {
                Guarded::Installed => "install --undo, and install again",
                _ => "correct its path",
            };
            (format!("its guard is gone, {}: {advice}", program.display()), true)
        }
        (Guarded::ByHand, _) => ("guarded, by hand".into(), false),
        (_, _) if program.canonicalize().ok() == guard.canonicalize().ok() => {
            ("guarded".into(), false)
        }
        (_, _) => (format!("guarded by another program, {}", program.display()), false),
    }
}
