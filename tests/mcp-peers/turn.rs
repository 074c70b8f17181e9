//! `tool-guard turn` over npm's server-filesystem: results flow from call to call.
use crate::peer::{Mark, Server, Way, variable};
use serde_json::{Value, json};
use std::{fs, path::PathBuf, process::Command};

#[test]
fn a_turn_reads_writes_and_does_without_what_is_missing() {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("turn");
    let _ = fs::remove_dir_all(&root);
    let folder = root.join("work");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a.txt"), "hello").unwrap();
    let path = |name: &str| folder.join(name);
    let nothing = json!({ "content": [{ "type": "text", "text": "nothing" }] });
    let plan = json!({ "calls": [
        { "name": "there", "tool": "read_text_file", "params": { "path": path("a.txt") } },
        { "name": "gone", "tool": "read_text_file", "params": { "path": path("b.txt") }, "default_value": nothing },
        { "name": "copy", "tool": "write_file", "params": {
            "path": path("c.txt"), "content": { "$from": "there", "at": "/content/0/text" } } },
        { "name": "note", "tool": "write_file", "depends_on": ["copy"], "params": {
            "path": path("d.txt"), "content": { "$from": "gone", "at": "/content/0/text" } } },
    ] });
    let (plan_file, results) = (root.join("plan.json"), root.join("results.json"));
    fs::write(&plan_file, plan.to_string()).unwrap();
    let mark = Mark::new();
    let server = Server::filesystem([folder.clone()]).argv(Way::Direct, &mark);
    let output = Command::new(variable("TR_TOOL_GUARD"))
        .arg("turn")
        .arg(&plan_file)
        .arg("--results")
        .arg(&results)
        .arg("--")
        .args(server)
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(3), "{shown}{}", String::from_utf8_lossy(&output.stderr));
    assert!(shown.contains("Completed there, copy and note, but gone failed"), "{shown}");
    assert!(shown.contains("Used default value for note"), "{shown}");
    assert_eq!(fs::read_to_string(path("c.txt")).unwrap(), "hello");
    assert_eq!(fs::read_to_string(path("d.txt")).unwrap(), "nothing");
    let results: Value = serde_json::from_str(&fs::read_to_string(results).unwrap()).unwrap();
    assert_eq!(results["there"]["content"][0]["text"], "hello");
    mark.assert_gone();
}
