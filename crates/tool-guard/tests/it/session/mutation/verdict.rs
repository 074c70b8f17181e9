//! Plays `check` and `repair` on many files at once, and compares what they say with what is so.
use super::account::Account;
use crate::session::{
    folder::Folder,
    provider::{Form, judge},
};
use serde_json::Value;
use std::{
    collections::{BTreeMap, HashMap, HashSet},
    fmt::{self, Display},
    fs,
    path::Path,
    thread,
};

/// A file, and what was done to it.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) form: Form,
    pub(crate) done: Vec<&'static str>,
    pub(crate) bytes: Vec<u8>,
}

/// How many files came to which end.
#[derive(Default)]
pub(crate) struct Tally {
    played: u64,
    pub(crate) clean: u64,
    repaired: u64,
    left: BTreeMap<String, u64>,
    /// Clean, or mended, with a single member that the provider would refuse.
    members: u64,
    wrong: Vec<String>,
}

/// What the command said of each file, by its name.
type Said = HashMap<String, Value>;

/// The runs of a batch: a look, a repair, a look, and what another repair would do.
struct Runs {
    looked: Said,
    mended: Said,
    looked_again: Said,
    planned: Said,
}

impl Runs {
    fn of(cases: &[Case]) -> (Self, Files) {
        let folder = Folder::new();
        for case in cases {
            folder.write(&case.name, &case.bytes);
        }
        let looked = said(&folder, &["check"]);
        for (case, (name, now)) in cases.iter().zip(&read(&folder, cases)) {
            assert!(*now == case.bytes, "a look changes {name}");
        }
        let mut mended = said(&folder, &["repair", "--write"]);
        let refused: Vec<_> = cases.iter().filter(|it| is_refused(&mended[&it.name])).collect();
        for case in &refused {
            let now = fs::read(folder.path(&case.name)).unwrap();
            assert!(now == case.bytes, "a repair that was refused changes {}", case.name);
        }
        let forced = said(&folder, &["repair", "--write", "--force"]);
        for case in refused {
            mended.insert(case.name.clone(), forced[&case.name].clone());
        }
        let now = read(&folder, cases).into_iter().collect();
        let (looked_again, planned) = (said(&folder, &["check"]), said(&folder, &["repair"]));
        (Self { looked, mended, looked_again, planned }, now)
    }
}

/// What is in each file.
type Files = HashMap<String, Vec<u8>>;

fn read(folder: &Folder, cases: &[Case]) -> Vec<(String, Vec<u8>)> {
    let content = |case: &Case| (case.name.clone(), fs::read(folder.path(&case.name)).unwrap());
    cases.iter().map(content).collect()
}

/// Whether a repair would have taken out more than it does unasked.
fn is_refused(said: &Value) -> bool {
    said["help"].as_str().is_some_and(|help| help.contains("--force"))
}

fn said(folder: &Folder, arguments: &[&str]) -> Said {
    let (lines, _) = folder.json(&[arguments, &["."]].concat());
    let name = |line: &Value| line["file"].as_str().unwrap().trim_start_matches("./").to_owned();
    lines.into_iter().map(|line| (name(&line), line)).collect()
}

fn status(said: &Value) -> &str {
    said["status"].as_str().unwrap_or("nothing")
}

impl Tally {
    /// Plays them in as many folders at once as there are cores.
    pub(crate) fn play(&mut self, cases: &[Case]) {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let batches = cases.chunks(cases.len().div_ceil(threads).clamp(1, 500));
        for batches in batches.collect::<Vec<_>>().chunks(threads) {
            thread::scope(|scope| {
                let start = |batch| scope.spawn(move || Self::of(batch));
                let started: Vec<_> = batches.iter().map(|batch| start(*batch)).collect();
                started.into_iter().for_each(|it| self.add(it.join().unwrap()));
            });
        }
    }

    fn of(cases: &[Case]) -> Self {
        let mut tally = Self::default();
        let (runs, now) = Runs::of(cases);
        for case in cases {
            tally.played += 1;
            let mut wrong = tally.ends(case, &runs, &now[&case.name]);
            if status(&runs.planned[&case.name]) == "planned" {
                wrong.push("another repair would change it again".into());
            }
            for what in wrong {
                tally.keep(case, &what);
            }
        }
        tally
    }

    fn add(&mut self, other: Self) {
        self.played += other.played;
        self.clean += other.clean;
        self.repaired += other.repaired;
        self.members += other.members;
        self.wrong.extend(other.wrong);
        for (end, count) in other.left {
            *self.left.entry(end).or_default() += count;
        }
    }

    fn ends(&mut self, case: &Case, runs: &Runs, now: &[u8]) -> Vec<String> {
        let (looked, mended) = (&runs.looked[&case.name], &runs.mended[&case.name]);
        let again = &runs.looked_again[&case.name];
        let is_certified = status(again) == "clean";
        self.members += u64::from(is_certified && !judge(case.form, now).members.is_empty());
        let mut wrong = Vec::new();
        wrong.extend(
            false_clean(case.form, looked, &case.bytes).map(|it| format!("false clean: {it}")),
        );
        let end = status(mended);
        if end == "repaired" {
            self.repaired += 1;
            let told = false_clean(case.form, again, now);
            wrong.extend(told.map(|it| format!("the mended file is refused: {it}")));
            wrong.extend(lost(case, mended, now));
            wrong.extend(untold(case, mended, now));
            wrong.extend(unanswered(case, mended, now));
        } else if case.bytes != *now {
            wrong.push(format!("it is {end}, and its bytes are others"));
        } else if status(looked) == "clean" {
            self.clean += 1;
        } else {
            *self.left.entry(end.to_owned()).or_default() += 1;
        }
        wrong
    }

    fn keep(&mut self, case: &Case, what: &str) {
        let done = case.done.join(", ");
        self.wrong.push(format!("{} {:?} ({done}): {what}", case.name, case.form));
        if let Some(folder) = std::env::var_os("TR_KEEP") {
            fs::write(Path::new(&folder).join(&case.name), &case.bytes).unwrap();
        }
    }

    pub(crate) fn assert_none_wrong(&self) {
        let most = if std::env::var_os("TR_KEEP").is_some() { usize::MAX } else { 40 };
        let shown = self.wrong.iter().take(most).map(|it| format!("\n{it}")).collect::<String>();
        assert!(self.wrong.is_empty(), "{self}: {} are wrong{shown}", self.wrong.len());
    }
}

impl Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { played, clean, repaired, left, members, .. } = self;
        write!(f, "{played} files: {clean} clean, {repaired} repaired, not changed: {left:?}; ")?;
        write!(f, "{members} clean with a member that is refused")
    }
}

/// What the provider refuses in a file that was called clean.
fn false_clean(form: Form, said: &Value, bytes: &[u8]) -> Option<String> {
    if status(said) != "clean" {
        return None;
    }
    let told = judge(form, bytes);
    let open = told.open.len();
    let pending = said["pending"].as_array().map_or(0, Vec::len);
    if !told.faults.is_empty() {
        return Some(told.faults.join("; "));
    }
    if !told.members.is_empty() {
        return Some(format!("a member is refused: {}", told.members.join("; ")));
    }
    if told.broken > 0 && said["skippedBytes"].as_u64().unwrap_or(0) == 0 {
        return Some(format!("{} lines are no record, and none are told", told.broken));
    }
    (open > pending).then(|| format!("{open} calls are open, {pending} are told: {:?}", told.open))
}

/// The lines that the report says something was taken from.
fn told_lost(mended: &Value, bytes: &[u8]) -> HashSet<u64> {
    let losses = mended["losses"].as_array().into_iter().flatten();
    let mut lines: HashSet<_> = losses.filter_map(|loss| loss["line"].as_u64()).collect();
    for act in mended["repairs"].as_array().into_iter().flatten() {
        let Some(line) = act["line"].as_u64().filter(|_| act["action"] == "drop_bytes") else {
            continue;
        };
        // From the line on, as far as the bytes go.
        let starts = bytes.split_inclusive(|byte| *byte == b'\n').take(line as usize - 1);
        let start: usize = starts.map(<[u8]>::len).sum();
        let length = act["length"].as_u64().unwrap_or(0) as usize;
        let taken = &bytes[start..bytes.len().min(start + length)];
        let ends = taken.iter().filter(|byte| **byte == b'\n').count() as u64;
        lines.extend(line..=line + ends);
    }
    lines
}

/// What the file said, and does not say any more, without a word about it.
fn lost(case: &Case, mended: &Value, now: &[u8]) -> Option<String> {
    let account = Account::of(&case.bytes);
    let (told, named) = (told_lost(mended, &case.bytes), named(mended));
    let missing = account.missing(now).into_iter();
    // Of what was said twice and is still said once, it is enough to name the line.
    let untold = missing.filter(|missing| {
        let is_told = |line: &u64| told.contains(line) || missing.is_left && named.contains(line);
        !missing.lines.iter().any(is_told)
    });
    let untold: Vec<_> = untold.map(|missing| (missing.word, missing.lines)).collect();
    (!untold.is_empty()).then(|| format!("lost and not told: {untold:?}; told: {told:?}"))
}

/// A result that was removed as another's copy, although none of its content stays in a result, and
/// no result that a tool gave answers a call of its id.
fn unanswered(case: &Case, mended: &Value, now: &[u8]) -> Option<String> {
    let repairs = mended["repairs"].as_array().into_iter().flatten();
    let removed = repairs.filter(|act| act["action"] == "remove_duplicate");
    let mut removed = removed.filter_map(|act| act["toolUseId"].as_str()).peekable();
    removed.peek()?;
    let (before, after) = (results(&case.bytes), results(now));
    let mut gone = removed.filter(|id| {
        let said: Vec<_> = before.iter().filter(|result| result.id == *id).collect();
        let stays = |result: &Given| said.iter().any(|was| was.content == result.content);
        let answers = |result: &Given| result.id == *id && !result.is_made_up();
        !said.is_empty() && !after.iter().any(|result| stays(result) || answers(result))
    });
    gone.next().map(|id| format!("a result of {id} is removed, and nothing stays of it"))
}

/// A result, of any form.
struct Given {
    id: String,
    content: Value,
}

impl Given {
    /// Whether a repair wrote it.
    fn is_made_up(&self) -> bool {
        self.content.to_string().contains("outcome unknown, may have run")
    }
}

/// All results in a file.
fn results(bytes: &[u8]) -> Vec<Given> {
    fn add(value: &Value, found: &mut Vec<Given>) {
        const OF_RESULTS: [(&str, &str); 5] = [
            ("tool_use_id", "content"),
            ("tool_call_id", "content"),
            ("toolCallId", "content"),
            ("call_id", "output"),
            ("id", "response"),
        ];
        let result = OF_RESULTS.iter().find_map(|(id, content)| {
            Some(Given {
                id: value[*id].as_str()?.to_owned(),
                content: value.get(content)?.clone(),
            })
        });
        found.extend(result);
        match value {
            Value::Array(list) => list.iter().for_each(|it| add(it, found)),
            Value::Object(map) => map.values().for_each(|it| add(it, found)),
            _ => {}
        }
    }
    let mut found = Vec::new();
    for line in bytes.split(|byte| *byte == b'\n') {
        let starts = line.iter().position(|byte| matches!(byte, b'{' | b'[')).unwrap_or(line.len());
        let records = serde_json::Deserializer::from_slice(&line[starts..]).into_iter::<Value>();
        records.map_while(Result::ok).for_each(|record| add(&record, &mut found));
    }
    if let Ok(whole) = serde_json::from_slice(bytes) {
        add(&whole, &mut found);
    }
    found
}

/// The lines that a repair names.
fn named(mended: &Value) -> HashSet<u64> {
    let acts = [&mended["repairs"], &mended["losses"]].into_iter().filter_map(Value::as_array);
    acts.flatten().filter_map(|act| act["line"].as_u64()).collect()
}

/// Lines of JSON lines that are not there any more, and that no repair names.
fn untold(case: &Case, mended: &Value, now: &[u8]) -> Option<String> {
    if !case.form.is_lines() {
        return None;
    }
    let named = named(mended);
    let kept: HashSet<_> = now.split(|byte| *byte == b'\n').collect();
    let lines = case.bytes.split(|byte| *byte == b'\n').zip(1..);
    let gone = lines.filter(|(line, number)| !kept.contains(line) && !named.contains(number));
    let gone: Vec<_> = gone.map(|(_, number)| number).collect();
    (!gone.is_empty()).then(|| format!("lines {gone:?} are changed, and named are {named:?}"))
}
