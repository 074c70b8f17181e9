//! `[telemetry]`.
use std::net::SocketAddr;
use tr_telemetry::Names;
use tr_wire::read::{Flag, Lenient, List, Map, Name, OrDefault, Size, Word, object, shape, words};

object! { strict
    /// What is reported of calls, under which names, and where.
    pub struct TelemetryConfig sets tr_telemetry::Builder {
        /// The sets of metric names.
        "names" => names: Option<Vec<Names>>, Lenient<Sets> = ["openclaw"];
        /// How many tools that the program does not name get a label of their own.
        "max_unknown_tools" => max_unknown_tools: Option<usize>, Lenient<Size<1_000>> = 100;
        beside {
            /// Adds names, types and sizes of params to `tool_call_start`.
            "params_shape" => params_shape: Option<bool>, Lenient<Flag> = false;
            /// By tool, the params whose values `tool_call_start` shows, redacted and cut; no sensitive
            /// fields.
            "show_params" => show_params: Vec<(Box<str>, Vec<Box<str>>)>, OrDefault<Map<List<Name>>>;
            /// Names whose values are removed from all that is reported, in any case style.
            "hide" => hide: Option<Vec<Box<str>>>, Lenient<List<Name>> = [];
            /// A file with the key of the hashes in events, 64 hexadecimal digits, for `tool-guard`.
            /// Processes with the same key report the same hashes.
            "fingerprint_key_file" => fingerprint_key_file: Option<Box<str>>, Lenient<Name>;
            /// The variable that holds this key. Read by `tool-guard`.
            "fingerprint_key_variable" => fingerprint_key_variable: Option<Box<str>>, Lenient<Name>;
            /// The address at which `tool-guard` serves `GET /metrics` to Prometheus.
            "metrics" => metrics: Option<SocketAddr>, Lenient<Address>;
            /// A file with the scrapes' token. An address that other machines can reach needs it.
            "metrics_token_file" => metrics_token_file: Option<Box<str>>, Lenient<Name>;
        }
    }
}

words! {
    MetricNames for Names { OpenClaw = "openclaw", Utee = "utee", GenAi = "gen_ai" }
}

shape! {
    Sets => Vec<Names>, "a list of at least one of \"openclaw\", \"utee\" and \"gen_ai\"",
    |node, faults| {
        let sets = List::<Word<MetricNames>>::read(node, faults)?;
        if sets.is_empty() {
            return node.refuse_found(Self::expected(), "an empty list", faults);
        }
        Some(sets)
    },
    { "type": "array", "minItems": 1, "items": { "enum": ["openclaw", "utee", "gen_ai"] } }
}

shape! {
    Address => SocketAddr, "an IP address and a port, such as \"127.0.0.1:9464\"",
    |node, faults| {
        let text = Name::read(node, faults)?;
        let here = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        match here.as_deref().unwrap_or(&text).parse() {
            Ok(address) => Some(address),
            Err(_) => node.refuse_found(Self::expected(), format!("{text:?}"), faults),
        }
    },
    { "type": "string", "minLength": 1 }
}
