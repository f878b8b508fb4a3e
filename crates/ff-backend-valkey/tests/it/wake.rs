//! Wake-ups of a single server: delivery, and a subscription that survives restarts.

use std::time::Duration;

use ff_script::{Host, Route, WakeUp};
use ff_testkit::Aof;

use crate::kit::*;

#[tokio::test(flavor = "multi_thread")]
async fn what_a_partition_announces_arrives() {
    for binary in flavours() {
        let server = server_of(&binary, Aof::EverySecond);
        let (speaker, listener) = (connect(&server.url()).await, connect(&server.url()).await);
        let mut watch = listener.watch();
        listener.subscribe(&[route(1), Route::Fleet, Route::Config]).await.unwrap();
        assert_eq!(next(&mut watch).await, WakeUp::Resubscribed { routes: vec![route(1), Route::Fleet] });
        write(&speaker, route(2), "ff_announce", &[("payload", "not subscribed")]).await.unwrap();
        write(&speaker, route(1), "ff_announce", &[("payload", "hello")]).await.unwrap();
        assert_eq!(next_message(&mut watch).await, (route(1), b"hello".to_vec()));
        write(&speaker, Route::Fleet, "ff_announce", &[("payload", "fleet")]).await.unwrap();
        assert_eq!(next_message(&mut watch).await, (Route::Fleet, b"fleet".to_vec()));

        listener.subscribe(&[route(1), route(2)]).await.unwrap();
        assert_eq!(next(&mut watch).await, WakeUp::Resubscribed { routes: vec![route(2)] });
        write(&speaker, route(2), "ff_announce", &[("payload", "two")]).await.unwrap();
        assert_eq!(next_message(&mut watch).await, (route(2), b"two".to_vec()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_is_followed_by_a_resubscription_of_everything() {
    for binary in flavours() {
        let mut server = server_of(&binary, Aof::EverySecond);
        let host = connect(&server.url()).await;
        let routes: Vec<Route> = (0..300).map(route).collect();
        let mut watch = host.watch();
        host.subscribe(&routes).await.unwrap();
        assert_eq!(next(&mut watch).await, WakeUp::Resubscribed { routes: routes.clone() });
        for round in 0..3 {
            server.kill_9();
            tokio::time::sleep(Duration::from_millis(50 * round)).await;
            server.restart().unwrap();
            assert_eq!(next(&mut watch).await, WakeUp::Resubscribed { routes: routes.clone() });
            write(&host, route(299), "ff_announce", &[("payload", "back")]).await.unwrap();
            assert_eq!(next_message(&mut watch).await, (route(299), b"back".to_vec()));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_subscription_comes_back() {
    let server = server(Aof::EverySecond);
    let host = connect(&server.url()).await;
    let mut watch = host.watch();
    host.subscribe(&[route(0)]).await.unwrap();
    assert!(matches!(next(&mut watch).await, WakeUp::Resubscribed { .. }));
    for _ in 0..5 {
        server.command::<i64>(&["CLIENT", "KILL", "TYPE", "pubsub"]).unwrap();
        assert_eq!(next(&mut watch).await, WakeUp::Resubscribed { routes: vec![route(0)] });
        write(&host, route(0), "ff_announce", &[("payload", "x")]).await.unwrap();
        assert_eq!(next_message(&mut watch).await, (route(0), b"x".to_vec()));
    }
}
