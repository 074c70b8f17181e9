//! What the redactor finds, what it leaves alone, and that hostile text takes no longer than other text.
use std::{
    borrow::Cow,
    time::{Duration, Instant},
};
use tr_telemetry::redact::{REDACTED, Redact, Redactor};

const FORMS: &str = include_str!("../data/secrets.tsv");
const CLEAN: &str = include_str!("../data/clean.txt");

/// Of each thousand clean lines, so many may be touched.
const TOUCHED: usize = 20;

/// A text with a secret.
struct Sample {
    form: &'static str,
    text: String,
    secret: String,
}

/// The lines of the file, with the bodies of their secrets drawn.
fn samples() -> Vec<Sample> {
    let lines = FORMS.lines().filter(|line| !line.starts_with('#'));
    let sample = |(number, line): (usize, &'static str)| {
        let (form, text) = line.split_once('\t').unwrap();
        let text = text.replace("\\\\n", "\u{0}").replace("\\n", "\n").replace('\u{0}', "\\n");
        let text = drawn(&text, &mut Drawing(number as u64 + 1));
        let (before, rest) = text.split_once('«').unwrap();
        let (secret, after) = rest.split_once('»').unwrap();
        Sample { form, text: format!("{before}{secret}{after}"), secret: secret.to_owned() }
    };
    lines.enumerate().map(sample).collect()
}

/// A text may be cut behind any of its bytes.
#[test]
fn a_text_that_ends_anywhere_is_read_to_its_end() {
    let redactor = Redactor::default();
    for Sample { text, .. } in samples() {
        for (end, _) in text.char_indices() {
            let _ = redactor.redact(&text[..end]);
        }
    }
    let names = ["cookie", "Set-Cookie", "password", "--token", "pin", "passwd", "?key", "auth"];
    for name in names {
        for sign in ["", " ", ":", "=", ": ", "= ", "=\"", "\": \"", "\\\":\\\"", "='", "%3D"] {
            let _ = redactor.redact(&format!("missing {name}{sign}"));
        }
    }
}

/// Each `{a9}` replaced by nine such characters.
fn drawn(text: &str, drawing: &mut Drawing) -> String {
    let Some((before, rest)) = text.split_once('{') else { return text.to_owned() };
    let body = rest.split_once('}').and_then(|(form, rest)| Some((drawing.body(form)?, rest)));
    match body {
        Some((body, rest)) => format!("{before}{body}{}", drawn(rest, drawing)),
        None => format!("{before}{{{}", drawn(rest, drawing)),
    }
}

/// Draws bodies of secrets, the same for each run.
struct Drawing(u64);

impl Drawing {
    fn pick(&mut self, from: &[u8]) -> char {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        from[(self.0 >> 33) as usize % from.len()].into()
    }

    fn body(&mut self, form: &str) -> Option<String> {
        const DIGITS: &[u8] = b"0123456789";
        const SMALL: &[u8] = b"abcdefghijklmnopqrstuvwxyz";
        const CAPITAL: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        let (kind, length) = (form.get(..1)?, form.get(1..)?);
        if form == "g" {
            let parts = ["x8", "x4", "x4", "x4", "x12"].map(|part| self.body(part));
            return Some(parts.into_iter().flatten().collect::<Vec<_>>().join("-"));
        }
        // The first of them hold one of each sort, whatever else is drawn.
        let (first, all): (&[&[u8]], Vec<u8>) = match kind {
            "a" => (&[SMALL, CAPITAL, DIGITS], [DIGITS, SMALL, CAPITAL].concat()),
            "b" => (&[SMALL, CAPITAL, DIGITS], [DIGITS, SMALL, CAPITAL, b"+/"].concat()),
            "x" => (&[DIGITS, b"abcdef"], [DIGITS, b"abcdef"].concat()),
            "u" => (&[CAPITAL, DIGITS], [DIGITS, CAPITAL].concat()),
            "l" => (&[SMALL, DIGITS], [DIGITS, SMALL].concat()),
            "d" => (&[], DIGITS.to_vec()),
            _ => return None,
        };
        let length: usize = length.parse().ok()?;
        let sort = |at: usize| first.get(at).copied().unwrap_or(&all);
        Some((0..length).map(|at| self.pick(sort(at))).collect())
    }
}

#[test]
fn every_form_of_the_corpus_goes() {
    let samples = samples();
    assert!(samples.len() >= 300, "{} forms", samples.len());
    let redactor = Redactor::default();
    let mut left = Vec::new();
    for Sample { form, text, secret } in &samples {
        let shown = redactor.redact(text);
        // Nor may a part of it stay that is long enough to be of use.
        let part = secret.len().min(12);
        let is_shown = secret
            .as_bytes()
            .windows(part)
            .any(|part| shown.as_bytes().windows(part.len()).any(|shown| shown == part));
        if is_shown || !shown.contains(REDACTED) {
            left.push(format!("{form}: {text:?} became {shown:?}"));
        }
    }
    assert!(left.is_empty(), "{} of {} forms:\n{}", left.len(), samples.len(), left.join("\n"));
}

/// The test can fail: without the redactor each of the forms is shown.
#[test]
fn the_corpus_holds_its_secrets() {
    for Sample { form, text, secret } in samples() {
        assert!(!secret.is_empty() && text.contains(&secret), "{form}");
        assert!(!text.contains(['«', '»', '\u{0}']), "{form}: {text}");
    }
}

fn touched(redactor: &Redactor) -> Vec<String> {
    let lines = CLEAN.lines().filter_map(|line| match redactor.redact(line) {
        Cow::Borrowed(_) => None,
        Cow::Owned(shown) => Some(format!("{line}\n    {shown}")),
    });
    lines.collect()
}

#[test]
fn clean_text_is_left_alone() {
    assert_eq!(CLEAN.lines().count(), 1_000);
    let touched = touched(&Redactor::default());
    println!("{} of 1,000 clean lines are touched:\n{}", touched.len(), touched.join("\n"));
    assert!(touched.len() <= TOUCHED, "{} lines:\n{}", touched.len(), touched.join("\n"));
}

/// What `by_entropy` costs in clean lines, as `docs/telemetry.md` says.
#[test]
fn entropy_has_its_price() {
    let (usual, all) = (touched(&Redactor::default()), touched(&Redactor::default().by_entropy()));
    assert!((50..=200).contains(&(all.len() - usual.len())), "{}", all.len() - usual.len());
    println!("{} more clean lines are touched", all.len() - usual.len());
    let per_kib = |redactor: &Redactor| {
        let best = (0..20).map(|_| timed(redactor, CLEAN)).min().unwrap();
        best * 1_024 / u32::try_from(CLEAN.len()).unwrap()
    };
    let (usual, all) = (per_kib(&Redactor::default()), per_kib(&Redactor::default().by_entropy()));
    println!("a KiB of them takes {usual:?}, by entropy too {all:?}");
}

#[test]
fn entropy_finds_what_has_no_form() {
    let mut drawing = Drawing(7);
    let (usual, all) = (Redactor::default(), Redactor::default().by_entropy());
    for form in ["a24", "a40", "b43", "x32", "x64"] {
        for _ in 0..1_000 {
            let secret = drawing.body(form).unwrap();
            let text = format!("it was {secret} then");
            assert_eq!(usual.redact(&text), text);
            assert_eq!(all.redact(&text), "it was [redacted] then", "{text}");
        }
    }
}

/// The text of the row P19 of `lab/NOTEBOOK.md`.
#[test]
fn what_a_plain_sentence_takes() {
    let sentence =
        "The connection to the flight search was reset by the other side; 3 of 4 legs were found. ";
    let text = sentence.repeat(12);
    let redactor = Redactor::default();
    let best = (0..20_000).map(|_| timed(&redactor, &text[..1_024])).min().unwrap();
    println!("a KiB of a plain sentence takes {best:?}");
    assert_eq!(redactor.redact(&text), text);
}

/// What makes the redactor look at something: repeated, it is looked at again and again.
#[rustfmt::skip]
const HOSTILE: &[&str] = &[
        "key",
        "key=",
        "key: ",
        "password",
        "password ",
        "password is ",
        "passwd passwd",
        "token: null ",
        "eyJ",
        "eyJ.",
        " eyJ",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY",
        "-----",
        "://",
        "://@",
        "a@://",
        "sk-",
        "sk-a ",
        "secret_",
        "MII",
        "MIIEpAIBAAK",
        "MIGHAgEA\n",
        ":AA",
        "1234567890:AA",
        "AZDO",
        "Q~",
        "aQ~",
        "1Q~",
        "-us",
        "0123456789abcdef",
        "0123456789abcdef-us",
        "a.",
        "a-",
        "Mabcdefghijklmnopqrstuvw.",
        ".atlasv1.",
        " -p",
        "mysql -p",
        " -u a:",
        "$2b$",
        "é",
        "ké",
        "key é",
        "{\"key\":",
        "[\"secret\":",
        "\\\"",
        "\"password\":\"\\",
        "?key=",
        "&amp;sig=",
        "\\u0026key=",
        "patient",
        "patient: ",
        "bearer ",
        "basic a",
        "cookie: ",
        "private-lines: ",
        ":5432:",
        "identified by '",
        " ",
        "\n",
        "A",
        "=",
        "'",
        "--password",
        "--password ",
];

fn took(text: &str) -> Duration {
    timed(&Redactor::default().hiding(["patient"]).by_entropy(), text)
}

#[expect(clippy::disallowed_methods, reason = "the time that it takes is what is tested")]
fn timed(redactor: &Redactor, text: &str) -> Duration {
    let start = Instant::now();
    std::hint::black_box(redactor.redact(text));
    start.elapsed()
}

/// Ten times as much takes ten times as long, not a hundred times.
#[test]
fn hostile_text_takes_linear_time() {
    for unit in HOSTILE {
        let text = unit.repeat(200_000 / unit.len());
        let tenth = (0..20_000).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let (tenth, all) = (took(&text[..tenth]), took(&text));
        let most = (tenth * 40).max(Duration::from_secs(2));
        assert!(all < most, "{unit:?}: {tenth:?} for a tenth, {all:?} for all");
    }
}

#[test]
fn ten_megabytes_of_hostile_text_take_a_moment() {
    const ALL: usize = 10_000_000;
    let part = |unit: &&str| unit.repeat(ALL / HOSTILE.len() / unit.len());
    let text: String = HOSTILE.iter().map(part).collect();
    let took = took(&text);
    println!("{} bytes took {took:?}", text.len());
    assert!(took < Duration::from_secs(60), "{took:?}");
}
