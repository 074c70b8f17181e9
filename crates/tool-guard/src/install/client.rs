//! The clients, and how their files describe MCP servers.
use super::tree::Syntax;
use clap::ValueEnum;
use std::time::Duration;

/// An MCP client whose files are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    ClaudeCode,
    Codex,
    Gemini,
    Cursor,
    Vscode,
    Opencode,
    Openclaw,
}

/// A client's names, and how its files describe its servers.
#[derive(Debug)]
pub(crate) struct Form {
    /// Its name, for people.
    pub(crate) name: &'static str,
    /// The names of its program.
    pub(crate) programs: &'static [&'static str],
    /// Its files in a project.
    pub(crate) of_project: &'static [&'static str],
    pub(crate) syntax: Syntax,
    /// The members that lead to the object of servers; `*` is each of them.
    pub(crate) places: &'static [&'static [&'static str]],
    /// Whether `command` is a list with the arguments.
    pub(crate) is_list: bool,
    /// The member with the URL of a server that speaks Streamable HTTP.
    pub(crate) url: &'static str,
    /// The member that names how the server is reached, with its values for HTTP and for a command.
    pub(crate) transport: Option<Transport>,
    /// The member with the variables of a server.
    pub(crate) env: &'static str,
    /// Whether the client puts variables of its own into words.
    pub(crate) expands: bool,
    /// The member with how long the client waits for a tool, and its unit.
    pub(crate) limit: Option<(&'static str, Duration)>,
    /// Members of a remote server whose meaning would be lost.
    pub(crate) only_remote: &'static [&'static str],
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Transport {
    pub(crate) member: &'static str,
    pub(crate) http: &'static str,
    pub(crate) command: &'static str,
    /// Whether a URL without the member is something else, such as SSE.
    pub(crate) is_needed: bool,
}

const MILLISECOND: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

const SERVERS: &[&[&str]] = &[&["mcpServers"]];

const TYPE: Transport =
    Transport { member: "type", http: "http", command: "stdio", is_needed: false };

const BASE: Form = Form {
    name: "Cursor",
    programs: &["cursor", "cursor-agent"],
    of_project: &[".cursor/mcp.json"],
    syntax: Syntax::Json,
    places: SERVERS,
    is_list: false,
    url: "url",
    transport: Some(TYPE),
    env: "env",
    expands: true,
    limit: None,
    only_remote: &["headers", "headersHelper", "oauth", "auth"],
};

impl Client {
    pub(crate) const fn form(self) -> &'static Form {
        match self {
            Self::ClaudeCode => &Form {
                name: "Claude Code",
                programs: &["claude"],
                of_project: &[".mcp.json"],
                places: &[&["mcpServers"], &["projects", "*", "mcpServers"]],
                transport: Some(Transport { is_needed: true, ..TYPE }),
                limit: Some(("timeout", MILLISECOND)),
                ..BASE
            },
            Self::Codex => &Form {
                name: "Codex",
                programs: &["codex"],
                of_project: &[".codex/config.toml"],
                syntax: Syntax::Toml,
                places: &[&["mcp_servers"]],
                transport: None,
                expands: false,
                limit: Some(("tool_timeout_sec", SECOND)),
                only_remote: &[
                    "bearer_token_env_var",
                    "http_headers",
                    "env_http_headers",
                    "scopes",
                    "oauth",
                    "oauth_resource",
                ],
                ..BASE
            },
            Self::Gemini => &Form {
                name: "Gemini CLI",
                programs: &["gemini"],
                of_project: &[".gemini/settings.json"],
                url: "httpUrl",
                transport: None,
                limit: Some(("timeout", MILLISECOND)),
                only_remote: &[
                    "headers",
                    "oauth",
                    "authProviderType",
                    "targetAudience",
                    "targetServiceAccount",
                ],
                ..BASE
            },
            Self::Cursor => &BASE,
            Self::Vscode => &Form {
                name: "VS Code",
                programs: &["code", "code-insiders", "codium"],
                of_project: &[".vscode/mcp.json"],
                places: &[&["servers"]],
                ..BASE
            },
            Self::Opencode => &Form {
                name: "opencode",
                programs: &["opencode"],
                of_project: &[
                    "opencode.json",
                    "opencode.jsonc",
                    ".opencode/opencode.json",
                    ".opencode/opencode.jsonc",
                ],
                places: &[&["mcp"]],
                is_list: true,
                env: "environment",
                transport: Some(Transport {
                    member: "type",
                    http: "remote",
                    command: "local",
                    is_needed: true,
                }),
                ..BASE
            },
            Self::Openclaw => &Form {
                name: "OpenClaw",
                programs: &["openclaw"],
                of_project: &[],
                syntax: Syntax::Json5,
                places: &[&["mcp", "servers"]],
                transport: Some(Transport {
                    member: "transport",
                    http: "streamable-http",
                    command: "stdio",
                    is_needed: true,
                }),
                only_remote: &[
                    "headers",
                    "auth",
                    "oauth",
                    "sslVerify",
                    "ssl_verify",
                    "clientCert",
                    "client_cert",
                ],
                ..BASE
            },
        }
    }
}
