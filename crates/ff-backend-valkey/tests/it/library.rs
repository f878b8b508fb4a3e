//! Loading: first use, loss, races, older and newer libraries.

use std::time::Duration;

use ff_backend_valkey::{Options, ValkeyHost};
use ff_script::{HostError, Library};
use ff_testkit::Aof;

use crate::kit::*;

#[tokio::test(flavor = "multi_thread")]
async fn the_library_is_loaded_again_after_a_flush_during_load() {
    for binary in flavours() {
        let server = server_of(&binary, Aof::EverySecond);
        let host = connect(&server.url()).await;
        let routes: Vec<_> = (0..5).map(route).collect();
        let calls = load(&host, 8, &routes, Duration::from_millis(1));
        for _ in 0..20 {
            calls.go_on().await;
            server.command::<String>(&["FUNCTION", "FLUSH", "SYNC"]).unwrap();
        }
        for (route, asked) in calls.stop().await {
            assert_eq!(read_count(&host, route).await, asked, "{route}");
        }
        let leftovers: Vec<String> = server.command(&["KEYS", "*library-load*"]).unwrap();
        assert!(leftovers.is_empty(), "{leftovers:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_library_is_loaded_again_after_an_empty_restart() {
    let mut server = server(Aof::None);
    let options = Options { durability: Some(ff_backend_valkey::Durability::None), ..options(&server.url()) };
    let host = ValkeyHost::connect(options).await.unwrap();
    count(&host, route(0), "a").await.unwrap();
    server.restart().unwrap();
    assert_eq!(count(&host, route(0), "b").await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_newer_library_replaces_an_older_one_and_never_the_other_way_round() {
    let server = server(Aof::EverySecond);
    let with = |number, hash| Options { library: library(number, hash), ..options(&server.url()) };
    let loaded = || async {
        let host = ValkeyHost::connect(with(0, "none")).await.unwrap();
        let reply = read(&host, route(0), "ff_library", &[]).await.unwrap();
        (field(&reply, "number").as_u64().unwrap(), field(&reply, "hash").as_str().unwrap().to_owned())
    };
    ValkeyHost::connect(with(2, "bb")).await.unwrap();
    assert_eq!(loaded().await, (2, "bb".into()));
    ValkeyHost::connect(with(1, "aa")).await.unwrap();
    assert_eq!(loaded().await, (2, "bb".into()), "an older program uses the newer library");
    ValkeyHost::connect(with(3, "cc")).await.unwrap();
    assert_eq!(loaded().await, (3, "cc".into()));
    match ValkeyHost::connect(with(3, "dd")).await {
        Err(HostError::Refused { detail }) => {
            assert!(detail.contains("cc") && detail.contains("dd"), "{detail}")
        }
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_load_at_the_same_time_end_with_the_highest_number() {
    for binary in flavours() {
        let server = server_of(&binary, Aof::None);
        for round in 0..10 {
            server.command::<String>(&["FUNCTION", "FLUSH", "SYNC"]).unwrap();
            let hosts = (1..=8).map(|number| {
                let hash = format!("hash{number}");
                ValkeyHost::connect(Options {
                    library: library(number, &hash),
                    durability: Some(ff_backend_valkey::Durability::None),
                    ..options(&server.url())
                })
            });
            let hosts: Vec<_> = futures::future::join_all(hosts).await.into_iter().map(Result::unwrap).collect();
            let reply = read(&hosts[0], route(0), "ff_library", &[]).await.unwrap();
            assert_eq!(field(&reply, "number").as_u64(), Some(8), "round {round}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_the_server_will_not_load_is_refused() {
    let server = server(Aof::EverySecond);
    let mut options = options(&server.url());
    options.library.text = "#!lua name=broken\nthis is no lua".into();
    match ValkeyHost::connect(options).await {
        Err(HostError::Refused { detail }) => assert!(detail.contains("ff_host_test"), "{detail}"),
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_shipped_library_loads_on_every_flavour() {
    for binary in flavours() {
        let server = server_of(&binary, Aof::EverySecond);
        for library in [Library::shipped(), Library::shipped()] {
            let host =
                ValkeyHost::connect(Options { library: library.clone(), ..options(&server.url()) }).await.unwrap();
            let reply = read(&host, route(0), "ff_library", &[]).await.unwrap();
            assert_eq!(field(&reply, "number").as_u64(), Some(library.number.into()));
            assert_eq!(field(&reply, "hash").as_str(), Some(library.hash.as_str()));
        }
    }
}
