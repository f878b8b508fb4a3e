//! What servers with and without a log can guarantee.

use ff_backend_valkey::{Durability, Options, ValkeyHost};
use ff_script::{Host, HostError};
use ff_testkit::{Aof, ClusterOptions, Flavour, Options as ServerOptions, TestCluster, TestServer};

use crate::kit::*;

fn with(url: &str, durability: Option<Durability>) -> Options {
    Options { durability, ..options(url) }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_log_is_refused_unless_told() {
    let server = server(Aof::None);
    match ValkeyHost::connect(with(&server.url(), None)).await {
        Err(HostError::Refused { detail }) => assert!(detail.contains("appendonly"), "{detail}"),
        other => panic!("{other:?}"),
    }
    let host = ValkeyHost::connect(with(&server.url(), Some(Durability::None))).await.unwrap();
    assert_eq!(host.facts().durability, "none");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_default_follows_the_log() {
    for (aof, expected, loss) in [(Aof::Always, "fsync", "none"), (Aof::EverySecond, "relaxed", "up to 2 s")] {
        let server = server(aof);
        let facts = connect(&server.url()).await.facts();
        assert_eq!(facts.durability, expected);
        assert!(facts.loss_window.starts_with(loss), "{}", facts.loss_window);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fsync_on_everysec_confirms_calls_together() {
    for binary in flavours() {
        let server = server_of(&binary, Aof::EverySecond);
        let outcome = ValkeyHost::connect(with(&server.url(), Some(Durability::Fsync))).await;
        if binary.flavour == Flavour::Redis && binary.version().unwrap().starts_with("7.0") {
            assert!(matches!(outcome, Err(HostError::Refused { .. })), "no WAITAOF in 7.0: {outcome:?}");
            continue;
        }
        let host = outcome.unwrap();
        assert_eq!(host.facts().durability, "fsync");
        let calls = (0..500).map(|n| {
            let host = &host;
            async move { count(host, route(n % 3), &n.to_string()).await.unwrap() }
        });
        futures::future::join_all(calls).await;
        let stats: String = server.command(&["INFO", "commandstats"]).unwrap();
        let waits = stats.lines().find(|line| line.starts_with("cmdstat_waitaof:calls=")).unwrap();
        let waits: u32 = waits.split(['=', ',']).nth(1).unwrap().parse().unwrap();
        assert!((1..=60).contains(&waits), "{waits} confirmations for 500 calls");
        // A flush of the functions and a restart must also work through the confirming connections.
        server.command::<String>(&["FUNCTION", "FLUSH", "SYNC"]).unwrap();
        count(&host, route(0), "again").await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn confirmed_calls_survive_a_restart_of_the_server() {
    let mut server = server(Aof::EverySecond);
    let host = ValkeyHost::connect(with(&server.url(), Some(Durability::Fsync))).await.unwrap();
    assert_eq!(count(&host, route(0), "a").await.unwrap(), 1);
    server.restart().unwrap();
    assert_eq!(count(&host, route(0), "b").await.unwrap(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicated_needs_a_replica_and_waits_for_it() {
    let primary = server(Aof::EverySecond);
    let outcome = ValkeyHost::connect(with(&primary.url(), Some(Durability::Replicated))).await;
    assert!(matches!(outcome, Err(HostError::Refused { .. })), "{outcome:?}");
    let follow = vec!["--replicaof".into(), "127.0.0.1".into(), primary.port().to_string()];
    let replica = TestServer::start(ServerOptions { extra: follow, ..Default::default() }).unwrap();
    while !replica.command::<String>(&["INFO", "replication"]).unwrap().contains("master_link_status:up") {
        tokio::task::yield_now().await;
    }
    let host = ValkeyHost::connect(with(&primary.url(), Some(Durability::Replicated))).await.unwrap();
    count(&host, route(0), "a").await.unwrap();
    let copy: String = replica.command(&["HGET", "ff:count:{p:0}", "n"]).unwrap();
    assert_eq!(copy, "1", "the answer came after the replica had it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hides_its_configuration_is_assumed_to_flush_every_second() {
    let server = server(Aof::EverySecond);
    server.command::<String>(&["ACL", "SETUSER", "ann", "on", ">pw", "~*", "&*", "+@all", "-config"]).unwrap();
    let host = connect(&server.url().replace("valkey://", "valkey://ann:pw@")).await;
    assert_eq!(host.facts().durability, "relaxed");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_url_must_name_the_kind_of_store() {
    let single = server(Aof::EverySecond);
    match ValkeyHost::connect(options(&format!("valkey-cluster://{}", single.address()))).await {
        Err(HostError::Refused { detail }) => assert!(detail.contains("valkey://"), "{detail}"),
        other => panic!("{other:?}"),
    }
    let cluster = TestCluster::start(ClusterOptions::default()).unwrap();
    match ValkeyHost::connect(options(&cluster.members[0].server.url())).await {
        Err(HostError::Refused { detail }) => {
            assert!(detail.contains("valkey-cluster://"), "{detail}")
        }
        other => panic!("{other:?}"),
    }
}
