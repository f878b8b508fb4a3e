//! Runs the commands of the guides: every `sh` block of a page, one after the other, against a real server.

mod kit;

use std::path::Path;
use std::process::Command;

use kit::{Server, err, installed, out};

/// The `sh` blocks of a page.
fn commands(page: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = std::fs::read_to_string(&path).expect("the page is there");
    let (mut script, mut inside) = (String::new(), false);
    for line in text.lines() {
        match (inside, line) {
            (false, "```sh") => inside = true,
            (true, "```") => inside = false,
            (true, line) => {
                script.push_str(line);
                script.push('\n');
            }
            (false, _) => {}
        }
    }
    assert!(!script.is_empty(), "{page} has commands");
    script
}

fn runs(page: &str) -> Option<String> {
    if !installed(&["bash", "curl", "jq"]) {
        return None;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let store = format!("embedded:{}", directory.path().join("store").display());
    let server = Server::letting_in(directory, store, &["--no-auth", "--webhook-allow", "127.0.0.0/8"]);
    let binaries = Path::new(env!("CARGO_BIN_EXE_ff")).parent().expect("a directory").to_owned();
    let path = std::env::join_paths(
        std::iter::once(binaries).chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
    );
    let done = Command::new("bash")
        .args(["-euo", "pipefail", "-c", &commands(page)])
        .current_dir(server.directory())
        .env("FF_URL", &server.url)
        .env("PATH", path.expect("a path"))
        .output()
        .expect("bash runs");
    assert!(done.status.success(), "{}\n{}", String::from_utf8_lossy(&done.stdout), err(&done));
    Some(out(&done))
}

#[test]
fn the_guide_to_waiting_runs() {
    let Some(said) = runs("waiting.md") else { return };
    for text in [
        "suspended\n",
        "one of: 0 of 2 approvers with approved; signal refused\n",
        "accepted\n",
        "triggered_resume: the execution goes on",
        r#"{"cause":"signal","continuation":{"step":"pay"},"approved_by":["ann","bob"]}"#,
        "\"paid\"\n",
    ] {
        assert!(said.contains(text), "{text} in {said}");
    }
}

#[test]
fn the_guide_to_streams_runs() {
    let Some(said) = runs("streams.md") else { return };
    for text in [
        "{\"next_sequence\":4,\"replayed\":false}\n",
        "[\"bytes\",\"progress\"]\n",
        "\n4\n",
        "closed\n",
        "chapter one\n{\"page\": 2, \"words\": 12345678901234567890}\n",
    ] {
        assert!(said.contains(text), "{text} in {said}");
    }
}

#[test]
fn the_guide_to_flows_runs() {
    let Some(said) = runs("flows.md") else { return };
    for text in [
        "✓ fetch ─┬─▶ ○ words ──┬─▶ · render\n         └─▶ ○ images ─┘\n",
        "{\"value\":{\"body\":\"hello\"},\"outcome\":\"success\"}\n",
        "[1,2]\n",
        "took cache\ntook answer\n[\"completed\",{\"cancelled\":1,\"completed\":2}]\n",
        "took load\n[\"failed\",{\"cancelled\":1,\"failed\":1,\"skipped\":1}]\n",
        "took load\ntook check\n[\"completed\",{\"cancelled\":1,\"completed\":2}]\n",
        "[[\"about\",\"waiting_children\"],[\"index\",\"waiting_children\"]]\n1\n",
        "[\"cancelled\",{\"cancelled\":3,\"completed\":1}]\n",
        "{\"outcome\":\"waiting\",\"open\":2}\n",
        "[\"children\",[\"ann says yes\",\"bob says yes\"]]\n",
        "took build\ntook unit\ntook e2e\ntook ship\ncompleted\n",
    ] {
        assert!(said.contains(text), "{text} in {said}");
    }
}

#[test]
fn the_guide_to_budgets_and_quotas_runs() {
    let Some(said) = runs("budgets.md") else { return };
    for text in [
        "[0,300,700]\nok\nalready_applied\n",
        "[250,450,300]\n[\"hard_breach\",1000]\nok\n[560,50,390]\n",
        "[\"hard_breach\",560,1000,true]\n[null,null,\"suspended\"]\n",
        "[\"budget\",0]\n[\"soft_breach\",1060]\n[1060,500]\n",
        "ok\nok\ntrue\n",
        "nothing\n[\"waiting_for_quota\",\"concurrency\",\"acme\"]\n",
        "[1,1]\nthe second starts\n",
        "ok\ntrue\nnothing\n[150]\nnull\nit starts\n",
    ] {
        assert!(said.contains(text), "{text} in {said}");
    }
}

#[test]
fn the_guide_to_webhooks_runs() {
    if !installed(&["python3"]) {
        return;
    }
    let Some(said) = runs("webhooks.md") else { return };
    for text in [
        "execution.cancelled mail cancelled\n",
        "[\"delivered\",1,204]\n",
        "webhook          delivered after 1 try\n",
        "flow.cancelled report cancelled\n",
        "the old key still checks\n",
        "cannot be reached: the host is a link-local address; a server started with --webhook-allow for its network would send there\n",
    ] {
        assert!(said.contains(text), "{text} in {said}");
    }
}
