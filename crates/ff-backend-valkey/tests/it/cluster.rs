//! A cluster: every slot, moving slots, failovers, killed nodes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use ff_backend_valkey::{Options, ValkeyHost};
use ff_script::{Host, HostError, Route, ScanCursor, WakeUp};
use ff_testkit::{ClusterOptions, TestCluster};

use crate::kit::*;

fn cluster() -> TestCluster {
    TestCluster::start(ClusterOptions::default()).unwrap()
}

fn slot_of(cluster: &TestCluster, route: Route) -> u16 {
    cluster.members[0].server.command(&["CLUSTER", "KEYSLOT", &route.to_string()]).unwrap()
}

/// The owner of a route, and another primary.
fn owner_and_other(cluster: &TestCluster, route: Route) -> (usize, usize) {
    let owner = cluster.owner(slot_of(cluster, route)).unwrap();
    (owner, (owner + 1) % cluster.primaries().len())
}

fn all_routes() -> Vec<Route> {
    let mut routes: Vec<Route> = (0..256).map(Route::Execution).collect();
    routes.extend((0..32).flat_map(|n| [Route::Budget(n), Route::Quota(n), Route::Schedule(n)]));
    routes.push(Route::Fleet);
    routes.sort();
    routes
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_is_served_by_its_primary() {
    for binary in flavours() {
        let cluster = TestCluster::start(ClusterOptions { binary: Some(binary), ..Default::default() }).unwrap();
        let host = connect(&cluster.url()).await;
        assert_eq!(host.facts().kind, "valkey-cluster");
        for route in all_routes() {
            assert_eq!(count(&host, route, "a").await.unwrap(), 1, "{route}");
        }
        let mut shares = Vec::new();
        for member in cluster.primaries() {
            shares.push(member.server.command::<u64>(&["DBSIZE"]).unwrap());
        }
        assert_eq!(shares.iter().sum::<u64>(), 2 * all_routes().len() as u64);
        assert!(shares.iter().all(|share| *share > 50), "{shares:?}");
        assert_eq!(host.dump().await.unwrap().len(), 2 * all_routes().len());
        let mut keys = BTreeSet::new();
        let mut cursor = ScanCursor::Start;
        while cursor != ScanCursor::End {
            let page = host.scan(cursor, 100).await.unwrap();
            keys.extend(page.keys);
            cursor = page.next;
        }
        assert_eq!(keys.len(), 2 * all_routes().len());
        assert!(host.store_commands().await.unwrap() > 4 * all_routes().len() as u64);
        let envelope = call(&host, echo(None, false)).await;
        assert_eq!(field(&envelope, "_guard").as_bool(), Some(true), "slots move in a cluster");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_known_node_is_enough_and_lost_functions_come_back_on_every_primary() {
    let cluster = cluster();
    let host = connect(&format!("valkey-cluster://127.0.0.1:1,{}", cluster.members[1].server.address())).await;
    let routes: Vec<Route> = (0..100).map(route).collect();
    let calls = load(&host, 1, &routes, Duration::from_millis(1));
    for n in 0..15 {
        calls.go_on().await;
        cluster.members[n % 3].server.command::<String>(&["FUNCTION", "FLUSH", "SYNC"]).unwrap();
    }
    for (route, asked) in calls.stop().await {
        assert_eq!(read_count(&host, route).await, asked, "{route}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_to_a_moving_slot_waits_until_it_has_moved() {
    for binary in flavours() {
        let cluster = TestCluster::start(ClusterOptions { binary: Some(binary), ..Default::default() }).unwrap();
        let host = connect(&cluster.url()).await;
        for n in 0..20 {
            count(&host, route(5), &format!("before {n}")).await.unwrap();
        }
        let (from, to) = owner_and_other(&cluster, route(5));
        let migration = cluster.migrate_slot(slot_of(&cluster, route(5)), from, to).unwrap();
        for _ in 0..10 {
            assert!(migration.move_one().unwrap());
        }
        let during = tokio::spawn({
            let host = Arc::clone(&host);
            async move { tokio::join!(count(&host, route(5), "during"), read_count(&host, route(5))) }
        });
        tokio::time::sleep(Duration::from_millis(400)).await;
        assert!(!during.is_finished());
        migration.finish().unwrap();
        let (counted, read) = during.await.unwrap();
        assert_eq!(counted.unwrap(), 21, "it saw the whole partition, not the half that had moved");
        assert!((20..=21).contains(&read), "{read}");
        assert_eq!(cluster.owner(slot_of(&cluster, route(5))).unwrap(), to);
        assert_eq!(count(&host, route(5), "after").await.unwrap(), 22);
    }
}

/// While its routing key is in the store, a function runs at the old owner until that key has moved. The guard exists
/// for this case. Whenever no call is in flight, the last write of both keys must be the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_guarded_write_is_never_torn_by_a_moving_slot() {
    for binary in flavours() {
        let cluster = TestCluster::start(ClusterOptions { binary: Some(binary), ..Default::default() }).unwrap();
        let patient = connect(&cluster.url()).await;
        let hasty = Options { deadline: Duration::from_millis(300), ..options(&cluster.url()) };
        let hasty = ValkeyHost::connect(hasty).await.unwrap();
        let (from, to) = owner_and_other(&cluster, route(5));
        let source = &cluster.members[from].server;
        source.command::<String>(&["SET", "ff:{p:5}", "1"]).unwrap();
        write(&patient, route(5), "ff_pair", &[("value", "old")]).await.unwrap();

        let migration = cluster.migrate_slot(slot_of(&cluster, route(5)), from, to).unwrap();
        migration.move_key(b"ff:two:{p:5}").unwrap();
        match write(&hasty, route(5), "ff_pair", &[("value", "new")]).await {
            Err(HostError::Unavailable { .. }) => {}
            other => panic!("{other:?}"),
        }
        let kept: String = source.command(&["HGET", "ff:one:{p:5}", "v"]).unwrap();
        assert_eq!(kept, "old", "nothing was written before the refusal");

        let written = tokio::spawn({
            let host = Arc::clone(&patient);
            async move { write(&host, route(5), "ff_pair", &[("value", "new")]).await }
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        migration.finish().unwrap();
        written.await.unwrap().unwrap();
        for key in ["ff:one:{p:5}", "ff:two:{p:5}"] {
            let value: String = cluster.members[to].server.command(&["HGET", key, "v"]).unwrap();
            assert_eq!(value, "new", "{key}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_request_counts_once_while_slots_move_back_and_forth() {
    let cluster = cluster();
    let host = connect(&cluster.url()).await;
    let routes = [route(1), route(2), route(3)];
    let calls = load(&host, 8, &routes, Duration::from_millis(2));
    for round in 0..6 {
        let route = routes[round % 3];
        let (from, to) = owner_and_other(&cluster, route);
        let migration = cluster.migrate_slot(slot_of(&cluster, route), from, to).unwrap();
        tokio::time::sleep(Duration::from_millis(30)).await;
        migration.finish().unwrap();
        calls.go_on().await;
    }
    for (route, asked) in calls.stop().await {
        assert_eq!(read_count(&host, route).await, asked, "{route}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn subscriptions_cover_every_slot_and_follow_one_that_moves() {
    for binary in flavours() {
        let cluster = TestCluster::start(ClusterOptions { binary: Some(binary), ..Default::default() }).unwrap();
        let (speaker, listener) = (connect(&cluster.url()).await, connect(&cluster.url()).await);
        let mut watch = listener.watch();
        listener.subscribe(&all_routes()).await.unwrap();
        let mut subscribed = BTreeSet::new();
        while subscribed.len() < all_routes().len() {
            match next(&mut watch).await {
                WakeUp::Resubscribed { routes } => subscribed.extend(routes),
                other => panic!("{other:?}"),
            }
        }
        for route in all_routes() {
            write(&speaker, route, "ff_announce", &[("payload", &route.to_string())]).await.unwrap();
            assert_eq!(next_message(&mut watch).await, (route, route.to_string().into_bytes()));
        }
        for _ in 0..2 {
            let (from, to) = owner_and_other(&cluster, route(9));
            cluster.migrate_slot(slot_of(&cluster, route(9)), from, to).unwrap().finish().unwrap();
            loop {
                match next(&mut watch).await {
                    WakeUp::Resubscribed { routes } if routes.contains(&route(9)) => break,
                    _ => {}
                }
            }
            write(&speaker, route(9), "ff_announce", &[("payload", "moved")]).await.unwrap();
            assert_eq!(next_message(&mut watch).await, (route(9), b"moved".to_vec()));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_failover_loses_nothing() {
    let cluster = TestCluster::start(ClusterOptions { replicas_each: 1, ..Default::default() }).unwrap();
    let host = connect(&cluster.url()).await;
    let routes: Vec<Route> = (0..10).map(route).collect();
    let calls = load(&host, 8, &routes, Duration::from_millis(2));
    for primary in 0..3 {
        calls.go_on().await;
        tokio::task::block_in_place(|| cluster.failover(3 + primary)).unwrap();
    }
    for (route, asked) in calls.stop().await {
        assert_eq!(read_count(&host, route).await, asked, "{route}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_and_wake_ups_go_on_after_a_primary_was_killed() {
    let mut cluster = TestCluster::start(ClusterOptions { replicas_each: 1, ..Default::default() }).unwrap();
    let host = connect(&cluster.url()).await;
    let routes: Vec<Route> = (0..30).map(route).collect();
    let mut watch = host.watch();
    host.subscribe(&routes).await.unwrap();
    for route in &routes {
        count(&host, *route, "a").await.unwrap();
    }
    let victim = cluster.owner(slot_of(&cluster, route(0))).unwrap();
    cluster.kill_9(victim);
    for route in &routes {
        count(&host, *route, "b").await.unwrap();
    }
    // The wake-ups of the killed node's partitions return with a resubscription.
    while watch.try_recv().is_ok() {}
    host.subscribe(&routes).await.unwrap();
    for route in &routes {
        write(&host, *route, "ff_announce", &[("payload", "x")]).await.unwrap();
        assert_eq!(next_message(&mut watch).await, (*route, b"x".to_vec()));
    }
    cluster.restart(victim).unwrap();
    cluster.wait_until_ok().unwrap();
    for route in &routes {
        count(&host, *route, "c").await.unwrap();
    }
}
