//! Access tokens: found by digest while they are valid, listed without secrets, and revoked with an announcement to
//! every server.

use ff_conformance::harness::refusal;
use ff_conformance::{Store, for_each_host};
use ff_core::ErrorCode;
use ff_script::generated::*;
use ff_script::{Call, Error, Route};
use uuid::Uuid;

async fn fleet<C: Call>(store: &Store, call: &C) -> Result<C::Reply, Error> {
    store.call(Route::Fleet, call).await
}

fn digest(n: u64) -> String {
    format!("{n:064x}")
}

fn grant(n: u64) -> GrantAccess {
    GrantAccess::new(Uuid::from_u64_pair(1, n), "root".into(), digest(n), format!("bearer-{n}"), vec![Role::Read])
}

async fn found(store: &Store, n: u64) -> Result<Access, Error> {
    fleet(store, &FindAccess { digest: digest(n) }).await.map(|FindAccessReply::Found { access }| access)
}

for_each_host! {
    async fn a_bearer_is_found_by_the_digest_of_its_token(store) {
        let asked = GrantAccess {
            roles: vec![Role::Submit, Role::Worker], namespaces: Some(vec!["acme".into()]), lanes: Some(vec!["mail".into(), "sms".into()]),
            capabilities: Some(vec!["gpu".into()]), expires_at: Some(store.now() + 1_000), ..grant(1)
        };
        let GrantAccessReply::Granted { access } = fleet(&store, &asked).await.unwrap();
        let expected = Access {
            access_id: asked.access_id, name: "bearer-1".into(), roles: asked.roles.clone(), namespaces: asked.namespaces.clone(), lanes: asked.lanes.clone(),
            capabilities: asked.capabilities.clone(), created_at: store.now(), created_by: "root".into(), expires_at: asked.expires_at,
        };
        assert_eq!((&access, found(&store, 1).await.unwrap()), (&expected, expected.clone()));
        assert_eq!(refusal(found(&store, 2).await), ErrorCode::AccessNotFound);
        // Repeating the same grant changes nothing. Another grant under the same id, or its digest under another id,
        // fails.
        store.advance(10);
        let GrantAccessReply::Granted { access } = fleet(&store, &asked).await.unwrap();
        assert_eq!(access, expected);
        for other in [GrantAccess { digest: digest(9), ..grant(1) }, GrantAccess { digest: digest(1), ..grant(2) }, GrantAccess { name: "x".into(), ..grant(1) }] {
            assert_eq!(refusal(fleet(&store, &other).await), ErrorCode::IdempotencyConflict);
        }
        store.advance(989);
        found(&store, 1).await.unwrap();
        store.advance(1);
        assert_eq!(refusal(found(&store, 1).await), ErrorCode::AccessNotFound);
    }

    async fn what_lets_nobody_act_is_refused(store) {
        for wrong in [
            GrantAccess { roles: vec![], ..grant(1) }, GrantAccess { namespaces: Some(vec![]), ..grant(1) }, GrantAccess { lanes: Some(vec![]), ..grant(1) },
            GrantAccess { expires_at: Some(store.now()), ..grant(1) }, GrantAccess { digest: "short".into(), ..grant(1) }, GrantAccess { name: "two words".into(), ..grant(1) },
        ] {
            assert_eq!(refusal(fleet(&store, &wrong).await), ErrorCode::InvalidArgument);
        }
        assert_eq!(refusal(found(&store, 1).await), ErrorCode::AccessNotFound);
    }

    async fn bearers_are_listed_in_pages_and_without_their_digests(store) {
        for n in [3, 1, 5, 2, 4] {
            fleet(&store, &grant(n)).await.unwrap();
        }
        let (mut names, mut after) = (Vec::new(), None);
        loop {
            let ListAccessReply::Page { items, more } = fleet(&store, &ListAccess { after, limit: 2 }).await.unwrap();
            after = items.last().map(|access| access.access_id);
            names.extend(items.into_iter().map(|access| access.name));
            if !more {
                break;
            }
        }
        assert_eq!(names, ["bearer-1", "bearer-2", "bearer-3", "bearer-4", "bearer-5"]);
        let told = store.events(Route::Fleet).await;
        assert!(told.iter().all(|event| event.r#type == "operator.token_created" && !format!("{event:?}").contains(&digest(1))));
    }

    async fn a_revoked_token_is_nobodys(store) {
        fleet(&store, &grant(1)).await.unwrap();
        fleet(&store, &grant(2)).await.unwrap();
        let revoke = RevokeAccess { access_id: grant(1).access_id, actor: "ann".into() };
        let RevokeAccessReply::Revoked { access } = fleet(&store, &revoke).await.unwrap();
        assert_eq!(access.name, "bearer-1");
        assert_eq!(refusal(found(&store, 1).await), ErrorCode::AccessNotFound);
        found(&store, 2).await.unwrap();
        assert_eq!(refusal(fleet(&store, &revoke).await), ErrorCode::AccessNotFound);
        let last = store.events(Route::Fleet).await.pop().expect("it was told");
        assert_eq!((last.r#type.as_str(), last.data.get("actor").and_then(EventValue::as_str)), ("operator.token_revoked", Some("ann")));
        // Its id and its digest can be granted again.
        fleet(&store, &grant(1)).await.unwrap();
        found(&store, 1).await.unwrap();
    }

    async fn an_instance_is_its_owners_while_it_lives(store) {
        let register = |owner: Option<&str>| RegisterWorker {
            owner: owner.map(str::to_owned),
            ..RegisterWorker::new(vec![], "w1".into(), vec!["default".into()], "acme".into(), 1, "w".into())
        };
        fleet(&store, &register(Some("one"))).await.unwrap();
        for other in [Some("two"), None] {
            let taking = RegisterWorker { take_over: Some(true), ..register(other) };
            assert_eq!(refusal(fleet(&store, &taking).await), ErrorCode::InstanceInUse);
        }
        fleet(&store, &register(Some("one"))).await.unwrap();
        let GetWorkerReply::Worker { item } = fleet(&store, &GetWorker { instance: "w1".into() }).await.unwrap();
        assert_eq!(item.owner.as_deref(), Some("one"));
        store.advance(30_001);
        fleet(&store, &register(Some("two"))).await.unwrap();
        let GetWorkerReply::Worker { item } = fleet(&store, &GetWorker { instance: "w1".into() }).await.unwrap();
        assert_eq!(item.owner.as_deref(), Some("two"));
    }
}
