//! Commands that go on while their server is away, and carry on when it is back.

use crate::kit::{Server, out};

#[test]
fn who_waits_or_watches_goes_on_when_the_server_is_back() {
    let server = Server::start();
    let submitted = || out(&server.ff(&["submit", "--kind", "k", "-o", "ids"])).trim().to_owned();
    let (ended, open) = (submitted(), submitted());
    out(&server.ff(&["cancel", &ended]));
    let waiting = server.going(&["result", &ended, &open, "--wait"]);
    let watching = server.going(&["list", "--watch", "--state", "cancelled", "-o", "ids"]);
    let top = server.going(&["top", "--every-ms", "200"]);
    let following = server.going(&["events", "--follow", "--after", "start", "--types", "execution.cancelled"]);
    waiting.complains(&format!("{ended} ended cancelled"));
    watching.says(&ended);
    following.says(&ended);
    top.says("per second");

    let url = server.url.clone();
    let (directory, store) = server.stop();
    for command in [&waiting, &watching, &following, &top] {
        command.complains("the server is away");
    }
    let server = Server::instead_of(&url, directory, store);
    out(&server.ff(&["cancel", &open]));
    waiting.complains(&format!("{open} ended cancelled"));
    watching.says(&open);
    following.says(&open);
    top.says("per second");
    assert_eq!(following.end("-INT"), Some(0));
    assert_eq!(waiting.ended(), Some(1), "its outcome is not success");
    assert_eq!(watching.end("-INT"), Some(0));
    assert_eq!(top.end("-INT"), Some(0));
}

#[test]
fn a_server_that_never_answered_is_not_waited_for() {
    for args in [vec!["result", "0192a7c4-5b1e-7abc-8def-00112233aabb", "--wait"], vec!["list", "--watch"], vec!["top"]]
    {
        let args: Vec<&str> = args.into_iter().chain(["--url", "http://127.0.0.1:9"]).collect();
        let refused = crate::kit::ff(&args);
        assert_eq!(refused.status.code(), Some(1), "{args:?}");
        assert!(
            crate::kit::err(&refused).contains("no server answers at http://127.0.0.1:9"),
            "{}",
            crate::kit::err(&refused)
        );
    }
}
