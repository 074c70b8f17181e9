//! Servers that fail once they have made a payment, and SDK clients that ask for it.
use crate::{
    process::{Running, here, npm, until, variable},
    sdk::{Order, Sdk},
    world::listens,
};
use serde_json::{Value, json};
use std::{
    collections::BTreeMap, env, ffi::OsString, fs, panic::resume_unwind, path::PathBuf,
    process::Command, thread,
};
use tempfile::TempDir;

/// Within this, in milliseconds, a client behind the guard has its answer.
pub(crate) const BOUND: u64 = 16_000;

/// Who asks for the payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// PyPI's `mcp`.
    Mcp,
    /// MCP's TypeScript SDK.
    TypeScript1,
    TypeScript2,
    /// npm's `@ai-sdk/mcp`.
    AiSdk1,
    AiSdk2,
    /// Rust's `rmcp`.
    Rmcp,
    /// npm's `mcp-remote`, between such a client on standard input and output and HTTP.
    McpRemote,
}

/// What is between it and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    None,
    HttpToHttp,
    StdioToHttp,
    HttpToCommand,
    StdioToCommand,
    /// `mcp-remote` as the guard's command.
    BeforeRemote,
}

impl Asker {
    pub(crate) const ALL: [Self; 7] = [
        Self::Mcp,
        Self::TypeScript1,
        Self::TypeScript2,
        Self::AiSdk1,
        Self::AiSdk2,
        Self::Rmcp,
        Self::McpRemote,
    ];

    /// Whether it says so when it gives a call up.
    pub(crate) const fn cancels(self) -> bool {
        !matches!(self, Self::AiSdk1 | Self::AiSdk2)
    }

    /// Whether it forgets a session over HTTP that the server has lost: its next calls there are refused.
    pub(crate) const fn forgets(self) -> bool {
        matches!(self, Self::AiSdk1 | Self::AiSdk2)
    }

    /// Whether its calls can have an `idempotencyKey`.
    pub(crate) const fn has_keys(self) -> bool {
        !matches!(self, Self::AiSdk1 | Self::AiSdk2)
    }

    /// Whether we can renew its token within a session.
    pub(crate) const fn renews(self) -> bool {
        !matches!(self, Self::Rmcp | Self::McpRemote)
    }

    /// Whether it comes in this form: on standard input and output the guard takes the place of `mcp-remote`.
    pub(crate) fn has(self, form: Form) -> bool {
        self != Self::McpRemote || form.is_over_http()
    }
}

impl Form {
    /// Whether the client speaks HTTP.
    pub(crate) const fn is_over_http(self) -> bool {
        matches!(self, Self::None | Self::HttpToHttp | Self::HttpToCommand)
    }

    const fn has_command(self) -> bool {
        matches!(self, Self::HttpToCommand | Self::StdioToCommand)
    }
}

/// A process that is started again at its address if it was killed.
struct Mortal {
    running: Running,
    command: Box<dyn Fn(&str) -> Command>,
    listens: fn(&str) -> Option<String>,
    address: String,
}

impl Mortal {
    fn start(
        command: impl Fn(&str) -> Command + 'static,
        listens: fn(&str) -> Option<String>,
    ) -> Self {
        let (running, address) = Running::start(command("127.0.0.1:0"), listens);
        Self { running, command: Box::new(command), listens, address }
    }

    /// Whether it was killed, and is there again.
    fn is_again(&mut self) -> bool {
        let has_ended = self.running.has_ended();
        if has_ended {
            self.running = Running::start((self.command)(&self.address), self.listens).0;
        }
        has_ended
    }
}

/// A server, and what is paid there.
pub(crate) struct Faulty {
    folder: TempDir,
    server: Mortal,
    guards: Vec<Mortal>,
    targets: Vec<Value>,
}

impl Faulty {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let [ledger, pid] = ["paid", "pid"].map(|name| folder.path().join(name));
        let command = move |address: &str| {
            let mut node = Command::new("node");
            node.arg(here("faulty.cjs")).env_remove("FAULT");
            node.env("LEDGER", &ledger).env("GUARD_PID", &pid);
            node.env("PORT", address.rsplit(':').next().unwrap());
            node
        };
        let listens = |line: &str| Some(line.strip_prefix("http://")?.strip_suffix("/mcp")?.into());
        Self { folder, server: Mortal::start(command, listens), guards: vec![], targets: vec![] }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The file that is there once a killed process is.
    pub(crate) fn again(&self) -> PathBuf {
        self.path("again")
    }

    /// How often this order was paid.
    fn payments(&self, order: &str) -> usize {
        self.paid().get(order).copied().unwrap_or_default()
    }

    /// How often each order was paid.
    pub(crate) fn paid(&self) -> BTreeMap<String, usize> {
        let ledger = fs::read_to_string(self.path("paid")).unwrap_or_default();
        let mut paid = BTreeMap::new();
        for line in ledger.lines() {
            let params: Value = serde_json::from_str(line).unwrap();
            let order = params["arguments"]["of"].as_str().unwrap().to_owned();
            *paid.entry(order).or_default() += 1;
        }
        paid
    }

    /// Declares which param says what is paid; the catalog.
    pub(crate) fn declare(&self) -> String {
        let catalog = self.path("catalog.toml");
        fs::write(
            &catalog,
            "[tools.pay.keys]\nidentity = [\"/of\"]\nvolatile = [\"/idempotency_key\"]\n",
        )
        .unwrap();
        catalog.to_str().unwrap().to_owned()
    }

    fn variables(&self) -> Vec<(&'static str, OsString)> {
        vec![
            ("PATH", env::var_os("PATH").unwrap()),
            ("HOME", self.folder.path().into()),
            ("LEDGER", self.path("paid").into()),
            ("TR_PEERS", variable("TR_PEERS").into()),
        ]
    }

    /// Opens a cell: the way there, whose guard has these options, and the scripts of the first client and of the
    /// next. Their payments are of one order, which the cell names. What is behind a comma in the fault's name only
    /// tells cells apart.
    pub(crate) fn open(
        &mut self,
        (asker, form, fault): (Asker, Form, &str),
        options: &[&str],
        scripts: [&[Value]; 2],
    ) {
        let order = format!("{asker:?} {form:?} {fault}");
        let fault = fault.split(", ").next().unwrap();
        let path = format!("/{}/{asker:?}-{form:?}", fault.replace(' ', "%20"));
        let url = format!("http://{}{path}", self.server.address);
        let text = |path: PathBuf| path.to_str().unwrap().to_owned();
        let server = if form.has_command() {
            let victim = if fault == "die" { "server" } else { "guard" };
            vec!["node".into(), text(here("servers/mortal.cjs")), victim.into()]
        } else {
            vec![url.clone()]
        };
        let remote = |url: &str| {
            let proxy = text(npm("mcp-remote/dist/proxy.js"));
            ["node", &proxy, url, "--transport", "http-only"].map(str::to_owned).to_vec()
        };
        let words =
            |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let guard: Vec<String> =
            [&words(&[&text(variable("TR_TOOL_GUARD")), "mcp"]), &words(options)[..]].concat();
        let behind = match form {
            Form::BeforeRemote => [words(&["--"]), remote(&url)].concat(),
            _ if form.has_command() => [words(&["--"]), server.clone()].concat(),
            _ => [words(&["--upstream"]), server.clone()].concat(),
        };
        let mut target = json!({ "name": order, "env": {} });
        for (name, value) in self.variables() {
            target["env"][name] = value.to_str().unwrap().into();
        }
        for (name, script) in ["script", "again"].into_iter().zip(scripts) {
            let of_order = |step: &Value| {
                let mut step = step.clone();
                // Each numbered payment is of an order of its own.
                let number = step["number"].as_u64().map(|number| format!(" {number}"));
                step["arguments"]["of"] = format!("{order}{}", number.unwrap_or_default()).into();
                step
            };
            let script: Vec<_> = script.iter().map(of_order).collect();
            target[name] = if script.is_empty() { Value::Null } else { script.into() };
        }
        if form.is_over_http() {
            target["back"] = text(self.again()).into();
        }
        let reached = match form {
            Form::HttpToHttp | Form::HttpToCommand => {
                let variables = self.variables();
                let command = move |address: &str| {
                    let mut command = Command::new(&guard[0]);
                    command.args(&guard[1..]).args(["--listen", address]).args(&behind);
                    command.env_clear().envs(variables.clone());
                    command
                };
                let guard = Mortal::start(command, listens);
                let path = if form.has_command() { "/mcp" } else { &path };
                let url = format!("http://{}{path}", guard.address);
                fs::write(self.path("pid"), guard.running.id().to_string()).unwrap();
                self.guards.push(guard);
                vec![url]
            }
            Form::None => server,
            Form::StdioToHttp | Form::StdioToCommand | Form::BeforeRemote => {
                let noted =
                    words(&["sh", "-c", "echo $$ > \"$0\"; exec \"$@\"", &text(self.path("pid"))]);
                [noted, guard, behind].concat()
            }
        };
        match asker {
            Asker::McpRemote if form.is_over_http() => {
                target["command"] = remote(&reached[0]).into();
            }
            _ if form.is_over_http() => target["url"] = reached[0].clone().into(),
            _ => target["command"] = reached.into(),
        }
        self.targets.push(target);
    }

    /// The client of the last cell begins with this token.
    pub(crate) fn with_token(&mut self, token: &str) {
        if let Some(target) = self.targets.last_mut() {
            target["headers"] = json!({ "authorization": token });
        }
    }

    /// Starts what was killed again.
    fn revive(&mut self) {
        let all = self.guards.iter_mut().chain([&mut self.server]);
        if all.map(Mortal::is_again).fold(false, |any, is_again| any | is_again) {
            fs::write(self.again(), "").unwrap();
        }
    }
}

/// Lets a client play the scripts of all cells, all at once; what it saw of each.
pub(crate) fn ask(asker: Asker, all: &mut [Faulty]) -> Vec<Paid> {
    let targets: Vec<_> = all.iter().flat_map(|faulty| faulty.targets.iter().cloned()).collect();
    let variables = all[0].variables();
    let seen = thread::scope(|scope| {
        let sdk = match asker {
            Asker::Mcp => Sdk::Mcp,
            Asker::TypeScript1 | Asker::McpRemote => Sdk::TypeScript1,
            Asker::TypeScript2 => Sdk::TypeScript2,
            Asker::AiSdk1 => Sdk::AiSdk1,
            Asker::AiSdk2 => Sdk::AiSdk2,
            Asker::Rmcp => Sdk::Rmcp,
        };
        let client = scope.spawn(move || sdk.play(&targets, &variables, Order::Together));
        until("the client ends", || {
            all.iter_mut().for_each(Faulty::revive);
            client.is_finished().then_some(())
        });
        client.join().unwrap_or_else(|panic| resume_unwind(panic))
    });
    let of_cell = |faulty: &Faulty, target: &Value| {
        let cell = target["name"].as_str().unwrap().to_owned();
        let asked = seen.on(&cell).into_iter().filter(|(step, _)| step.ends_with("within"));
        let asked =
            asked.map(|(_, seen)| (seen["took"].as_u64().unwrap(), seen["seen"].to_string()));
        Paid { payments: faulty.payments(&cell), asked: asked.collect(), cell }
    };
    all.iter().flat_map(|one| one.targets.iter().map(move |it| of_cell(one, it))).collect()
}

/// How often a payment was made, and what its client saw each time that it asked for it.
#[derive(Debug)]
pub(crate) struct Paid {
    pub(crate) cell: String,
    pub(crate) payments: usize,
    /// How long it took, in milliseconds, and the answer.
    pub(crate) asked: Vec<(u64, String)>,
}

impl Paid {
    /// Asserts that it was made once, and that each of these many answers says so, or that it may have run.
    pub(crate) fn assert_once(&self, answers: usize, told: &str) {
        assert_eq!((self.payments, self.asked.len()), (1, answers), "{self:#?}");
        for (took, answer) in &self.asked {
            assert!(*took < BOUND && answer.contains(told), "{self:#?}");
        }
    }
}

/// A step of a script: a payment.
pub(crate) fn pay() -> Value {
    json!({ "do": "within", "tool": "pay" })
}

pub(crate) fn list() -> Value {
    json!({ "do": "list" })
}
