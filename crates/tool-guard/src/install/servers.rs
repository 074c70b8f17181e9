//! The servers of a file, as its client describes them.
use super::{
    client::Form,
    tree::{Member, Node, Refusal, Value, member},
};
use crate::{engine::options::endpoint, secrets::is_like_one};
use std::{env, fs, io, os::unix::fs::MetadataExt as _, path::Path};
use tool_reliability::admin::is_local_host;

/// What the word with the client's own limit begins with.
pub(crate) const LIMIT: &str = "--timeout=";
/// What the word with the file that `install --catalog` names begins with.
pub(crate) const CATALOG: &str = "--catalog=";

/// A server of a file.
#[derive(Debug)]
pub(crate) struct Entry<'t> {
    pub(crate) name: &'t str,
    /// The project it belongs to, where a file has servers of several.
    pub(crate) project: Option<&'t str>,
    /// A byte of its name.
    pub(crate) at: usize,
    pub(crate) value: &'t Node,
}

/// How a server is reached.
#[derive(Debug)]
pub(crate) enum Reached<'t> {
    /// By a command, a member with its arguments, if there is one.
    Command { command: &'t Member, args: Option<&'t Member> },
    /// By a command with its arguments in one list.
    List(&'t [Node]),
    /// Over Streamable HTTP.
    Http { url: &'t Member, transport: Option<&'t Member> },
    /// By something that the guard does not speak, or not with this entry.
    Other(String),
}

/// The guard's part of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Guarded {
    No,
    /// As `install` writes it.
    Installed,
    /// Written by hand.
    ByHand,
}

/// All servers of a file.
pub(crate) fn entries<'t>(root: Option<&'t Node>, form: &Form) -> Result<Vec<Entry<'t>>, Refusal> {
    let Some(root) = root else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for place in form.places {
        descend(root, place, None, &mut all)?;
    }
    Ok(all)
}

fn descend<'t>(
    node: &'t Node,
    place: &[&str],
    project: Option<&'t str>,
    all: &mut Vec<Entry<'t>>,
) -> Result<(), Refusal> {
    let Some(members) = node.members() else {
        return Err(Refusal::new(node.range.start, "is no object, where its client has one"));
    };
    match place.split_first() {
        None => {
            for it in members {
                // Refuses a name that is there twice.
                member(members, &it.name)?;
                all.push(Entry { name: &it.name, project, at: it.key.start, value: &it.value });
            }
            Ok(())
        }
        Some((&"*", rest)) => {
            for it in members {
                member(members, &it.name)?;
                descend(&it.value, rest, Some(&it.name), all)?;
            }
            Ok(())
        }
        Some((name, rest)) => match member(members, name)? {
            Some(found) => descend(&found.value, rest, project, all),
            None => Ok(()),
        },
    }
}

impl<'t> Entry<'t> {
    /// Its name and project, for people.
    pub(crate) fn title(&self) -> String {
        match self.project {
            Some(project) => format!("{} (of {project})", self.name),
            None => self.name.to_owned(),
        }
    }

    pub(crate) fn member(&self, name: &str) -> Result<Option<&'t Member>, Refusal> {
        member(self.value.members().unwrap_or_default(), name)
    }

    /// A member with a text.
    pub(crate) fn text(&self, name: &str) -> Result<Option<(&'t Member, &'t str)>, Refusal> {
        let Some(found) = self.member(name)? else { return Ok(None) };
        match found.value.text() {
            Some(text) => Ok(Some((found, text))),
            None => Err(self.refused(found, &format!("its `{name}` must be a string"))),
        }
    }

    /// Members whose values are texts, such as those of `env`.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<(&'t str, &'t str)>, Refusal> {
        let Some(found) = self.member(name)? else { return Ok(Vec::new()) };
        let members = found.value.members().unwrap_or_default();
        Ok(members.iter().filter_map(|it| Some((&*it.name, it.value.text()?))).collect())
    }

    /// Whether its client starts it.
    pub(crate) fn is_enabled(&self) -> Result<bool, Refusal> {
        let is = |name, flag| -> Result<bool, Refusal> {
            let found = self.member(name)?;
            Ok(found.is_some_and(|it| matches!(it.value.value, Value::Bool(it) if it == flag)))
        };
        Ok(!is("disabled", true)? && !is("enabled", false)?)
    }

    /// A refusal that names it, at a byte of the text.
    pub(super) fn refusal(&self, at: usize, why: &str) -> Refusal {
        Refusal::new(at, format!("the server {:?} {why}", self.name))
    }

    fn refused(&self, found: &Member, why: &str) -> Refusal {
        let why = format!("cannot be guarded: {why}; correct it, or choose others with --server");
        self.refusal(found.key.start, &why)
    }

    /// How it is reached.
    pub(crate) fn reached(&self, form: &Form) -> Result<Reached<'t>, Refusal> {
        if self.value.members().is_none() {
            let why = "is no object; correct it, or choose others with --server";
            return Err(self.refusal(self.at, why));
        }
        if let Some(command) = self.member("command")? {
            return self.commanded(command, form);
        }
        let other = |what: &str| Ok(Reached::Other(what.to_owned()));
        let Some((url, address)) = self.text(form.url)? else {
            return match self.member("url")? {
                Some(_) => other(&format!(
                    "its `url` may speak SSE, which the guard does not: if it speaks Streamable HTTP, name it `{}`",
                    form.url
                )),
                None => other("it has no command and no URL"),
            };
        };
        if let Some(why) = unfit(address) {
            return other(why);
        }
        let mut named = None;
        if let Some(transport) = form.transport {
            match self.text(transport.member)? {
                Some((found, how)) if how == transport.http => named = Some(found),
                None if !transport.is_needed => {}
                Some((_, how)) => {
                    return other(&format!(
                        "its {} is {how:?}, and the guard speaks Streamable HTTP ({:?})",
                        transport.member, transport.http
                    ));
                }
                None => {
                    return other(&format!(
                        "it has no `{}`; for Streamable HTTP write {:?}",
                        transport.member, transport.http
                    ));
                }
            }
        }
        for name in form.only_remote {
            if self.member(name)?.is_some() {
                return other(&format!(
                    "its `{name}` would not reach the guard: write headers into a file, and `tool-guard mcp --upstream URL --header-file FILE` as its command"
                ));
            }
        }
        Ok(Reached::Http { url, transport: named })
    }

    /// Whether its command names the guard, also if the rest of it is not understood.
    pub(crate) fn names_guard(&self) -> bool {
        let all = self.value.members().into_iter().flatten();
        let mut commands = all.filter(|it| it.name == "command").map(|it| &it.value);
        commands.any(|it| {
            let program = it.list().map_or(Some(it), <[Node]>::first);
            program.and_then(Node::text).is_some_and(is_guard)
        })
    }

    fn commanded(&self, command: &'t Member, form: &Form) -> Result<Reached<'t>, Refusal> {
        let words = |found: &'t Member, name: &str| -> Result<&'t [Node], Refusal> {
            let list = found.value.list().filter(|list| list.iter().all(|it| it.text().is_some()));
            list.ok_or_else(|| self.refused(found, &format!("its `{name}` is no list of texts")))
        };
        if form.is_list {
            let list = words(command, "command")?;
            if list.is_empty() {
                return Err(self.refused(command, "its `command` is empty"));
            }
            return Ok(Reached::List(list));
        }
        let (_, program) = self.text("command")?.unwrap_or((command, ""));
        if program.is_empty() {
            return Err(self.refused(command, "its `command` is empty"));
        }
        let args = self.member("args")?;
        if let Some(args) = args {
            words(args, "args")?;
        }
        if args.is_none() && program.contains(' ') && !program.contains(['/', '\\', '$']) {
            return Err(self.refused(
                command,
                "its `command` is a line for a shell: write its first word there, and the others into `args`",
            ));
        }
        Ok(Reached::Command { command, args })
    }
}

/// Why a command line cannot have this URL.
fn unfit(url: &str) -> Option<&'static str> {
    // A variable may hold a credential, and is known to the client only.
    if url.contains(['?', '$', '{']) || url.split(['/', '@']).skip(3).any(is_like_one) {
        return Some(
            "its URL has a query, a variable or a part that looks made by chance, which may be a secret, and all users of this machine can read command lines: write `tool-guard mcp --upstream URL --header-file FILE` by hand if it is none",
        );
    }
    let Ok(uri) = endpoint(url) else {
        return Some("its URL is none that `tool-guard mcp --upstream` accepts");
    };
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']);
    (uri.scheme_str() != Some("https") && !is_local_host(host)).then_some(
        "its URL sends calls unencrypted to another machine: use https, or write `tool-guard mcp --upstream URL --insecure-http` by hand",
    )
}

/// Whether a program is the guard: by its name, or as another name of this program, which may be a copy.
fn is_guard(program: &str) -> bool {
    let path = Path::new(program);
    let name = path.file_stem().and_then(|name| name.to_str());
    let is_named = matches!(name, Some("tool-guard" | "tool-reliability"));
    is_named || path.is_absolute() && is_this_program(path).unwrap_or(false)
}

fn is_this_program(path: &Path) -> io::Result<bool> {
    let own = env::current_exe()?;
    let (theirs, ours) = (fs::metadata(path)?, fs::metadata(&own)?);
    let is_same = (theirs.dev(), theirs.ino()) == (ours.dev(), ours.ino());
    Ok(is_same || theirs.len() == ours.len() && fs::read(path)? == fs::read(own)?)
}

impl<'t> Reached<'t> {
    /// The values with the words of its command.
    pub(crate) fn nodes(&self) -> Vec<&'t Node> {
        match self {
            Self::Command { command, args } => {
                let args = args.and_then(|args| args.value.list()).unwrap_or_default();
                [&command.value].into_iter().chain(args).collect()
            }
            Self::List(words) => words.iter().collect(),
            Self::Http { .. } | Self::Other(_) => Vec::new(),
        }
    }

    /// The words of its command.
    pub(crate) fn words(&self) -> Vec<&'t str> {
        self.nodes().into_iter().filter_map(Node::text).collect()
    }

    /// How many options `install` has written after the guard's `mcp`.
    pub(crate) fn options(&self) -> usize {
        let is_ours = |word: &&str| word.starts_with(LIMIT) || word.starts_with(CATALOG);
        self.words().iter().skip(2).take_while(|word| is_ours(word)).count()
    }

    /// Whether the guard is in front of it.
    pub(crate) fn guarded(&self) -> Guarded {
        let words = self.words();
        let [program, "mcp", rest @ ..] = words.as_slice() else {
            // Another program may start the guard: `env A=1 tool-guard mcp …`, `sh -c "tool-guard mcp …"`.
            let inner = words.iter().flat_map(|word| word.split(char::is_whitespace));
            let inner: Vec<_> = inner.take_while(|word| *word != "--").collect();
            let wraps = inner.windows(2).any(|pair| pair[1] == "mcp" && is_guard(pair[0]));
            return if wraps { Guarded::ByHand } else { Guarded::No };
        };
        let rest = rest.get(self.options()..).unwrap_or_default();
        if !is_guard(program) {
            return Guarded::No;
        }
        let has_args = matches!(self, Self::List(_) | Self::Command { args: Some(_), .. });
        let is_ours = Path::new(program).is_absolute()
            && has_args
            && match rest {
                ["--", _, ..] | ["--upstream", _] => true,
                [first] => !first.starts_with('-') && !matches!(self, Self::List(_)),
                _ => false,
            };
        if is_ours { Guarded::Installed } else { Guarded::ByHand }
    }
}
