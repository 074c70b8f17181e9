//! Secrets go, the rest stays.
use super::*;
use proptest::prelude::*;

fn redacted(text: &str) -> String {
    Redactor::default().redact(text).into_owned()
}

#[test]
fn values_under_sensitive_names_go_in_any_style() {
    for (text, clean) in [
        ("password=hunter2 rest", "password=[redacted] rest"),
        ("PASSWORD: hunter2, x", "PASSWORD: [redacted], x"),
        (r#"{"apiKey":"k1","n":1}"#, r#"{"apiKey":"[redacted]","n":1}"#),
        (r#"{\"api_key\": \"a b\", \"n\": 1}"#, r#"{\"api_key\": \"[redacted]\", \"n\": 1}"#),
        (r#"{"password":"say \"hi\" now","n":1}"#, r#"{"password":"[redacted]","n":1}"#),
        ("X-API-KEY: abc", "X-API-KEY: [redacted]"),
        ("dbPassword='p w', n", "dbPassword='[redacted]', n"),
        ("Authorization: Bearer abc.def", "Authorization: [redacted]"),
        ("authorization: Basic short\nnext", "authorization: [redacted]\nnext"),
        ("GET /x?access_token=abc&page=2", "GET /x?access_token=[redacted]&page=2"),
        ("curl --password hunter2 x", "curl --password [redacted] x"),
        ("curl --token=abc x", "curl --token=[redacted] x"),
        ("API key: abc", "API key: [redacted]"),
        ("Invalid token: abc", "Invalid token: [redacted]"),
        (r#"{"secrets": ["a", "b]"], "n": 1}"#, r#"{"secrets": [redacted], "n": 1}"#),
        (r#"{"credentials": {"user": "u"}}"#, r#"{"credentials": [redacted]}"#),
        ("Set-Cookie: sid=abc; Path=/", "Set-Cookie: [redacted]; Path=/"),
        ("refreshToken => abc", "refreshToken => [redacted]"),
        ("pin: 1234", "pin: [redacted]"),
        ("pin: 123", "pin: [redacted]"),
        ("token: 401234", "token: [redacted]"),
        ("token: hunter2", "token: [redacted]"),
        ("token: expiredOrNot", "token: [redacted]"),
        ("token=expired", "token=[redacted]"),
        ("access_token: expired", "access_token: [redacted]"),
        (r#"{"token": "expired"}"#, r#"{"token": "[redacted]"}"#),
        ("token: 'expired'", "token: '[redacted]'"),
        ("password: expired", "password: [redacted]"),
        ("password-sk-AAa0aAaa0aAaa0aAA00A: x", "password-[redacted]: [redacted]"),
        ("contraseña_secret: ñandú!", "contraseña_secret: [redacted]"),
        ("env[\"DB_PWD\"] = x", "env[\"DB_PWD\"] = [redacted]"),
    ] {
        assert_eq!(redacted(text), clean);
    }
}

#[test]
fn well_known_secrets_go_wherever_they_stand() {
    let body = "Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4zAb3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z";
    for prefix in [
        "ghp_",
        "github_pat_",
        "glpat-",
        "xoxb-",
        "sk-",
        "sk-ant-",
        "sk_live_",
        "AIza",
        "npm_",
        "hf_",
        "pypi-",
        "GOCSPX-",
        "ya29.",
        "whsec_",
        "hvs.",
    ] {
        let text = format!("failed for ({prefix}{body}) at 3");
        assert_eq!(redacted(&text), "failed for ([redacted]) at 3", "{prefix}");
    }
    for (text, clean) in [
        ("id AKIAIOSFODNN7EXAMPLE!", "id [redacted]!"),
        ("got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln,", "got [redacted],"),
        ("use Bearer abc123DEF456", "use Bearer [redacted]"),
        ("use basic dXNlcjpwYXNz.", "use basic [redacted]."),
        ("at postgres://u:p%40@db:5432/x", "at postgres://[redacted]@db:5432/x"),
        (
            "k -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- z",
            "k [redacted] z",
        ),
        ("k -----BEGIN PRIVATE KEY-----\nMII", "k [redacted]"),
        ("https://hooks.slack.com/services/T0/B0/x", "https://hooks.slack.com/services/[redacted]"),
    ] {
        assert_eq!(redacted(text), clean);
    }
}

#[test]
fn clean_text_stays_as_it_is() {
    for text in [
        "",
        "Tool timeout after 30s",
        "connect ECONNREFUSED 127.0.0.1:5432",
        "max_tokens: 100",
        "unexpected token } in JSON at position 3",
        "the task-force-is-on-its-way-to-the-place",
        "basic authentication is required",
        "bearer authentication failed",
        "monkey: banana",
        "primary key: id",
        "see https://example.com/a@b",
        "password: null",
        "keyboard=us",
        "shipping: 3 days",
        "author: me",
        "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----",
        "token bucket is empty",
        "session: s-1",
        "token: expired",
        "refresh token: revoked.",
        "Auth: 401",
        "auth: Unauthorized, log in again",
        "Unexpected token: '}'",
        "Unexpected token: EOF",
        "JWT: malformed",
        "invalid token: signature: expired",
        "pin: incorrect",
        "grüße: ÄÖÜ",
    ] {
        assert!(
            matches!(Redactor::default().redact(text), Cow::Borrowed(same) if same == text),
            "{text}"
        );
    }
}

#[test]
fn added_names_are_hidden_in_any_style() {
    let redactor = Redactor::default().hiding(["birth_date", "Straße"]);
    for text in ["birthDate=x", "birth-date: x", "BIRTH_DATE='x'", "userBirthdate=x", "straße: x"]
    {
        assert!(redactor.redact(text).contains(REDACTED), "{text}");
    }
    assert_eq!(redactor.redact("birthday=x, password=y"), "birthday=x, password=[redacted]");
    let told = Redactor::default().hiding(["token"]);
    assert_eq!(told.redact("token: expired"), "token: [redacted]", "whoever adds a name means it");
}

#[test]
fn what_is_cut_off_leaves_no_half_secret() {
    let key = "sk-Ab3dEf6hIj9kLm2nOp5q";
    for pad in 0..200 {
        let text = format!("{} {key} {}", "x ".repeat(pad / 2), "y".repeat(pad));
        let shown = cut(&Redactor::default(), &text, 24);
        assert!(shown.len() <= 24 && !shown.contains("sk-"), "{shown}");
    }
    let one_word = "é".repeat(10_000);
    assert_eq!(cut(&Redactor::default(), &one_word, 24), "");
}

proptest! {
    #[test]
    fn a_secret_goes_whatever_stands_around_it(
        before in "([a-z ]{0,6}|password|token|apiKey|[:= \"'{}\\\\-]{0,3}|eyJ|://|@|é){0,8}",
        after in "([a-z ]{0,6}|password|token|[:= \"'{}\\\\]{0,3}|://|@|é){0,8}",
    ) {
        let secret = "sk-Ab3dEf6hIj9kLm2nOp5q";
        let shown = redacted(&format!("{before} {secret} {after}"));
        prop_assert!(!shown.contains(secret), "{}", shown);
    }

    #[test]
    fn nothing_panics(text in ".{0,80}", pick in 0_usize..40) {
        let anchors = ["token", "://", "bearer ", "-----BEGIN ", "eyJ", "sk-", "key=\"", "\"secret\":"];
        let at = text.char_indices().map(|(at, _)| at).nth(pick % 20).unwrap_or(text.len());
        let text = format!("{}{}{}", &text[..at], anchors[pick % anchors.len()], &text[at..]);
        let _ = redacted(&text);
    }
}
