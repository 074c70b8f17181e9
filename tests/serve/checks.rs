//! Payments whose answer is lost, and that another tool lists.
use crate::front::{Front, Shop, until};
use serde_json::{Value, json};
use std::{fs, process::Command, thread};

/// Pays; by the file beside the ledger it pays and fails, or fails and pays nothing. Lists what was paid, unless that is
/// hidden.
const TOOL: &str = r#"
import json, os, sys, time
folder, what = sys.argv[1:]
has = lambda name: os.path.exists(folder + "/" + name)
asked = json.load(sys.stdin)
if what == "list":
    open(folder + "/asked", "a").write(json.dumps(asked) + "\n")
    if has("garbled"):
        print('{"payments":[]},"x":null')
        sys.exit()
    paid = [json.loads(line) for line in open(folder + "/ledger")] if has("ledger") else []
    print(json.dumps({"payments": [] if has("hidden") else [it for it in paid if it["order"] == asked["order"]]}))
    sys.exit()
if not has("fails"):
    with open(folder + "/ledger", "a") as ledger:
        ledger.write(json.dumps({"order": asked["order"], "cents": asked["cents"], "at": int(time.time() * 1000)}) + "\n")
if has("slow"):
    time.sleep(0.5)
if has("fails") or has("lost"):
    sys.exit(137)
if has("hangs"):
    time.sleep(7654)
print(json.dumps({"paid": asked["order"]}))
"#;

struct Bank {
    shop: Shop,
    front: Front,
    options: Vec<&'static str>,
}

impl Bank {
    fn new(more: &str, options: &[&'static str]) -> Self {
        let shop = Shop::new("");
        let [tool, folder] = [shop.path("tool.py"), shop.path("")];
        fs::write(&tool, TOOL).unwrap();
        let config = format!(
            r#"
            [breaker]
            mode = "disabled"
            [tools.pay]
            effect = "mutating"
            command = ["python3", "{tool}", "{folder}", "pay"]
            [tools.pay.check]
            tool = "list_payments"
            args = {{ order = "/order" }}
            found = "/payments"
            match = {{ order = "/order", cents = "/cents" }}
            not_before = "/at"
            {more}
            [tools.list_payments]
            effect = "read_only"
            command = ["python3", "{tool}", "{folder}", "list"]
            "#,
            tool = tool.display(),
            folder = folder.display(),
        );
        fs::write(shop.path("tools.toml"), config).unwrap();
        let front = shop.open(options);
        Self { shop, front, options: options.to_vec() }
    }

    fn set(&self, name: &str) {
        fs::write(self.shop.path(name), "").unwrap();
    }

    fn unset(&self, name: &str) {
        fs::remove_file(self.shop.path(name)).unwrap();
    }

    fn request(key: Option<&str>) -> Value {
        let mut request =
            json!({ "tool": "pay", "action": "", "params": { "order": "A1", "cents": 500 } });
        if let Some(key) = key {
            request["idempotencyKey"] = key.into();
        }
        request
    }

    fn pay(&self, key: Option<&str>) -> Value {
        self.front.call(&Self::request(key))
    }

    fn paid(&self) -> usize {
        fs::read_to_string(self.shop.path("ledger")).map_or(0, |it| it.lines().count())
    }
}

fn ran(answer: &Value) -> &Value {
    &answer["error"]["ran"]
}

#[test]
fn a_lost_payment_is_found_while_its_caller_waits_and_for_each_repeat() {
    for (options, key) in
        [(&[][..], Some("order-42")), (&["--records", "memory"], Some("order-42")), (&[], None)]
    {
        let bank = Bank::new("", options);
        bank.set("lost");
        let told = bank.pay(key);
        assert_eq!(told["status"], "success", "{told}");
        assert_eq!(told["result"]["settled"]["cents"], 500, "{told}");
        if key.is_some() {
            assert_eq!(bank.pay(key)["result"], told["result"]);
        }
        assert_eq!(bank.paid(), 1);
        assert_eq!(fs::read_to_string(bank.shop.path("asked")).unwrap(), "{\"order\": \"A1\"}\n");
    }
}

#[test]
fn what_is_listed_only_later_settles_the_record_and_so_does_the_next_front() {
    for is_killed in [false, true] {
        let mut bank = Bank::new("", &[]);
        bank.set("hidden");
        bank.set(if is_killed { "hangs" } else { "lost" });
        if is_killed {
            let request = Bank::request(Some("k")).to_string();
            let mut caller = Command::new("curl")
                .args(["-s", "-H", "content-type: application/json", "-d", &request])
                .arg(format!("{}/call", bank.front.at))
                .spawn()
                .unwrap();
            until(|| bank.paid() == 1);
            bank.front.child.kill().unwrap();
            caller.wait().unwrap();
            bank.front = bank.shop.open(&bank.options);
        } else {
            let told = bank.pay(Some("k"));
            assert_eq!(ran(&told), "unknown", "{told}");
        }
        bank.unset("hidden");
        let told = bank.pay(Some("k"));
        assert_eq!(told["result"]["settled"]["order"], "A1", "{told}");
        assert_eq!(bank.paid(), 1);
    }
}

#[test]
fn absence_lets_it_run_again_only_where_that_is_declared() {
    for (more, again) in [("absent_after = \"1s\"", true), ("", false)] {
        let bank = Bank::new(more, &[]);
        bank.set("fails");
        let told = bank.pay(Some("k"));
        assert_eq!(ran(&told) == "no", again, "{told}");
        bank.unset("fails");
        let told = bank.pay(Some("k"));
        assert_eq!(
            (told["status"] == "success", bank.paid()),
            (again, usize::from(again)),
            "{told}"
        );
    }
}

#[test]
fn a_text_that_is_no_json_shows_no_absence() {
    let bank = Bank::new("absent_after = \"1s\"", &[]);
    bank.set("lost");
    bank.set("garbled");
    assert_eq!(ran(&bank.pay(Some("k"))), "unknown");
    assert_eq!(ran(&bank.pay(Some("k"))), "unknown");
    assert_eq!(bank.paid(), 1);
}

/// Callers of one key wait for one payment: they are no two payments of which one could be meant.
#[test]
fn several_callers_of_a_lost_payment_learn_that_it_was_made() {
    let bank = Bank::new("", &[]);
    bank.set("slow");
    bank.set("lost");
    let told: Vec<Value> = thread::scope(|scope| {
        let callers: Vec<_> = (0..3).map(|_| scope.spawn(|| bank.pay(Some("k")))).collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    assert_eq!(bank.paid(), 1);
    for told in &told {
        assert_eq!(told["result"]["settled"]["cents"], 500, "{told}");
    }
}
