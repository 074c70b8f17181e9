//! Records that another user can write or replace are not used.
use super::{Shop, code, mode, paid, pay};
use crate::mcp::client::{BIN, Client, ledger, text};
use serde_json::json;
use std::{
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::Command,
};

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// What a guard says that does not start.
fn refused(shop: &Shop) -> String {
    let mut client = shop.open(&[]);
    assert_eq!(client.wait().code(), Some(1));
    client.stderr()
}

#[test]
fn the_default_folder_is_closed_to_others() {
    let ledger = ledger();
    let folder = ledger.with_extension("state").join("tool-guard");
    fs::create_dir_all(&folder).unwrap();
    set_mode(&folder, 0o777);
    let mut command = Command::new(BIN);
    command.args(["mcp", "--", BIN, "__serve", "--ledger"]).arg(&ledger);
    let mut client = Client::start(command, ledger);
    pay(&mut client, 1, &json!({ "idempotencyKey": "k" }), json!({ "order": "o-1" }));
    assert_eq!(text(&client.answer(1)), "charged order o-1");
    assert_eq!((mode(&folder), mode(&folder.join("records.db"))), (0o700, 0o600));
}

#[test]
fn a_named_file_in_a_folder_that_others_can_write_is_refused() {
    let shop = Shop::new();
    let folder = shop.records.parent().unwrap();
    fs::create_dir_all(folder).unwrap();
    set_mode(folder, 0o777);
    let said = refused(&shop);
    assert!(said.contains("other users can replace files in the folder"), "{said}");
    assert!(said.contains("chmod go-w") && said.contains("--records"), "{said}");
    // In such a folder others cannot replace the file, and can make those beside it.
    set_mode(folder, 0o1777);
    let said = refused(&shop);
    assert!(said.contains("other users can make files in the folder"), "{said}");
    assert!(said.contains("--records") && !said.contains("chmod"), "{said}");
    assert_eq!(fs::read_dir(folder).unwrap().count(), 0, "nothing was made");
    set_mode(folder, 0o755);
    let mut client = shop.open(&[]);
    pay(&mut client, 1, &json!({ "idempotencyKey": "k" }), json!({ "order": "o-1" }));
    assert!(code(&client.answer(1)).is_null());
}

/// Another user, or a program of theirs, was first while the folder was open to them.
#[test]
fn what_others_can_write_beside_the_file_is_refused() {
    for ending in ["-wal", "-shm", "-journal", ".guards"] {
        let shop = Shop::new();
        let folder = shop.records.parent().unwrap();
        fs::create_dir_all(folder).unwrap();
        let left = folder.join(format!("calls.db{ending}"));
        match ending {
            ".guards" => fs::create_dir(&left).unwrap(),
            _ => fs::write(&left, "").unwrap(),
        }
        set_mode(&left, 0o777);
        let said = refused(&shop);
        let named = format!("calls.db{ending} is not this user's alone");
        assert!(said.contains(&named) && said.contains("ls -ld"), "{said}");
        // A link leads where its maker wants.
        fs::rename(&left, folder.join("elsewhere")).unwrap();
        set_mode(&folder.join("elsewhere"), 0o700);
        symlink("elsewhere", &left).unwrap();
        assert!(refused(&shop).contains(&named));
        assert!(!shop.records.exists(), "nothing was made");
    }
}

#[test]
fn a_named_file_that_others_can_write_is_refused() {
    let shop = Shop::new();
    drop({
        let mut client = shop.open(&[]);
        paid(&mut client, 1, &json!({ "idempotencyKey": "k" }), json!({ "order": "o-1" }));
        client
    });
    for open in [0o666, 0o606] {
        set_mode(&shop.records, open);
        let said = refused(&shop);
        assert!(said.contains("other users can write the file: chmod 600"), "{said}");
    }
}
