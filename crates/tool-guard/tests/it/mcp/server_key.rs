//! Tools that recognize a repeat by a key among their arguments.
use super::{
    client::{ledger, text, until},
    shop::Sells,
};
use serde_json::{Value, json};
use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::PathBuf,
};

/// Pays once for each key, and logs it. Of a payment with the file `lost` beside the ledger it says that it may have run;
/// the file `once` is for one payment. With the file `refused` it refuses all. With the file `silent` it answers only the
/// first attempt, once the file `now` is there: that one did not run.
const SERVER: &str = r#"while read -r line; do
id=$(printf %s "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
key=$(printf %s "$line" | sed -n 's/.*"idempotency_key":"\([^"]*\)".*/\1/p')
case "$line" in
*tools/call*)
    echo "$key" >> "$LEDGER"
    if [ -e "$LEDGER.silent" ]; then
        mkdir "$LEDGER.first" 2>/dev/null || continue
        (until [ -e "$LEDGER.now" ]; do sleep 0.02; done
        echo '{"jsonrpc":"2.0","id":'$id',"result":{"_meta":{"tool-reliability/error":{"ran":"no"}},"content":[{"type":"text","text":"a request with this key is in progress"}],"isError":true}}'
        mkdir "$LEDGER.said") &
    elif [ -e "$LEDGER.refused" ] && ! [ -e "$LEDGER.once" ]; then
        echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"HTTP 401: unauthorized"}],"isError":true}}'
    elif [ -e "$LEDGER.lost" ] || rm "$LEDGER.once" 2>/dev/null; then
        echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"HTTP 503: lost"}],"isError":true}}'
    else
        echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[{"type":"text","text":"paid"}]}}'
    fi;;
esac
done"#;

struct Keyed;

impl Sells for Keyed {
    const SERVER: &str = SERVER;
}

type Shop = super::shop::Shop<Keyed>;

impl Shop {
    fn new(more: &str, options: &[&str]) -> Self {
        let declared = format!("[tools.pay.keys]\nserver_key = \"/idempotency_key\"\n{more}\n");
        Self::open(&declared, options)
    }

    /// What the client is told of a payment with this key, under these members of its `_meta`.
    fn pay(&mut self, id: u32, key: Option<&str>, meta: Value) -> String {
        let mut arguments = json!({ "order": 42 });
        if let Some(key) = key {
            arguments["idempotency_key"] = key.into();
        }
        let params = json!({ "name": "pay", "arguments": arguments, "_meta": meta });
        self.client.request(id, "tools/call", params);
        text(&self.client.answer(id))
    }

    /// The keys that the server has got.
    fn keys(&self) -> Vec<String> {
        fs::read_to_string(&self.ledger).unwrap().lines().map(str::to_owned).collect()
    }
}

/// A new id of the model's.
fn by_model(id: u32) -> Value {
    json!({ "claudecode/toolUseId": format!("toolu_01A09q90qw90lq9178{id:05}c") })
}

#[test]
fn a_key_that_is_absent_is_made_and_one_that_is_there_stays() {
    let mut shop = Shop::new("", &[]);
    for id in 1..=2 {
        assert_eq!(shop.pay(id, None, by_model(id)), "paid");
    }
    assert_eq!(shop.pay(3, Some("mine"), by_model(3)), "paid");
    let keys = shop.keys();
    assert_eq!((keys[0].len(), &*keys[2]), (36, "mine"));
    assert_ne!(keys[0], keys[1]);
}

#[test]
fn a_call_of_unknown_outcome_is_repeated_with_its_key() {
    for meta in [json!({}), by_model(1), json!({ "idempotencyKey": "order-42" })] {
        let mut shop = Shop::new("", &[]);
        shop.set("once");
        assert_eq!(shop.pay(1, None, meta), "paid");
        let keys = shop.keys();
        assert_eq!(keys.len(), 2);
        assert_eq!(keys[0], keys[1]);
    }
}

/// The order names the payment: whatever the model writes as its key, the server gets the first one.
#[test]
fn a_model_that_asks_again_repeats_the_call_of_unknown_outcome_and_then_gets_its_receipt() {
    for (records, restarts) in [(&["--records", "memory"][..], false), (&[], false), (&[], true)] {
        let mut shop = Shop::new("identity = [\"/order\"]", records);
        shop.set("lost");
        assert!(shop.pay(1, Some("one"), by_model(1)).contains("lost"));
        shop.unset("lost");
        if restarts {
            shop.again();
        }
        assert_eq!(shop.pay(2, Some("two"), by_model(2)), "paid");
        let runs = shop.keys().len();
        assert_eq!(shop.pay(3, Some("three"), by_model(3)), "paid");
        let keys = shop.keys();
        assert_eq!((keys.len(), keys.iter().all(|key| key == "one")), (runs, true), "{keys:?}");
    }
}

/// Nothing tells a repeat from a second payment that is meant.
#[test]
fn without_an_identity_an_equal_call_under_another_id_is_refused() {
    for records in [&["--records", "memory"][..], &[]] {
        let mut shop = Shop::new("", records);
        shop.set("lost");
        assert!(shop.pay(1, None, by_model(1)).contains("lost"));
        shop.unset("lost");
        let runs = shop.keys().len();
        for id in 2..=3 {
            let said = shop.pay(id, None, by_model(id));
            assert!(said.contains("may have run"), "{said}");
        }
        assert_eq!(shop.keys().len(), runs);
        // By its own id the call goes on, and then the next one is another.
        assert_eq!([1, 1, 4].map(|id| shop.pay(id, None, by_model(id))), ["paid"; 3]);
        let keys = shop.keys();
        assert_eq!(
            (keys.len(), keys[0] == keys[runs], keys[0] == keys[runs + 1]),
            (runs + 2, true, false)
        );
    }
}

/// A refusal of the repeat says nothing of the payment before it.
#[test]
fn a_repeat_that_is_refused_leaves_the_call_as_unknown_as_it_was() {
    let mut shop = Shop::new("", &[]);
    let meta = || json!({ "idempotencyKey": "order-42" });
    shop.set("lost");
    assert!(shop.pay(1, None, meta()).contains("lost"));
    shop.unset("lost");
    shop.set("refused");
    let said = shop.pay(2, None, meta());
    assert!(said.contains("401") && said.contains("[MAY HAVE RUN] This was a repeat"), "{said}");
    shop.unset("refused");
    shop.again();
    assert_eq!(shop.pay(3, None, meta()), "paid");
    let mut keys = shop.keys();
    keys.dedup();
    assert_eq!(keys.len(), 1, "{keys:?}");
}

/// The same within one call: the first attempt may have run.
#[test]
fn an_attempt_that_did_not_run_leaves_the_one_before_it_unknown() {
    let mut shop = Shop::new("", &[]);
    let meta = || json!({ "idempotencyKey": "order-42" });
    shop.set("once");
    shop.set("refused");
    let said = shop.pay(1, None, meta());
    shop.unset("refused");
    assert_eq!(shop.pay(2, None, meta()), "paid");
    let mut keys = shop.keys();
    assert_eq!(keys.len(), 3, "{said} {keys:?}");
    keys.dedup();
    assert_eq!(keys.len(), 1, "{keys:?}");
}

/// Another attempt may have run.
#[test]
fn a_late_failure_of_one_attempt_leaves_the_call_as_unknown_as_it_was() {
    for more in ["", "identity = [\"/order\"]"] {
        let mut shop = Shop::new(more, &["--timeout", "300ms"]);
        shop.set("silent");
        let said = shop.pay(1, None, by_model(1));
        assert!(said.contains("Tool timeout"), "{said}");
        assert!(shop.keys().len() > 1, "{:?}", shop.keys());
        shop.unset("silent");
        shop.set("now");
        until("the first attempt is answered", || {
            shop.ledger.with_extension("said").exists().then_some(())
        });
        let said = shop.pay(2, None, by_model(2));
        let is_same = !more.is_empty();
        assert!(said.contains(if is_same { "paid" } else { "this one did not run" }), "{said}");
        assert_eq!(shop.pay(3, None, by_model(1)), "paid");
        let mut keys = shop.keys();
        keys.dedup();
        assert_eq!(keys.len(), 1);
    }
}

/// Where the first attempt may have run, a failure of the next is no end.
#[test]
fn a_failure_behind_an_attempt_that_may_have_run_says_so() {
    for more in ["", "identity = [\"/order\"]"] {
        let mut shop = Shop::new(more, &[]);
        shop.set("once");
        shop.set("refused");
        let said = shop.pay(1, None, by_model(1));
        assert!(said.contains("401") && said.contains("[MAY HAVE RUN]"), "{said}");
    }
}

/// Also if the success is that of a repeat.
#[test]
fn an_equal_call_gets_the_answer_of_a_repeat_where_the_tool_declares_that() {
    let mut shop = Shop::new("late = \"60s\"", &[]);
    shop.set("lost");
    shop.pay(1, None, by_model(1));
    shop.unset("lost");
    assert_eq!(shop.pay(2, None, by_model(1)), "paid");
    let paid = shop.keys().len();
    let said = shop.pay(3, None, by_model(2));
    assert!(said.contains("[REPEATED]"), "{said}");
    assert_eq!(shop.keys().len(), paid);
}

#[test]
fn a_key_that_is_a_number_stays_one() {
    let mut shop = Shop::new("", &[]);
    for id in 1..=2 {
        let arguments = json!({ "order": 42, "idempotency_key": 12345 });
        let params = json!({ "name": "pay", "arguments": arguments, "_meta": by_model(id) });
        shop.client.request(id, "tools/call", params);
        assert_eq!(text(&shop.client.answer(id)), "paid");
    }
    // The server looks for a text.
    assert_eq!(shop.keys(), ["", ""]);
}

#[test]
fn a_repeat_under_the_same_id_has_the_same_key_also_of_a_guard_that_was_started_again() {
    for restarts in [false, true] {
        let mut shop = Shop::new("", &[]);
        shop.set("lost");
        let meta = || json!({ "idempotencyKey": "order-42" });
        assert!(shop.pay(1, None, meta()).contains("lost"));
        shop.unset("lost");
        if restarts {
            shop.again();
        }
        assert_eq!(shop.pay(2, Some("another"), meta()), "paid");
        assert_eq!(shop.pay(3, None, meta()), "paid");
        let mut keys = shop.keys();
        let runs = keys.len();
        keys.dedup();
        assert_eq!(keys.len(), 1, "{keys:?}");
        // The last one was replayed.
        assert_eq!(shop.pay(4, None, meta()), "paid");
        assert_eq!(shop.keys().len(), runs);
    }
}

/// Of any letters; the arguments' schema may ask for it.
#[test]
fn a_key_comes_back_as_it_was_and_counts_as_an_argument() {
    const ODD: &str = " order 42:\u{202e} \u{85}";
    let schema = "[tools.pay.input_schema]\nrequired = [\"idempotency_key\"]";
    let mut shop = Shop::new(schema, &[]);
    let meta = || json!({ "idempotencyKey": "order-42" });
    shop.set("lost");
    assert!(shop.pay(1, Some(ODD), meta()).contains("lost"));
    shop.unset("lost");
    shop.again();
    assert_eq!(shop.pay(2, None, meta()), "paid");
    assert!(shop.keys().iter().all(|key| key == ODD), "{:?}", shop.keys());
}

#[test]
fn after_the_time_that_the_server_knows_a_key_nothing_is_repeated() {
    let mut shop = Shop::new("server_key_ttl = \"1ms\"", &[]);
    shop.set("lost");
    assert!(shop.pay(1, None, by_model(1)).contains("lost"));
    let runs = shop.keys().len();
    let said = shop.pay(2, None, by_model(2));
    assert!(said.contains("may have run"), "{said}");
    assert_eq!(shop.keys().len(), runs);
}

#[test]
fn a_key_is_sealed_with_its_record() {
    let file = ledger().with_extension("key");
    fs::write(&file, "07".repeat(32)).unwrap();
    fs::set_permissions(&file, Permissions::from_mode(0o600)).unwrap();
    let mut shop = Shop::new("", &["--records-key-file", file.to_str().unwrap()]);
    shop.set("lost");
    assert!(shop.pay(1, Some("order-secret"), by_model(1)).contains("lost"));
    shop.unset("lost");
    shop.again();
    let state = shop.client.state();
    let holds =
        |path: PathBuf| fs::read(path).unwrap().windows(12).any(|bytes| bytes == b"order-secret");
    let records = fs::read_dir(state.join("tool-guard")).unwrap();
    assert!(!records.map(|it| it.unwrap().path()).filter(|it| it.is_file()).any(holds));
    assert_eq!(shop.pay(1, None, by_model(1)), "paid");
    assert!(shop.keys().iter().all(|key| key == "order-secret"));
}
