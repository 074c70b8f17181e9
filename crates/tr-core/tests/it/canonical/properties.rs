//! What holds for all texts.
use super::model::{self, Value};
use fastrand::Rng;
use proptest::{collection, prelude::*};
use tr_core::canonical::{Digest, Rules, to_string};

fn value() -> impl Strategy<Value = Value> {
    let text = || {
        collection::vec(prop::sample::select(&model::CHARS[..]), 0..12).prop_map(String::from_iter)
    };
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i128>().prop_map(|value| Value::Integer(value.to_string())),
        prop::num::f64::NORMAL.prop_map(model::number),
        prop::num::f64::SUBNORMAL.prop_map(model::number),
        (-99_999_999..99_999_999, -12..12)
            .prop_map(|(n, e)| model::number(f64::from(n) * 10_f64.powi(e))),
        text().prop_map(Value::Text),
        any::<String>().prop_map(Value::Text),
    ];
    leaf.prop_recursive(4, 60, 8, move |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..8).prop_map(Value::Array),
            collection::btree_map(text(), inner, 0..8).prop_map(Value::Object),
        ]
    })
}

fn digest(json: &str) -> Digest {
    Digest::of_params(json, &Rules::exact()).unwrap()
}

proptest! {
    #[test]
    fn every_spelling_of_a_value_has_its_canonical_form(value in value(), seed: u64) {
        let text = value.rendered(&mut Rng::with_seed(seed));
        let canonical = value.canonical();
        for spelling in [&text, &canonical] {
            prop_assert_eq!(to_string(spelling), Ok(canonical.clone()));
        }
        prop_assert_eq!(digest(&text), Digest::of_bytes(canonical));
    }

    #[test]
    fn different_values_differ(one in value(), two in value(), seed: u64) {
        let rng = &mut Rng::with_seed(seed);
        let same = to_string(one.rendered(rng)).unwrap() == to_string(two.rendered(rng)).unwrap();
        prop_assert_eq!(same, one == two);
    }

    /// serde_json reads long decimals, and integers beyond 64 bits, with an error in the last place.
    #[test]
    fn another_reader_reads_the_same_value(value in value(), seed: u64) {
        let text = value.rendered(&mut Rng::with_seed(seed));
        let read = |json: &str| serde_json::from_str::<serde_json::Value>(json).unwrap();
        prop_assert!(alike(&read(&text), &read(&to_string(&text).unwrap())));
    }

    #[test]
    fn doubles_print_as_ryu_js_prints_them(
        value: f64,
        digits in -99_999_999_999_999_999..99_999_999_999_999_999_i64,
        places in 0..18_usize,
    ) {
        prop_assume!(value.is_finite());
        prop_assert_eq!(to_string(format!("{value:e}")).unwrap(), by_double(&format!("{value:e}")));
        let token = format!("{digits:0width$}", width = places + 1 + usize::from(digits < 0));
        let (whole, fraction) = token.split_at(token.len() - places);
        let token = format!("{whole}.{fraction}0");
        let canonical = by_double(&token);
        prop_assert_eq!(to_string(token).unwrap(), canonical);
    }

    #[test]
    fn no_bytes_make_it_panic(
        bytes: Vec<u8>,
        near in "[\\[\\]{}:,\"\\\\u0-9dDeE.+\\- tfn]{0,40}",
    ) {
        for text in [bytes.as_slice(), near.as_bytes()] {
            let ours = to_string(text);
            if let Ok(canonical) = &ours {
                prop_assert_eq!(&to_string(canonical).unwrap(), canonical);
                prop_assert!(serde_json::from_slice::<serde_json::Value>(text).is_ok());
            }
            if let Err(error) = ours {
                prop_assert!(error.offset() <= text.len());
            }
        }
    }
}

fn by_double(token: &str) -> String {
    ryu_js::Buffer::new().format(token.parse::<f64>().unwrap()).to_owned()
}

fn alike(one: &serde_json::Value, two: &serde_json::Value) -> bool {
    use serde_json::Value::{Array, Number, Object};
    match (one, two) {
        (Number(one), Number(two)) => {
            let (one, two) = (one.as_f64().unwrap(), two.as_f64().unwrap());
            (one - two).abs() <= one.abs() * 4.0 * f64::EPSILON + f64::from_bits(4)
        }
        (Array(one), Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| alike(one, two))
        }
        (Object(one), Object(two)) => {
            one.keys().eq(two.keys())
                && one.values().zip(two.values()).all(|(one, two)| alike(one, two))
        }
        _ => one == two,
    }
}
