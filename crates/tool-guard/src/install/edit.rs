//! Puts the guard into the text of a client's file, and takes it out again. Pure: a text in, a text out.
//!
//! Only inserted words and moved words change. The server's command keeps its spelling, as an argument of the
//! guard, so that undoing gives back each byte:
//!
//! ```text
//! "command": "npx", "args": ["-y", "x"]   "command": "/bin/tool-guard", "args": ["mcp", "--", "npx", "-y", "x"]
//! "command": "npx"                        "args": ["mcp", "npx"], "command": "/bin/tool-guard"
//! "url": "https://h/mcp"                  "command": "/bin/tool-guard", "args": ["mcp", "--upstream", "https://h/mcp"]
//! ```
//!
//! The `--` says that the entry had arguments of its own, if only an empty list.
use super::{
    client::Form,
    servers::{CATALOG, Entry, Guarded, LIMIT, Reached, entries},
    tree::{Member, Node, Refusal, Syntax, line_of, read},
};
use std::{ops::Range, time::Duration};

/// How long before the client's own limit the guard answers.
const BEFORE: Duration = Duration::from_secs(2);
/// The limits that `--timeout` takes.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// Asks the server at a URL, and says why the guard cannot stand in front of it.
pub(crate) type Unfit = dyn Fn(&str) -> Option<String>;

/// What is to be done with a file.
#[derive(Clone, Copy, Default)]
pub(crate) struct EditOptions<'o> {
    /// The guard's program, an absolute path.
    pub(crate) guard: &'o str,
    /// Only the server of this name.
    pub(crate) server: Option<&'o str>,
    /// Whether servers over HTTP are guarded too.
    pub(crate) http: bool,
    /// The catalog of the server's tools, an absolute path.
    pub(crate) catalog: Option<&'o str>,
    pub(crate) undo: bool,
    /// Why the guard cannot stand in front of an address, as far as its server says.
    pub(crate) unfit: Option<&'o Unfit>,
    /// Whether the guard of this path works no more, or may soon.
    pub(crate) stale: Option<&'o dyn Fn(&str) -> bool>,
}

/// The new text, and what was done with each server.
#[derive(Debug)]
pub(crate) struct Edited {
    pub(crate) text: String,
    pub(crate) servers: Vec<Done>,
    /// The servers that were not asked for.
    pub(crate) others: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) title: String,
    pub(crate) line: usize,
    pub(crate) what: What,
}

/// What was done with a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Guarded,
    AlreadyGuarded,
    /// By this program now, in place of the one at this path.
    Repaired(String),
    /// With this catalog now.
    Declared(String),
    /// Left as it is, and why.
    Left(String),
    Restored,
    NotGuarded,
    ByHand,
}

/// A piece of the text and what replaces it.
type Splice = (Range<usize>, String);

/// Edits the text of a file of this form.
pub(crate) fn edit(text: &str, form: &Form, order: &EditOptions<'_>) -> Result<Edited, Refusal> {
    let root = read(text, form.syntax)?;
    let mut splices: Vec<Splice> = Vec::new();
    let (mut servers, mut others) = (Vec::new(), Vec::new());
    for entry in entries(root.as_ref(), form)? {
        if order.server.is_some_and(|name| name != entry.name) {
            others.push(entry.name.to_owned());
            continue;
        }
        let mut editor = Editor { text, form, entry: &entry, splices: &mut splices };
        let what = if order.undo { editor.undo()? } else { editor.install(order)? };
        servers.push(Done { title: entry.title(), line: line_of(text, entry.at), what });
    }
    splices.sort_by_key(|(range, _)| (range.start, range.end));
    let (mut edited, mut at) = (String::with_capacity(text.len() + 256), 0);
    for (range, new) in splices {
        edited += &text[at..range.start];
        edited += &new;
        at = range.end;
    }
    edited += &text[at..];
    if edited != text {
        // What clients could not read, or could not be undone, is not written.
        read(&edited, form.syntax)?;
        if !order.undo {
            let undo = EditOptions { undo: true, ..*order };
            // Servers that were guarded before may have been changed since; that is found at their undoing.
            if let Ok(before) = edit(text, form, &undo)
                && edit(&edited, form, &undo)?.text != before.text
            {
                let what = "cannot be edited so that --undo would restore it: edit it by hand";
                return Err(Refusal::new(0, what));
            }
        }
    }
    Ok(Edited { text: edited, servers, others })
}

struct Editor<'e> {
    text: &'e str,
    form: &'e Form,
    entry: &'e Entry<'e>,
    splices: &'e mut Vec<Splice>,
}

impl<'e> Editor<'e> {
    fn install(&mut self, order: &EditOptions<'_>) -> Result<What, Refusal> {
        let reached = self.entry.reached(self.form)?;
        let catalog = order.catalog.map(|it| quoted(&format!("{CATALOG}{it}")));
        match (reached.guarded(), catalog) {
            (Guarded::No, catalog) => self.guard(order, reached, catalog),
            (Guarded::Installed, catalog) => self.renew(order, &reached, catalog),
            (Guarded::ByHand, None) => Ok(What::AlreadyGuarded),
            (Guarded::ByHand, Some(word)) => Ok(What::Left(format!(
                "its guard was written by hand: write {word} after \"mcp\" by hand, too"
            ))),
        }
    }

    /// Repairs an installed guard, or gives it another catalog.
    fn renew(
        &mut self,
        order: &EditOptions<'_>,
        reached: &Reached<'e>,
        catalog: Option<String>,
    ) -> Result<What, Refusal> {
        let nodes = reached.nodes();
        let text = |node: &&Node| node.text().unwrap_or_default().to_owned();
        let mut what = What::AlreadyGuarded;
        let options = &nodes[2..2 + reached.options()];
        let old = options.iter().find(|it| text(it).starts_with(CATALOG));
        if let Some((word, path)) = catalog.zip(order.catalog)
            && old.map(text).is_none_or(|it| it[CATALOG.len()..] != *path)
        {
            let gap = self.gap_before(nodes[1].range.start);
            self.splices.push(match old {
                Some(old) => (old.range.clone(), word),
                None => (nodes[1].range.end..nodes[1].range.end, format!(",{gap}{word}")),
            });
            what = What::Declared(path.to_owned());
        }
        let program = text(&nodes[0]);
        if program != order.guard && order.stale.is_some_and(|is_stale| is_stale(&program)) {
            self.splices.push((nodes[0].range.clone(), quoted(order.guard)));
            what = What::Repaired(match what {
                What::Declared(catalog) => format!("{program}, with the catalog {catalog}"),
                _ => program,
            });
        }
        Ok(what)
    }

    fn guard(
        &mut self,
        order: &EditOptions<'_>,
        reached: Reached<'e>,
        catalog: Option<String>,
    ) -> Result<What, Refusal> {
        let guard = quoted(order.guard);
        let limit = self.limit()?.map(|limit| quoted(&limit));
        let ours: Vec<_> = ["\"mcp\"".into()].into_iter().chain(limit).chain(catalog).collect();
        // `mcp`, and options, with what separates them from the next word.
        let mcp = |gap: &str| ours.iter().map(|word| format!("{word},{gap}")).collect::<String>();
        match reached {
            Reached::Other(why) => return Ok(What::Left(why)),
            Reached::Http { .. } if !order.http => {
                return Ok(What::Left(
                    "it is reached over HTTP: --http puts the guard in front, as a command of the client's".into(),
                ));
            }
            Reached::Http { url, transport } => {
                let unfit = url.value.text().zip(order.unfit).and_then(|(url, unfit)| unfit(url));
                if let Some(why) = unfit {
                    return Ok(What::Left(why));
                }
                self.refuse_dotted(url)?;
                let mcp = mcp(" ");
                let own = &self.text[url.value.range.clone()];
                self.splices.push((url.key.clone(), self.like(&url.key, "command")));
                let new = if self.form.is_list {
                    format!("[{guard}, {mcp}\"--upstream\", {own}]")
                } else {
                    let (args, separator) = self.args(url, &format!("{mcp}\"--upstream\", {own}"));
                    format!("{guard}{separator}{args}")
                };
                self.splices.push((url.value.range.clone(), new));
                if let (Some(found), Some(known)) = (transport, self.form.transport) {
                    let command = self.like(&found.value.range, known.command);
                    self.splices.push((found.value.range.clone(), command));
                }
            }
            Reached::List(words) => {
                let first = words[0].range.start;
                let gap = self.gap_before(first);
                let new = format!("{guard},{gap}{}\"--\",{gap}", mcp(gap));
                self.splices.push((first..first, new));
            }
            Reached::Command { command, args: Some(args) } => {
                let own = &self.text[command.value.range.clone()];
                let list = args.value.list().unwrap_or_default();
                let (at, new) = match list.first() {
                    Some(first) => {
                        let gap = self.gap_before(first.range.start);
                        (first.range.start, format!("{}\"--\",{gap}{own},{gap}", mcp(gap)))
                    }
                    None => (args.value.range.start + 1, format!("{}\"--\", {own}", mcp(" "))),
                };
                self.splices.push((at..at, new));
                self.splices.push((command.value.range.clone(), guard));
            }
            Reached::Command { command, args: None } => {
                let own = &self.text[command.value.range.clone()];
                let start = command.key.start;
                self.refuse_dotted(command)?;
                let (args, separator) = self.args(command, &format!("{}{own}", mcp(" ")));
                self.splices.push((start..start, args + &separator));
                self.splices.push((command.value.range.clone(), guard));
            }
        }
        Ok(What::Guarded)
    }

    /// How long the client waits for a tool, less what the guard needs to answer first.
    fn limit(&self) -> Result<Option<String>, Refusal> {
        let Some((name, unit)) = self.form.limit else { return Ok(None) };
        let found = self.entry.member(name)?;
        let number = found.and_then(|it| self.text[it.value.range.clone()].parse::<f64>().ok());
        let limit = number.and_then(|it| Duration::try_from_secs_f64(it * unit.as_secs_f64()).ok());
        let limit = limit.map(|limit| limit.saturating_sub(BEFORE).max(limit / 2));
        let limit = limit.filter(|limit| (SHORTEST..=LONGEST).contains(limit));
        Ok(limit.map(|limit| match (limit.as_secs(), limit.subsec_millis()) {
            (seconds, 0) => format!("{LIMIT}{seconds}s"),
            _ => format!("{LIMIT}{}ms", limit.as_millis()),
        }))
    }

    fn undo(&mut self) -> Result<What, Refusal> {
        let reached = match self.entry.reached(self.form) {
            Ok(reached) => reached,
            // What cannot be guarded has no guard to take out.
            Err(refusal) if !self.entry.names_guard() => return Ok(What::Left(refusal.what)),
            Err(refusal) => return Err(refusal),
        };
        match reached.guarded() {
            Guarded::No => return Ok(What::NotGuarded),
            Guarded::ByHand => return Ok(What::ByHand),
            Guarded::Installed => {}
        }
        let words = reached.words();
        let more = reached.options();
        let own = |node: &Node| self.text[node.range.clone()].to_owned();
        if words.get(2 + more) == Some(&"--upstream") {
            let Some(command) = self.entry.member("command")? else { return Ok(What::ByHand) };
            let mut end = command.value.range.end;
            if let Reached::Command { args: Some(args), .. } = &reached {
                self.refuse_gap(end, args.key.start)?;
                end = args.value.range.end;
            }
            self.splices.push((command.key.clone(), self.like(&command.key, self.form.url)));
            self.splices.push((command.value.range.start..end, own(reached.nodes()[3 + more])));
            if let Some(known) = self.form.transport
                && let Some((found, how)) = self.entry.text(known.member)?
                && how == known.command
            {
                let http = self.like(&found.value.range, known.http);
                self.splices.push((found.value.range.clone(), http));
            }
            return Ok(What::Restored);
        }
        match &reached {
            Reached::List(list) => {
                self.refuse_between(&list[..4 + more])?;
                self.splices.push((list[0].range.start..list[3 + more].range.start, String::new()));
            }
            Reached::Command { command, args: Some(args) } => {
                let list = args.value.list().unwrap_or_default();
                let program = &list[1 + more];
                let (gone, program) = if words.get(2 + more) == Some(&"--") {
                    self.refuse_between(&list[..list.len().min(4 + more)])?;
                    let program = &list[2 + more];
                    let next = list.get(3 + more);
                    let end = next.map_or(program.range.end, |next| next.range.start);
                    (list[0].range.start..end, program)
                } else if args.key.start < command.key.start {
                    self.refuse_gap(args.value.range.end, command.key.start)?;
                    (args.key.start..command.key.start, program)
                } else {
                    self.refuse_gap(command.value.range.end, args.key.start)?;
                    (command.value.range.end..args.value.range.end, program)
                };
                self.splices.push((gone, String::new()));
                self.splices.push((command.value.range.clone(), own(program)));
            }
            Reached::Command { args: None, .. } | Reached::Http { .. } | Reached::Other(_) => {
                return Ok(What::ByHand);
            }
        }
        Ok(What::Restored)
    }

    /// Refuses a member to which no line can be added, since its own does not say whose it is.
    fn refuse_dotted(&self, member: &Member) -> Result<(), Refusal> {
        if self.is_inline() || self.gap_before(member.key.start).contains('\n') {
            return Ok(());
        }
        let why = "is written with dotted names: write it as a table of its own, and run the command again";
        Err(self.entry.refusal(member.key.start, why))
    }

    /// Refuses words of ours between which something else was written.
    fn refuse_between(&self, words: &[Node]) -> Result<(), Refusal> {
        words.windows(2).try_for_each(|two| self.refuse_gap(two[0].range.end, two[1].range.start))
    }

    fn refuse_gap(&self, from: usize, to: usize) -> Result<(), Refusal> {
        let is_plain =
            from <= to && self.text[from..to].chars().all(|c| c.is_ascii_whitespace() || c == ',');
        if is_plain {
            return Ok(());
        }
        let why = "was changed since the guard was put in front: take `tool-guard mcp` out by hand";
        Err(self.entry.refusal(from.min(to), why))
    }

    /// The white space in front of a word: what separates it from the words that come before it.
    fn gap_before(&self, at: usize) -> &'e str {
        let before = &self.text[..at];
        let blank = &before[before.trim_end_matches([' ', '\t', '\r', '\n']).len()..];
        match blank.rfind('\n') {
            Some(at) if at > 0 && blank.as_bytes()[at - 1] == b'\r' => &blank[at - 1..],
            Some(at) => &blank[at..],
            None => " ",
        }
    }

    /// Whether commas separate the entry's members.
    fn is_inline(&self) -> bool {
        self.form.syntax != Syntax::Toml
            || self.text[self.entry.value.range.clone()].starts_with('{')
    }

    /// A member `args` with these words, and what separates it from the member beside it.
    fn args(&self, beside: &Member, words: &str) -> (String, String) {
        let (key, gap) = (self.like(&beside.key, "args"), self.gap_before(beside.key.start));
        let equals = if self.form.syntax == Syntax::Toml { " = " } else { ": " };
        let comma = if self.is_inline() { "," } else { "" };
        (format!("{key}{equals}[{words}]"), format!("{comma}{gap}"))
    }

    /// A word in the quotes of another.
    fn like(&self, other: &Range<usize>, name: &str) -> String {
        match self.text[other.clone()].chars().next() {
            Some(quote @ ('"' | '\'')) => format!("{quote}{name}{quote}"),
            _ => name.to_owned(),
        }
    }
}

/// A text in double quotes, which JSON and TOML read alike.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
