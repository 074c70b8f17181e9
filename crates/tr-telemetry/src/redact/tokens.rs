//! Secrets that are known by their first characters.
use std::ops::Range;

pub(super) type Class = fn(u8) -> bool;

pub(super) const UPPER: Class = |byte| byte.is_ascii_uppercase() || byte.is_ascii_digit();
pub(super) const HEX: Class = |byte| byte.is_ascii_hexdigit();
pub(super) const ALNUM: Class = |byte| byte.is_ascii_alphanumeric();
pub(super) const WORD: Class = |byte| ALNUM(byte) || byte == b'_';
pub(super) const DASHED: Class = |byte| WORD(byte) || byte == b'-';
pub(super) const DOTTED: Class = |byte| DASHED(byte) || byte == b'.';
pub(super) const BASE64: Class = |byte| ALNUM(byte) || b"+/=".contains(&byte);
/// Base 64 of any kind, and what else credentials hold.
pub(super) const MIXED: Class = |byte| DOTTED(byte) || b"~+/=".contains(&byte);

/// Prefix, the characters that follow it, and how many at least.
#[rustfmt::skip]
pub(super) static PREFIXES: &[(&str, Class, usize)] = &[
    // Clouds.
    ("AKIA", UPPER, 16), ("ASIA", UPPER, 16), ("ABIA", UPPER, 16), ("ACCA", UPPER, 16),
    ("ABSK", BASE64, 100), ("bedrock-api-key-", MIXED, 30), ("LTAI", ALNUM, 16), ("AKID", ALNUM, 28),
    ("AIza", DASHED, 30), ("ya29.", DASHED, 20), ("GOCSPX-", DASHED, 20), ("1//0", DASHED, 40),
    ("dop_v1_", WORD, 40), ("doo_v1_", WORD, 40), ("dor_v1_", WORD, 40),
    ("cfk_", WORD, 40), ("cfut_", WORD, 40), ("cfat_", WORD, 40), ("v1.0-", DASHED, 150),
    ("HRKU-", DASHED, 32), ("fo1_", DASHED, 40), ("fm1r_", MIXED, 80), ("fm1a_", MIXED, 80), ("fm2_", MIXED, 80),
    ("nfp_", WORD, 30), ("tskey-", DASHED, 20), ("sha256~", DASHED, 40), ("t1.9eu", MIXED, 80), ("AQVN", DASHED, 30),
    // Code.
    ("ghp_", WORD, 30), ("gho_", WORD, 30), ("ghu_", WORD, 30), ("ghs_", WORD, 30), ("ghr_", WORD, 30),
    ("github_pat_", WORD, 22),
    ("glpat-", DOTTED, 16), ("gldt-", DASHED, 16), ("glptt-", DASHED, 16), ("glrt-", DOTTED, 16),
    ("glrtr-", DOTTED, 16), ("glcbt-", DASHED, 16), ("glft-", DASHED, 16), ("glimt-", DASHED, 16),
    ("glagent-", DASHED, 16), ("gloas-", DASHED, 16), ("glsoat-", DASHED, 16), ("glffct-", DASHED, 16),
    ("GR1348941", DASHED, 16),
    ("ATATT3", MIXED, 60), ("ATCTT3", MIXED, 60), ("ATBB", WORD, 24), ("BBDC-", MIXED, 40),
    ("npm_", WORD, 30), ("pypi-", DASHED, 50), ("rubygems_", HEX, 40), ("CLOJARS_", ALNUM, 40), ("oy2", ALNUM, 43),
    ("dckr_pat_", DASHED, 20), ("dckr_oat_", DASHED, 20), ("AKCp", ALNUM, 60), ("cmVmd", ALNUM, 55),
    ("sgp_", WORD, 40), ("sntrys_", MIXED, 40), ("sntryu_", HEX, 40), ("PMAK-", DASHED, 40), ("lin_api_", WORD, 30),
    ("figd_", DASHED, 30), ("figo_", DASHED, 30), ("figu_", DASHED, 30), ("figoh_", DASHED, 30), ("figor_", DASHED, 30),
    ("rdme_", ALNUM, 60), ("API-", UPPER, 25),
    // Messages.
    ("xoxb-", DASHED, 10), ("xoxp-", DASHED, 10), ("xoxa-", DASHED, 10), ("xoxr-", DASHED, 10), ("xoxs-", DASHED, 10),
    ("xapp-", DASHED, 10), ("xoxe-", DASHED, 10), ("xoxe.", DASHED, 10), ("xoxc-", DASHED, 10), ("xoxd-", MIXED, 10),
    ("mfa.", DASHED, 60), ("SG.", DOTTED, 40), ("key-", HEX, 32), ("xkeysib-", DASHED, 60), ("xsmtpsib-", DASHED, 60),
    ("SK0", HEX, 31), ("SK1", HEX, 31), ("SK2", HEX, 31), ("SK3", HEX, 31), ("SK4", HEX, 31), ("SK5", HEX, 31),
    ("SK6", HEX, 31), ("SK7", HEX, 31), ("SK8", HEX, 31), ("SK9", HEX, 31), ("SKa", HEX, 31), ("SKb", HEX, 31),
    ("SKc", HEX, 31), ("SKd", HEX, 31), ("SKe", HEX, 31), ("SKf", HEX, 31),
    // Models.
    ("sk-", DASHED, 16), ("sk_", WORD, 32), ("xai-", DASHED, 40), ("hf_", WORD, 20), ("api_org_", ALNUM, 30),
    ("gsk_", WORD, 30), ("pplx-", DASHED, 30), ("r8_", WORD, 30), ("fw_", WORD, 20), ("tvly-", DASHED, 16),
    ("jina_", WORD, 40), ("pcsk_", WORD, 40), ("lsv2_", WORD, 40), ("nvapi-", DASHED, 40), ("fc-", HEX, 32),
    ("e2b_", HEX, 32), ("csk-", DASHED, 40), ("co_api_", WORD, 30), ("voy-", DASHED, 40), ("pa-", DASHED, 43),
    // Money and shops.
    ("sk_live_", WORD, 10), ("sk_test_", WORD, 10), ("rk_live_", WORD, 10), ("rk_test_", WORD, 10),
    ("whsec_", MIXED, 16), ("EAAA", DASHED, 50), ("EAAC", ALNUM, 80), ("EAAM", ALNUM, 80),
    ("sq0atp-", DASHED, 20), ("sq0csp-", DASHED, 30), ("shpat_", WORD, 30), ("shpca_", HEX, 30), ("shppa_", HEX, 30),
    ("shpss_", HEX, 30), ("FLWSECK-", DASHED, 20), ("FLWSECK_TEST-", DASHED, 12), ("EZAK", ALNUM, 50),
    ("EZTK", ALNUM, 50), ("shippo_live_", HEX, 30), ("shippo_test_", HEX, 30), ("duffel_live_", MIXED, 40),
    ("duffel_test_", MIXED, 40), ("access-production-", DASHED, 30), ("access-sandbox-", DASHED, 30),
    // Data and operations.
    ("dapi", DASHED, 32), ("dose", HEX, 32), ("secret_", ALNUM, 40), ("ntn_", ALNUM, 40),
    ("dp.pt.", ALNUM, 40), ("dp.ct.", ALNUM, 40), ("dp.sa.", ALNUM, 40), ("dp.st.", DOTTED, 40),
    ("dp.scim.", ALNUM, 40), ("dp.audit.", ALNUM, 40),
    ("hvs.", DASHED, 20), ("hvb.", DASHED, 60), ("hvr.", DASHED, 60), ("AGE-SECRET-KEY-1", UPPER, 40),
    ("ops_eyJ", MIXED, 60), ("A3-", DASHED, 30), ("pul-", HEX, 40), ("pnu_", ALNUM, 36), ("pnb_", ALNUM, 36),
    ("glsa_", WORD, 30), ("glc_", MIXED, 32), ("dt0c01.", DOTTED, 60), ("dt0s01.", DOTTED, 60), ("NRAK-", UPPER, 27),
    ("NRII-", DASHED, 32), ("NRJS-", HEX, 19), ("ddapp_", WORD, 34), ("pscale_tkn_", DOTTED, 32),
    ("pscale_pw_", DOTTED, 32), ("pscale_oauth_", DOTTED, 32), ("sbp_", HEX, 40), ("sb_secret_", DASHED, 20),
    ("napi_", ALNUM, 40), ("pat-na1-", DASHED, 32), ("pat-eu1-", DASHED, 32), ("CFPAT-", DASHED, 40),
    ("sl.", DASHED, 60), ("fio-u-", MIXED, 60), ("tfp_", MIXED, 40), ("ico-", ALNUM, 32), ("p8e-", ALNUM, 32),
    ("sm_pat_", ALNUM, 16), ("sm_aat_", ALNUM, 16), ("sm_sat_", ALNUM, 16), ("tk-us-", DASHED, 40), ("4b1d", ALNUM, 38),
    ("s-s4t2ud-", HEX, 60), ("s-s4t2af-", HEX, 60),
    // Hashes of passwords.
    ("$2a$", MCF, 50), ("$2b$", MCF, 50), ("$2y$", MCF, 50), ("$5$", MCF, 40), ("$6$", MCF, 80), ("$y$", MCF, 50),
    ("$1$", MCF, 24), ("$apr1$", MCF, 24), ("$argon2id$", MCF, 40), ("$argon2i$", MCF, 40), ("$argon2d$", MCF, 40),
    ("pbkdf2_sha256$", MCF, 40), ("{SSHA}", BASE64, 20),
];

/// What hashes of passwords hold.
const MCF: Class = |byte| ALNUM(byte) || b"./$=,+".contains(&byte);

/// How many bytes of this class there are from there on.
pub(super) fn run(text: &str, from: usize, class: Class) -> usize {
    text.as_bytes()[from..].iter().take_while(|byte| class(**byte)).count()
}

/// The secret that begins with the prefix at `at`.
pub(super) fn prefixed(
    text: &str,
    at: Range<usize>,
    (prefix, class, least): (&str, Class, usize),
) -> Option<Range<usize>> {
    // `sk-` is also the end of `task-`.
    if text[at.clone()] != *prefix || !begins(text.as_bytes(), at.start) {
        return None;
    }
    let end = at.end + run(text, at.end, class);
    let body = text[at.end..end].trim_end_matches('.').len();
    (body >= least).then(|| at.start..at.end + body)
}

/// Whether a word begins there: after anything but a letter or digit, or after an escaped character.
pub(super) fn begins(bytes: &[u8], at: usize) -> bool {
    match bytes[..at] {
        [.., b'\\', b'n' | b'r' | b't'] => true,
        [.., b'%', high, low] => high.is_ascii_hexdigit() && low.is_ascii_hexdigit(),
        [.., b'\\', b'u', _, _, _, _] => true,
        [.., b'[', b'0' | b'1', b'm'] | [.., b'[', _, b'0'..=b'9', b'm'] => true,
        [.., before] => !before.is_ascii_alphanumeric(),
        [] => true,
    }
}

/// How many bytes of this class there are right before, looking at so many at most.
pub(super) fn back(bytes: &[u8], at: usize, most: usize, class: impl Fn(u8) -> bool) -> usize {
    bytes[..at].iter().rev().take(most).take_while(|byte| class(**byte)).count()
}
