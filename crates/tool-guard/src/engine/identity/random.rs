//! Whether an id was drawn at random, so that it names one call forever.

/// From this length on, a random id is not repeated by chance.
const RANDOM: usize = 20;

/// A UUID: 36 characters in these groups.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

/// The forms that known generators draw: a prefix, and this many letters and digits, with `_` and `-` among
/// them if `dashes`. The host of a model may add a part to Anthropic's.
const DRAWN: [Form; 8] = [
    Form { prefix: "toolu_", length: 24, dashes: false, is_drawn: |_| true },
    Form { prefix: "toolu_bdrk_", length: 24, dashes: false, is_drawn: |_| true },
    Form { prefix: "toolu_vrtx_", length: 24, dashes: false, is_drawn: |_| true },
    // OpenAI's.
    Form { prefix: "call_", length: 24, dashes: false, is_drawn: is_no_name },
    // Bedrock's: 16 bytes in Base64url.
    Form { prefix: "tooluse_", length: 22, dashes: true, is_drawn: is_no_name },
    // Nano IDs.
    Form { prefix: "", length: 21, dashes: true, is_drawn: is_mixed },
    Form { prefix: "call_", length: 21, dashes: true, is_drawn: is_mixed },
    Form { prefix: "toolu_", length: 21, dashes: true, is_drawn: is_mixed },
];

struct Form {
    prefix: &'static str,
    length: usize,
    dashes: bool,
    /// Whether the letters and digits were drawn: where a name may have this form, too, they must not read
    /// like words.
    is_drawn: fn(&str) -> bool,
}

/// Whether the id has a random part: the form of a known generator, a UUID, a ULID, 20 hexadecimal digits or
/// 20 letters and digits in a row, or a Nano ID. Names are chosen, however many words of them `_` joins: in
/// doubt nothing is random.
pub(super) fn is_random(id: &str, tool: &str) -> bool {
    // A shorter name is no separate part.
    let id = if tool.len() < RANDOM { id.to_owned() } else { id.replace(tool, ".") };
    let mut runs = id.split(|c: char| !c.is_ascii_alphanumeric());
    DRAWN.iter().any(|form| form.fits(&id))
        || runs.any(|run| run.len() >= RANDOM && (is_hex(run) || is_ulid(run) || is_mixed(run)))
        || has_uuid(&id)
}

impl Form {
    fn fits(&self, id: &str) -> bool {
        id.strip_prefix(self.prefix).is_some_and(|drawn| {
            let is_of_it = |byte: u8| {
                byte.is_ascii_alphanumeric() || self.dashes && matches!(byte, b'_' | b'-')
            };
            let letters: String = drawn.chars().filter(char::is_ascii_alphanumeric).collect();
            drawn.len() == self.length && drawn.bytes().all(is_of_it) && (self.is_drawn)(&letters)
        })
    }
}

/// A UUID of any version that has random bits; one that was counted has few different digits.
fn has_uuid(id: &str) -> bool {
    let parts: Vec<_> = id.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    parts.windows(UUID.len()).any(|groups| {
        groups.iter().zip(UUID).all(|(group, length)| {
            group.len() == length && group.bytes().all(|byte| byte.is_ascii_hexdigit())
        }) && matches!(groups[2].as_bytes()[0], b'1'..=b'8')
            && matches!(groups[3].as_bytes()[0], b'8' | b'9' | b'a' | b'b' | b'A' | b'B')
            && different(&groups.concat()) >= 8
    })
}

/// Hexadecimal digits: letters among them are no words, and a counter has few different ones.
fn is_hex(run: &str) -> bool {
    run.bytes().all(|byte| byte.is_ascii_hexdigit()) && different(run) >= 6 && changes(run) >= 2
}

/// Begins with the time, which stays below `02` until 2039, and has no I, L, O and U.
fn is_ulid(run: &str) -> bool {
    let is_of_it = |byte: u8| {
        (byte.is_ascii_digit() || byte.is_ascii_uppercase())
            && !matches!(byte, b'I' | b'L' | b'O' | b'U')
    };
    run.len() == 26
        && run.starts_with("01")
        && run.bytes().all(is_of_it)
        && different(&run[10..]) >= 6
}

/// Whether letters and digits alternate as often as in random text: words with a number in them alternate
/// rarely.
fn is_mixed(run: &str) -> bool {
    let has = |of: fn(&u8) -> bool| run.as_bytes().iter().any(of);
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) && changes(run) * 4 >= run.len()
}

/// Whether small letters, capitals and digits alternate where words do not: in words each capital begins one,
/// and there is one number at the end.
fn is_no_name(run: &str) -> bool {
    let has = |of: fn(&u8) -> bool| run.as_bytes().iter().any(of);
    let begins_word = |three: &[u8]| {
        three[0].is_ascii_lowercase()
            && three[1].is_ascii_uppercase()
            && three[2].is_ascii_lowercase()
    };
    let words = run.as_bytes().windows(3).filter(|three| begins_word(three)).count();
    has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && changes(run) >= words + 2
}

/// How often small letters, capitals and digits alternate. A capital and the small letter after it count as
/// no change, as they begin a word.
fn changes(run: &str) -> usize {
    let kind = |byte: u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let changes = run.as_bytes().windows(2).filter(|pair| {
        let begins_word = pair[0].is_ascii_uppercase() && pair[1].is_ascii_lowercase();
        kind(pair[0]) != kind(pair[1]) && !begins_word
    });
    changes.count()
}

/// How many different characters there are.
fn different(run: &str) -> usize {
    run.bytes().collect::<std::collections::BTreeSet<_>>().len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_that_were_drawn_are_random() {
        for drawn in [
            "toolu_01A09q90qw90lq917835lq9",
            "toolu_01TfEJqmSUNCWdhXmBqwhCxz",
            "toolu_AmwMBPxevaKFAkEUDONX17Se",
            "toolu_bdrk_01TfEJ7qmSUNCWdhXmBq3Cx4",
            "toolu_vrtx_01KzH8nUBxr5VpVhYtsM2dQe",
            "call_8f14e45fceea467f9b0cab12",
            "call_yo7Iqrcw3F8mAZpJ5Vd0TkRe",
            "call_00_tA5WkJz3EoZ9pXy7Qm2bVr8L",
            "chatcmpl-tool-9f86d081884c7d659a2feaa0c55ad015",
            "tooluse_kZJMlvQmRJ6eAyJE5GIl7Q",
            "tooluse_a8-dQ2_Xk9Lr7bT0-vWzN4",
            "8f14e45f-ceea-467f-9b0c-ab12cd34ef56",
            "exec-8f14e45f-ceea-467f-9b0c-ab12cd34ef56",
            "call_0190163d-8694-739b-aea5-966c26f8ad91",
            "01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "V1StGXR8_Z5jdHi6B-myT",
            "a1b2c3d4e5f6a7b8c9d0",
        ] {
            assert!(is_random(drawn, "pay"), "{drawn}");
        }
        // A short tool's name happens to stand in what was drawn.
        assert!(is_random("toolu_01A09q90qw90lq917835lq9", "q"));
    }

    #[test]
    fn names_and_numbers_are_not() {
        for chosen in [
            "",
            "call_1",
            "functions.pay:0",
            "functions.mcp__acme_corporate_payments__pay:0",
            "functions.mcp__AcmeCorporatePayments__pay:12",
            "functions.mcp__acme-corporate-payments2__pay:0",
            "functions.mcp__acmecorporatepayments2024__pay:0",
            "tool_0_mcp__acme_corporate_payments__pay",
            "create_payment_orders",
            "toolu_create_payment_orders01",
            "toolu_01",
            "call_create_payment_orders",
            "12345678901234567890",
            "20261123055242123456",
            "00000000-0000-0000-0000-000000000001",
            "00000000-0000-4000-8000-000000000123",
            "00000000000000000000a1f0",
            "call_createpaymentorders2024x",
            "call_CreatePaymentOrderNumber",
            "tooluse_create_payment_order_1",
            "01CREATEPAYMENT",
            "call-3-of-conversation-in-session-7",
        ] {
            assert!(!is_random(chosen, "pay"), "{chosen}");
        }
        let tool = "convertS3ObjectV2ToH264File1";
        assert!(!is_random(&format!("functions.mcp__x__{tool}:0"), tool));
    }

    #[test]
    fn of_ids_as_generators_draw_them_next_to_none_is_taken_for_chosen() {
        const BASE62: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
        const BASE64: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-_";
        const CROCKFORD: &[u8] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
        const HEX: &[u8] = b"0123456789abcdef";
        let mut rng = fastrand::Rng::with_seed(7);
        let mut draw = |letters: &[u8], count: usize| -> String {
            (0..count).map(|_| char::from(letters[rng.usize(..letters.len())])).collect()
        };
        type Draw<'d> = &'d mut dyn FnMut(&[u8], usize) -> String;
        type Id = fn(Draw<'_>) -> String;
        let forms: [(&str, Id); 6] = [
            ("a UUID", |draw| {
                let [a, b, c, d, e] = [8, 4, 3, 3, 12].map(|count| draw(HEX, count));
                format!("{a}-{b}-4{c}-a{d}-{e}")
            }),
            ("OpenAI's", |draw| format!("call_{}", draw(BASE62, 24))),
            ("Anthropic's", |draw| format!("toolu_01{}", draw(BASE62, 22))),
            ("Bedrock's", |draw| format!("tooluse_{}", draw(BASE64, 22))),
            ("a ULID", |draw| format!("01{}", draw(CROCKFORD, 24))),
            ("32 hexadecimal digits", |draw| format!("call_{}", draw(HEX, 32))),
        ];
        for (form, id) in forms {
            let weak = (0..100_000).filter(|_| !is_random(&id(&mut draw), "pay")).count();
            assert!(weak <= 400, "{form}: {weak} of 100,000");
        }
    }
}
