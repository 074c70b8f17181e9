//! Generated pairs: no two values share a digest, no value has two.
use super::model::{self, Value};
use fastrand::Rng;
use std::{collections::BTreeMap, mem};
use tr_core::canonical::{Digest, Key, KeyParts, KeyScope, KeySource, Rules, VOLATILE};

fn pairs() -> u64 {
    tr_testkit::rounds(20_000, 10_000_000)
}

fn digest(json: &str, rules: &Rules) -> Digest {
    Digest::of_params(json, rules).unwrap_or_else(|error| panic!("{error}: {json}"))
}

#[test]
fn r4_values_are_neither_merged_nor_split() {
    let (rng, rules) = (&mut Rng::with_seed(4), Rules::default());
    let (mut merged, mut split, mut compared) = (0, 0, 0);
    for _ in 0..pairs() {
        let mut params: BTreeMap<_, _> =
            (0..rng.u8(1..4)).map(|_| (model::text(rng), Value::random(rng, 2))).collect();
        let value = Value::Object(params.clone());
        let ours = digest(&value.rendered(rng), &rules);

        // The same call, travelled differently.
        for name in VOLATILE {
            if rng.u8(..4) == 0 {
                params.insert(name.to_owned(), Value::random(rng, 1));
            }
        }
        split += u64::from(digest(&Value::Object(params).rendered(rng), &rules) != ours);

        // Another call, one step away.
        let mut other = value.clone();
        change(&mut other, rng);
        if other != value {
            compared += 1;
            merged += u64::from(digest(&other.rendered(rng), &rules) == ours);
        }
    }
    println!(
        "R4 values: {} spellings, {split} split; {compared} neighbors, {merged} merged",
        pairs()
    );
    assert!(compared > pairs() / 2);
    assert_eq!((merged, split), (0, 0));
}

/// Changes one place. What comes out may be the same again.
fn change(value: &mut Value, rng: &mut Rng) {
    let here = rng.u8(..3) == 0;
    match value {
        Value::Array(values) if !here && !values.is_empty() => {
            let at = rng.usize(..values.len());
            change(&mut values[at], rng);
        }
        Value::Object(members) if !here && !members.is_empty() => {
            let at = rng.usize(..members.len());
            change(members.values_mut().nth(at).unwrap(), rng);
        }
        Value::Array(values) => change_array(values, rng),
        Value::Object(members) => change_object(members, rng),
        Value::Null => {
            *value = [Value::Text("null".into()), Value::Bool(false)][rng.usize(..2)].clone();
        }
        Value::Bool(bool) => *bool = !*bool,
        Value::Integer(digits) if rng.bool() => *value = Value::Text(mem::take(digits)),
        Value::Integer(digits) => {
            let last = digits.pop().unwrap().to_digit(10).unwrap();
            digits.push(char::from_digit((last + 1) % 10, 10).unwrap());
            // `-1` has become `-2`, and `-9` would be `-0`.
            if digits == "-0" {
                *digits = "0".into();
            }
        }
        Value::Double(double) if rng.bool() => *value = Value::Text(format!("{double}")),
        Value::Double(double) => *value = model::number(f64::from_bits(double.to_bits() ^ 1)),
        Value::Text(text) => change_text(text, rng),
    }
    if let Value::Double(double) = value
        && !double.is_finite()
    {
        *value = Value::Null;
    }
}

fn change_text(text: &mut String, rng: &mut Rng) {
    let composed = text.replace("e\u{301}", "é");
    *text = match rng.u8(..6) {
        0 if composed != *text => composed,
        1 => text.replace('é', "e\u{301}"),
        2 => format!("{text} "),
        3 => text.to_lowercase(),
        4 => text.chars().rev().collect(),
        _ => format!("{text}{}", model::CHARS[rng.usize(..model::CHARS.len())]),
    };
}

fn change_array(values: &mut Vec<Value>, rng: &mut Rng) {
    match rng.u8(..4) {
        0 => values.reverse(),
        1 => values.push(Value::Null),
        2 => *values = vec![Value::Array(mem::take(values))],
        _ => drop(values.pop()),
    }
}

fn change_object(members: &mut BTreeMap<String, Value>, rng: &mut Rng) {
    let Some((mut name, value)) = members.pop_last() else {
        members.insert(String::new(), Value::Null);
        return;
    };
    match rng.u8(..4) {
        // The name changes, the value stays.
        0 => {
            change_text(&mut name, rng);
            members.insert(name, value);
        }
        // A member moves into its neighbor.
        1 => match members.values_mut().last() {
            Some(Value::Object(inner)) => drop(inner.insert(name, value)),
            _ => drop(members.insert(name, Value::Array(vec![value]))),
        },
        // Two members swap their values.
        2 => {
            let mut value = value;
            if let Some(other) = members.values_mut().next() {
                mem::swap(other, &mut value);
            }
            members.insert(name, value);
        }
        // One member is gone.
        _ => {}
    }
}

/// Lengths on both sides of where the encoding of lengths grows, and texts that look like tags.
const WORDS: [&str; 12] =
    ["", "a", "b", "ab", "::", "a::b", "b::c", "\0", "\u{1}", "\u{2}a", LONG.split_at(126).0, LONG];
const LONG: &str = concat!(
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde"
);

type Owned = ([Option<String>; 8], String, u8, u8, String);

fn parts(rng: &mut Rng) -> Owned {
    let mut word = || WORDS[rng.usize(..WORDS.len())].to_owned();
    let (tool, source) = (word(), word());
    let mut options = [(); 8].map(|()| Some(word()));
    options.iter_mut().filter(|_| rng.bool()).for_each(|part| *part = None);
    let scope = rng.u8(..3);
    // Parts that another scope does not have are not compared.
    match scope {
        0 => options[7] = None,
        1 => {
            options[..4].fill(None);
            options[7].get_or_insert_default();
        }
        _ => {
            options[..4].fill(None);
            options[7] = None;
        }
    }
    (options, tool, scope, rng.u8(..3), source)
}

fn key((options, tool, scope, kind, source): &Owned) -> Key {
    let [tenant, workspace, session, actor, namespace, action, step, instance] =
        options.each_ref().map(Option::as_deref);
    let digest = Digest::of_bytes(source);
    Key::derive(&KeyParts {
        scope: match scope {
            0 => KeyScope::Session { tenant, workspace, session, actor },
            1 => KeyScope::Instance(instance.unwrap()),
            _ => KeyScope::Global,
        },
        namespace,
        tool,
        action,
        source: match kind {
            0 => KeySource::Caller(source),
            1 => KeySource::Hook(source),
            _ => KeySource::Derived(&digest),
        },
        step,
    })
}

#[test]
fn r4_keys_are_neither_merged_nor_split() {
    let rng = &mut Rng::with_seed(4);
    let (mut merged, mut split) = (0, 0);
    for _ in 0..pairs() {
        let one = parts(rng);
        let mut two = one.clone();
        let other = parts(rng);
        // Neighbors share all parts but one, or have two that are exchanged.
        match rng.usize(..10) {
            at @ 0..7 if one.2 == 0 => two.0[at].clone_from(&other.0[at]),
            7 => (two.1, two.4) = (two.4, two.1),
            8 if one.2 == 0 => two.0.swap(2, 3),
            _ => two = other,
        }
        let same = key(&one) == key(&two);
        merged += u64::from(same && one != two);
        split += u64::from(!same && one == two || key(&one) != key(&one.clone()));
    }
    println!("R4 keys: {} pairs, {merged} merged, {split} split", pairs());
    assert_eq!((merged, split), (0, 0));
}
