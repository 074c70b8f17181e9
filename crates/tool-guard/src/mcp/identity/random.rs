//! Whether an id was drawn at random, so that it names one call forever.

/// From this length on, a random id is not repeated by chance.
const RANDOM: usize = 20;

/// A UUID: 36 characters in these groups.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];

/// The prefixes of 21 or 22 characters that may contain `_` and `-` themselves: ids of Nano ID, and 16
/// bytes in Base64url, as Bedrock uses them.
const PREFIXES: [&str; 4] = ["", "call_", "toolu_", "tooluse_"];

/// The prefixes of the 24 letters and digits of Anthropic's ids; the host of the model may add a part.
const ANTHROPIC: [&str; 3] = ["toolu_", "toolu_bdrk_", "toolu_vrtx_"];

/// Whether the id has a random part: 20 letters and digits in a row, a UUID, or a Nano ID. Names are chosen,
/// however many words of them `_` joins: in doubt nothing is random.
pub(super) fn is_random(id: &str, tool: &str) -> bool {
    // A shorter name is no separate part.
    let id = if tool.len() < RANDOM { id.to_owned() } else { id.replace(tool, ".") };
    let mut runs = id.split(|c: char| !c.is_ascii_alphanumeric());
    runs.any(|run| run.len() >= RANDOM && is_mixed(run))
        || is_of_anthropic(&id)
        || has_uuid(&id)
        || has_nano_id(&id)
}

/// Two in a hundred random ids are mixed too little to be recognised.
fn is_of_anthropic(id: &str) -> bool {
    ANTHROPIC
        .iter()
        .filter_map(|prefix| id.strip_prefix(prefix))
        .any(|drawn| drawn.len() == 24 && drawn.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

fn has_uuid(id: &str) -> bool {
    let parts: Vec<_> = id.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    parts.windows(UUID.len()).any(|groups| {
        groups.iter().zip(UUID).all(|(group, length)| {
            group.len() == length && group.bytes().all(|byte| byte.is_ascii_hexdigit())
        }) && is_mixed(&groups.concat())
    })
}

fn has_nano_id(id: &str) -> bool {
    PREFIXES.iter().filter_map(|prefix| id.strip_prefix(prefix)).any(|rest| {
        let is_of_it = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        let letters: String = rest.chars().filter(char::is_ascii_alphanumeric).collect();
        (21..=22).contains(&rest.len()) && rest.bytes().all(is_of_it) && is_mixed(&letters)
    })
}

/// Whether letters and digits alternate as often as in random text: words with a number in them alternate
/// rarely. A capital and the small letter after it count as no change, as they begin a word.
fn is_mixed(run: &str) -> bool {
    let kind = |byte: u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let changes = run.as_bytes().windows(2).filter(|pair| {
        let begins_word = pair[0].is_ascii_uppercase() && pair[1].is_ascii_lowercase();
        kind(pair[0]) != kind(pair[1]) && !begins_word
    });
    let has = |of: fn(&u8) -> bool| run.as_bytes().iter().any(of);
    has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic) && changes.count() * 4 >= run.len()
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
            "call-3-of-conversation-in-session-7",
        ] {
            assert!(!is_random(chosen, "pay"), "{chosen}");
        }
        let tool = "convertS3ObjectV2ToH264File1";
        assert!(!is_random(&format!("functions.mcp__x__{tool}:0"), tool));
    }
}
