//! A JSON value as it is meant, and the many ways to write it.
use fastrand::Rng;
use std::{collections::BTreeMap, fmt::Write, iter};

/// Equal as Rust values, equal as JSON; and the other way round.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    /// Decimal digits, perhaps with a sign.
    Integer(String),
    /// A double that is no integer, or prints with an exponent.
    Double(f64),
    Text(String),
    Array(Vec<Value>),
    Object(BTreeMap<String, Value>),
}

/// A double as the model holds it.
pub(crate) fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 1e21 {
        return Value::Integer(format!("{}", value + 0.0).replace("-0", "0"));
    }
    Value::Double(value)
}

/// Characters where encodings, escapes, sorting and normalisation have their edges.
pub(crate) const CHARS: [char; 24] = [
    'a',
    'b',
    'A',
    '1',
    '0',
    ':',
    '/',
    '~',
    ' ',
    '"',
    '\\',
    '\n',
    '\t',
    '\0',
    '\u{1f}',
    '\u{7f}',
    'é',
    'e',
    '\u{301}',
    '\u{d7ff}',
    '\u{e000}',
    '\u{ffff}',
    '\u{10000}',
    '😀',
];

pub(crate) fn text(rng: &mut Rng) -> String {
    let len = if rng.u8(..8) == 0 { rng.usize(..30) } else { rng.usize(..4) };
    iter::repeat_with(|| CHARS[rng.usize(..CHARS.len())]).take(len).collect()
}

fn any_number(rng: &mut Rng) -> Value {
    match rng.u8(..6) {
        0 => Value::Integer(rng.i64(..).to_string()),
        1 => Value::Integer(format!("{}{}", rng.i64(1 << 53..), rng.u64(10..99))),
        2 => number(f64::from(rng.i32(..)) / 1000.0),
        3 => number(f64::from(rng.i16(..)) * 10_f64.powi(rng.i32(-30..30))),
        4 => {
            Some(f64::from_bits(rng.u64(..))).filter(|v| v.is_finite()).map_or(Value::Null, number)
        }
        _ => Value::Integer(rng.i8(..).to_string()),
    }
}

impl Value {
    pub(crate) fn random(rng: &mut Rng, depth: u8) -> Self {
        let kinds = if depth == 0 { 6 } else { 10 };
        match rng.u8(..kinds) {
            0 => Self::Null,
            1 => Self::Bool(rng.bool()),
            2 | 3 => any_number(rng),
            4 | 5 => Self::Text(text(rng)),
            6 | 7 => {
                let len = rng.usize(..4);
                Self::Array(iter::repeat_with(|| Self::random(rng, depth - 1)).take(len).collect())
            }
            _ => {
                let len = rng.usize(..6);
                let member = || (text(rng), Self::random(rng, depth - 1));
                Self::Object(iter::repeat_with(member).take(len).collect())
            }
        }
    }

    /// The canonical form, written in the plainest way.
    pub(crate) fn canonical(&self) -> String {
        let join = |items: Vec<String>| items.join(",");
        match self {
            Self::Null => "null".to_owned(),
            Self::Bool(value) => value.to_string(),
            Self::Integer(digits) => digits.clone(),
            Self::Double(value) => ryu_js::Buffer::new().format(*value).to_owned(),
            Self::Text(text) => serde_json::to_string(text).unwrap(),
            Self::Array(values) => {
                format!("[{}]", join(values.iter().map(Self::canonical).collect()))
            }
            Self::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(name, _)| name.encode_utf16().collect::<Vec<_>>());
                let member = |(name, value): (&String, &Self)| {
                    format!("{}:{}", serde_json::to_string(name).unwrap(), value.canonical())
                };
                format!("{{{}}}", join(members.into_iter().map(member).collect()))
            }
        }
    }

    /// Writes it with members, white space, escapes and numbers as chance has it.
    pub(crate) fn render(&self, rng: &mut Rng, out: &mut String) {
        match self {
            Self::Null => out.push_str("null"),
            Self::Bool(value) => write!(out, "{value}").unwrap(),
            Self::Integer(digits) => render_integer(digits, rng, out),
            Self::Double(value) => render_double(*value, rng, out),
            Self::Text(text) => render_text(text, rng, out),
            Self::Array(values) => sequence(rng, out, "[]", values, Self::render_ref),
            Self::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                rng.shuffle(&mut members);
                sequence(rng, out, "{}", &members, |(name, value), rng, out| {
                    render_text(name, rng, out);
                    blank(rng, out);
                    out.push(':');
                    blank(rng, out);
                    value.render(rng, out);
                });
            }
        }
    }

    fn render_ref(&self, rng: &mut Rng, out: &mut String) {
        self.render(rng, out);
    }

    pub(crate) fn rendered(&self, rng: &mut Rng) -> String {
        let mut out = String::new();
        blank(rng, &mut out);
        self.render(rng, &mut out);
        blank(rng, &mut out);
        out
    }
}

fn sequence<T>(
    rng: &mut Rng,
    out: &mut String,
    brackets: &str,
    items: &[T],
    mut render: impl FnMut(&T, &mut Rng, &mut String),
) {
    out.push_str(&brackets[..1]);
    blank(rng, out);
    for (i, item) in items.iter().enumerate() {
        if i > 0 {
            out.push(',');
            blank(rng, out);
        }
        render(item, rng, out);
        blank(rng, out);
    }
    out.push_str(&brackets[1..]);
}

fn blank(rng: &mut Rng, out: &mut String) {
    while rng.u8(..4) == 0 {
        out.push([' ', '\n', '\r', '\t'][rng.usize(..4)]);
    }
}

fn render_text(text: &str, rng: &mut Rng, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        let short = match char {
            '"' => Some(r#"\""#),
            '\\' => Some(r"\\"),
            '/' => Some(r"\/"),
            '\u{8}' => Some(r"\b"),
            '\u{c}' => Some(r"\f"),
            '\n' => Some(r"\n"),
            '\r' => Some(r"\r"),
            '\t' => Some(r"\t"),
            _ => None,
        };
        let must = char < ' ' || char == '"' || char == '\\';
        match (rng.u8(..4), short) {
            (1.., Some(short)) if must || rng.bool() => out.push_str(short),
            (1.., _) if !must => out.push(char),
            _ => escape(char, rng, out),
        }
    }
    out.push('"');
}

fn escape(char: char, rng: &mut Rng, out: &mut String) {
    for unit in char.encode_utf16(&mut [0; 2]) {
        let digits = format!("{unit:04x}");
        out.push_str(r"\u");
        out.push_str(&if rng.bool() { digits.to_uppercase() } else { digits });
    }
}

/// An integer that a double holds exactly may be written like one.
fn render_integer(digits: &str, rng: &mut Rng, out: &mut String) {
    let exact = digits.parse::<i64>().is_ok_and(|value| value.abs() < 1 << 53);
    match rng.u8(..6) {
        0 if exact => write!(out, "{digits}.{}", "0".repeat(rng.usize(1..5))).unwrap(),
        1 if exact => write!(out, "{digits}e{}", ["0", "+0", "-0"][rng.usize(..3)]).unwrap(),
        2 if exact && digits != "0" => {
            let places = rng.usize(1..4);
            write!(out, "{digits}{}E-{places}", "0".repeat(places)).unwrap();
        }
        3 if digits == "0" => out.push_str(["-0", "-0.0", "0e99", "-0.00E+5"][rng.usize(..4)]),
        _ => out.push_str(digits),
    }
}

fn render_double(value: f64, rng: &mut Rng, out: &mut String) {
    let exponent = format!("{value:e}");
    let (digits, power) = exponent.split_once('e').unwrap();
    let power: i32 = power.parse().unwrap();
    match rng.u8(..4) {
        0 if (-30..0).contains(&power) => {
            write!(out, "{value}{}", "0".repeat(rng.usize(..3))).unwrap();
        }
        1 if power > 0 => write!(out, "{digits}E+{power:02}").unwrap(),
        // 17 digits say more than enough to find the same double again.
        2 => write!(out, "{value:.16e}").unwrap(),
        _ => write!(out, "{digits}e{power}").unwrap(),
    }
}
