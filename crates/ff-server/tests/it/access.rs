//! Who may do what: tokens, roles by route, scopes, owners of workers.

use ff_keys::BearerToken;
use ff_script::generated::{GrantAccess, Role};
use ff_server::{Access, routes};
use reqwest::Method;
use serde_json::{Value, json};

use crate::kit::{Api, eventually};

const UNKNOWN: &str = "0192a7c4-5b1e-7abc-8def-00112233aabb";
const ROLES: [&str; 7] = ["read", "submit", "signal", "worker", "operator", "admin", "metrics"];

/// A client with a token of its own.
async fn bearer(root: &Api, body: Value) -> (Api, String) {
    let made = root.post("/v1/admin/tokens", body).await.with(201);
    (root.bearing(made["token"].as_str().expect("a token")), made["token_id"].as_str().expect("an id").to_owned())
}

/// The path with something in the place of every name.
fn filled(path: &str) -> String {
    let part = |part: &str| match part {
        "{n}" => "0".to_owned(),
        name if name.starts_with('{') => UNKNOWN.to_owned(),
        other => other.to_owned(),
    };
    path.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// The status and code of a request with an empty body; an answer that goes on is not waited for.
async fn asked(api: &Api, method: &str, path: &str) -> (u16, String) {
    let method: Method = method.parse().expect("a method");
    let request = api.http.request(method, format!("{}{}", api.base, filled(path))).body("{}");
    let answer = request.send().await.expect("the server answers");
    let status = answer.status().as_u16();
    if answer.status().is_success() {
        return (status, String::new());
    }
    let problem: Value = serde_json::from_slice(&answer.bytes().await.expect("the answer arrives")).unwrap_or_default();
    (status, problem["code"].as_str().unwrap_or_default().to_owned())
}

on_both_hosts! {
    async fn every_route_asks_for_its_roles(kit) {
        let (server, root) = kit.guarded().await;
        let nobody = Api::of(&server);
        let mut bearers = Vec::new();
        for role in ROLES {
            bearers.push((role, bearer(&root, json!({ "name": format!("only-{role}"), "roles": [role] })).await.0));
        }
        for (method, path, access) in routes() {
            let (status, code) = asked(&nobody, method, path).await;
            let open = matches!(access, Access::Open | Access::WaitpointToken);
            assert_eq!(!open && status == 401, !open, "{method} {path} to nobody: {status} {code}");
            assert!(open || code == "unauthenticated", "{method} {path} to nobody: {status} {code}");
            for (role, api) in &bearers {
                let (status, code) = asked(api, method, path).await;
                assert!(status != 405 && code != "not_found" && status < 500, "{method} {path} is served: {status} {code}");
                let allowed = match access {
                    Access::Open | Access::WaitpointToken => true,
                    Access::Roles(roles) => *role == "admin" || roles.iter().any(|known| known.as_str() == *role),
                };
                assert_eq!(code != "forbidden", allowed, "{method} {path} as {role}: {status} {code}");
            }
        }
        server.stop().await;
    }

    async fn a_scope_is_a_wall(kit) {
        let (server, root) = kit.guarded().await;
        let scope = json!({ "name": "team-a", "roles": ["submit", "operator", "read"], "namespaces": ["a"], "lanes": ["builds", "tests"] });
        let (team, _) = bearer(&root, scope).await;
        let inside = team.submit(json!({ "kind": "k", "namespace": "a", "lane": "builds" })).await;
        for outside in [json!({ "kind": "k" }), json!({ "kind": "k", "namespace": "a", "lane": "deploys" }), json!({ "kind": "k", "namespace": "b", "lane": "builds" })] {
            team.post("/v1/executions", outside).await.refused(403, "forbidden");
        }
        let other = root.submit(json!({ "kind": "k", "namespace": "b", "lane": "builds" })).await;
        let lane = root.submit(json!({ "kind": "k", "namespace": "a", "lane": "deploys" })).await;
        for hidden in [&other, &lane, &UNKNOWN.to_owned()] {
            for (method, path) in [(Method::GET, ""), (Method::GET, "/explain"), (Method::POST, "/cancel"), (Method::POST, "/hold"), (Method::DELETE, "")] {
                let refused = team.send(method, &format!("/v1/executions/{hidden}{path}"), &[], "{}").await;
                refused.refused(404, "execution_not_found");
            }
        }
        team.execution(&inside).await;
        team.send(Method::PATCH, &format!("/v1/executions/{inside}"), &[], json!({ "lane": "deploys" }).to_string()).await.refused(403, "forbidden");
        team.get("/v1/executions?namespace=b").await.refused(403, "forbidden");
        team.get("/v1/executions").await.refused(400, "invalid_argument");
        let seen = team.get("/v1/executions?lane=builds").await.with(200);
        assert_eq!(seen["items"].as_array().map(Vec::len), Some(1), "{seen}");
        team.post("/v1/executions:cancel", json!({ "namespace": "b" })).await.refused(403, "forbidden");
        team.send(Method::PUT, "/v1/lanes/deploys?namespace=a", &[], "{}").await.refused(403, "forbidden");
        let lanes = team.get("/v1/lanes").await.with(200);
        assert_eq!(lanes["items"].as_array().map(Vec::len), Some(1), "{lanes}");
        team.post("/v1/flows", json!({ "kind": "f", "namespace": "a", "members": [{ "key": "m", "kind": "k", "lane": "deploys" }] })).await.refused(403, "forbidden");
        let flow = root.post("/v1/flows", json!({ "kind": "f", "namespace": "b", "members": [{ "key": "m", "kind": "k" }] })).await.with(201);
        team.post(&format!("/v1/flows/{}/cancel", flow["flow_id"].as_str().expect("an id")), json!({})).await.refused(404, "flow_not_found");
        server.stop().await;
    }

    async fn an_admin_has_no_scope(kit) {
        let (server, root) = kit.guarded().await;
        for scope in [json!({ "namespaces": ["a"] }), json!({ "lanes": ["builds"] }), json!({ "capabilities": ["gpu"] })] {
            let mut body = json!({ "name": "lead", "roles": ["read", "admin"] });
            body.as_object_mut().expect("an object").extend(scope.as_object().expect("an object").clone());
            let refused = root.post("/v1/admin/tokens", body).await.refused(400, "invalid_argument");
            assert!(refused["fields"]["roles"].is_string(), "{refused}");
        }
        // One that the store has all the same rules nothing beyond its scope: it could make itself a token without one.
        for (name, namespaces, lanes) in [("of-a", Some("a"), None), ("of-builds", None, Some("builds"))] {
            let token = BearerToken::mint();
            let grant = GrantAccess {
                access_id: uuid::Uuid::now_v7(),
                actor: "root".to_owned(),
                capabilities: None,
                digest: token.digest(),
                expires_at: None,
                lanes: lanes.map(|lane| vec![lane.to_owned()]),
                name: name.to_owned(),
                namespaces: namespaces.map(|namespace| vec![namespace.to_owned()]),
                roles: vec![Role::Admin],
            };
            kit.tool().await.operations().grant_access(grant).await.expect("it is granted");
            let scoped = root.bearing(token.reveal());
            scoped.submit(json!({ "kind": "k", "namespace": "a", "lane": "builds" })).await;
            let rules: Vec<_> = routes().filter(|(_, path, _)| path.starts_with("/v1/admin/") || *path == "/metrics").collect();
            assert!(rules.len() >= 8, "{rules:?}");
            for (method, path, _) in rules {
                assert_eq!(asked(&scoped, method, path).await, (403, "forbidden".to_owned()), "{method} {path} as {name}");
            }
            let wider = json!({ "name": "wider", "roles": ["admin"] });
            scoped.post("/v1/admin/tokens", wider).await.refused(403, "forbidden");
        }
        server.stop().await;
    }

    async fn a_token_of_a_lane_reaches_nothing_of_other_lanes(kit) {
        let (server, root) = kit.guarded().await;
        let (team, _) = bearer(&root, json!({ "name": "builders", "roles": ["submit", "operator", "read"], "lanes": ["builds"] })).await;
        let worker = |namespace: &str, lane: &str, token: &str| json!({ "worker_id": "w", "namespace": namespace, "lanes": [lane], "capabilities": [token], "slots": 2 });
        let mut waitpoints = Vec::new();
        for lane in ["builds", "deploys"] {
            root.post(&format!("/v1/workers/w-{lane}/register"), worker("default", lane, lane)).await.with(200);
            root.submit(json!({ "kind": "k", "lane": lane })).await;
            let task = root.claim_one(&format!("w-{lane}")).await;
            let waits = root.task(&task, "suspend", json!({ "reason": "waiting_for_approval", "waitpoints": [{ "key": lane }] })).await.with(200);
            waitpoints.push(waits["waitpoints"][0]["waitpoint_id"].clone());
        }
        let ids = |listed: Value| listed["items"].as_array().expect("items").iter().map(|item| item["waitpoint_id"].clone()).collect::<Vec<_>>();
        assert_eq!(ids(root.get("/v1/waitpoints?namespace=default").await.with(200)), waitpoints);
        assert_eq!(ids(team.get("/v1/waitpoints?namespace=default").await.with(200)), waitpoints[..1]);

        // What is counted is what the token covers; what only the whole store knows is not said.
        let (all, seen) = (root.get("/v1/stats").await.with(200), team.get("/v1/stats").await.with(200));
        assert_eq!((&all["executions"], &seen["executions"]), (&json!(2), &json!(1)));
        assert_eq!((&all["workers"]["live"], &seen["workers"]["live"], &seen["workers"]["slots"]), (&json!(2), &json!(1), &json!(2)));
        for field in ["timers", "next_timer_at", "events", "outbox", "stuck", "flows", "cancel_backlog", "pending_cancels"] {
            assert!(seen[field].is_null(), "{field} in {seen}");
            assert!(field == "next_timer_at" || all[field].is_i64(), "{field} in {all}");
        }
        assert_eq!(team.get("/v1/capabilities").await.with(200)["worker_capabilities"], json!({ "builds": 1 }));
        assert_eq!(root.get("/v1/capabilities").await.with(200)["worker_capabilities"], json!({ "builds": 1, "deploys": 1 }));

        // A flow reaches over lanes, whatever its members are.
        let flow = |lane: &str| json!({ "kind": "f", "members": [{ "key": "m", "kind": "k", "lane": lane }] });
        let made = root.post("/v1/flows", flow("deploys")).await.with(201);
        let at = format!("/v1/flows/{}", made["flow_id"].as_str().expect("an id"));
        for path in ["/v1/flows".to_owned(), at.clone(), format!("{at}/graph"), format!("{at}/members")] {
            team.get(&path).await.refused(403, "forbidden");
        }
        for (verb, body) in [("cancel", json!({})), ("seal", json!({})), ("members", json!({ "members": [{ "key": "n", "kind": "k", "lane": "builds" }] })), ("edges", json!({ "edges": [{ "from": "m", "to": "n" }] }))] {
            team.post(&format!("{at}/{verb}"), body).await.refused(403, "forbidden");
        }
        assert_eq!(root.get(&at).await.with(200)["members"].as_array().map(Vec::len), Some(1));
        team.post("/v1/flows", flow("deploys")).await.refused(403, "forbidden");
        let own = team.post("/v1/flows", flow("builds")).await.with(201);
        team.execution(own["members"][0]["execution_id"].as_str().expect("an id")).await;
        server.stop().await;
    }

    async fn budgets_and_quotas_of_others_are_not_there(kit) {
        let (server, root) = kit.guarded().await;
        let scope = json!({ "name": "team-a", "roles": ["submit", "operator", "read", "worker"], "namespaces": ["a"] });
        let (team, _) = bearer(&root, scope).await;
        let of = |namespace: &str, what: serde_json::Value| {
            let mut body = what;
            body["namespace"] = namespace.into();
            body
        };
        let (limits, slots) = (json!({ "dimensions": { "n": { "hard": 9 } } }), json!({ "concurrency": 1 }));
        let (mut budgets, mut quotas) = (Vec::new(), Vec::new());
        for namespace in ["a", "b"] {
            let budget = root.post("/v1/budgets", of(namespace, limits.clone())).await.with(201);
            let quota = root.post("/v1/quotas", of(namespace, slots.clone())).await.with(201);
            budgets.push(budget["budget_id"].as_str().expect("an id").to_owned());
            quotas.push(quota["quota_id"].as_str().expect("an id").to_owned());
        }
        for (kind, body) in [("budgets", &limits), ("quotas", &slots)] {
            team.post(&format!("/v1/{kind}"), of("b", body.clone())).await.refused(403, "forbidden");
            team.post(&format!("/v1/{kind}"), body.clone()).await.refused(403, "forbidden");
            team.get(&format!("/v1/{kind}?namespace=b")).await.refused(403, "forbidden");
            team.post(&format!("/v1/{kind}"), of("a", body.clone())).await.with(201);
            let seen = team.get(&format!("/v1/{kind}")).await.with(200);
            assert_eq!(seen["items"].as_array().map(Vec::len), Some(2), "{seen}");
        }
        team.get(&format!("/v1/budgets/{}", budgets[0])).await.with(200);
        team.get(&format!("/v1/budgets/{}/blocked", budgets[1])).await.refused(404, "budget_not_found");
        team.post(&format!("/v1/budgets/{}/usage", budgets[1]), json!({ "dimensions": { "n": 1 } })).await.refused(404, "budget_not_found");
        let mut child = of("a", limits.clone());
        child["parent"] = budgets[1].as_str().into();
        team.post("/v1/budgets", child).await.refused(404, "budget_not_found");
        team.get(&format!("/v1/quotas/{}/blocked?key=k", quotas[1])).await.refused(404, "quota_not_found");
        // Work does not spend what its submitter cannot see, nor do workers.
        let spends = json!({ "kind": "k", "namespace": "a", "budgets": [{ "budget_id": budgets[1] }] });
        let counts = json!({ "kind": "k", "namespace": "a", "quotas": [{ "quota_id": quotas[1], "key": "k" }] });
        for (body, code) in [(spends, "budget_not_found"), (counts, "quota_not_found")] {
            team.post("/v1/executions", body.clone()).await.refused(404, code);
            let line = team.post("/v1/executions:batch", json!([body])).await.with(200);
            assert_eq!(line["error"]["code"], code);
            let mut member = body;
            member["key"] = "m".into();
            member.as_object_mut().expect("an object").remove("namespace");
            team.post("/v1/flows", json!({ "kind": "f", "namespace": "a", "members": [member] })).await.refused(404, code);
        }
        let plain = json!([{ "key": "m", "kind": "k" }]);
        let flow = json!({ "kind": "f", "namespace": "a", "budgets": [{ "budget_id": budgets[1] }], "members": plain });
        let nested = json!({ "kind": "f", "namespace": "a", "members": [{ "key": "n", "flow": { "kind": "g", "budgets": [{ "budget_id": budgets[1] }], "members": plain } }] });
        for body in [flow, nested] {
            team.post("/v1/flows", body).await.refused(404, "budget_not_found");
        }
        team.submit(json!({ "kind": "k", "namespace": "a", "budgets": [{ "budget_id": budgets[0] }], "quotas": [{ "quota_id": quotas[0], "key": "k" }] })).await;
        team.post("/v1/workers/w1/register", json!({ "worker_id": "w", "namespace": "a", "lanes": ["default"] })).await.with(200);
        let task = team.claim_one("w1").await;
        team.task(&task, "usage", json!({ "budget_id": budgets[1], "dimensions": { "n": 1 } })).await.refused(404, "budget_not_found");
        team.task(&task, "throttle", json!({ "quota_id": quotas[1], "key": "k", "retry_after_ms": 1_000 })).await.refused(404, "quota_not_found");
        team.task(&task, "usage", json!({ "budget_id": budgets[0], "dimensions": { "n": 1 } })).await.with(200);
        team.task(&task, "complete", json!({})).await.with(200);
        server.stop().await;
    }

    async fn a_server_says_what_it_asks_for(kit) {
        let (server, root) = kit.guarded().await;
        assert_eq!(root.get("/v1/capabilities").await.with(200)["authentication"], "bearer");
        let open = kit.api().await;
        assert_eq!(open.get("/v1/capabilities").await.with(200)["authentication"], "none");
        // A token that nobody asked for is not looked at.
        open.bearing("whatever").get("/v1/capabilities").await.with(200);
        root.bearing("whatever").get("/v1/capabilities").await.refused(401, "unauthenticated");
        server.stop().await;
    }

    async fn a_worker_and_its_fences_are_its_owners(kit) {
        let (server, root) = kit.guarded().await;
        let (one, _) = bearer(&root, json!({ "name": "one", "roles": ["worker"], "capabilities": ["cpu"] })).await;
        let (two, _) = bearer(&root, json!({ "name": "two", "roles": ["worker"] })).await;
        root.submit(json!({ "kind": "k" })).await;
        one.register("w1", 4).await;
        one.post("/v1/workers/w9/register", json!({ "worker_id": "w", "lanes": ["default"], "capabilities": ["gpu"] })).await.refused(403, "forbidden");
        two.post("/v1/workers/w1/register", json!({ "worker_id": "w", "lanes": ["default"] })).await.refused(409, "instance_in_use");
        two.post("/v1/workers/w1/claim", json!({ "max": 1 })).await.refused(403, "forbidden");
        two.send(Method::DELETE, "/v1/workers/w1", &[], "").await.refused(403, "forbidden");
        let task = one.claim_one("w1").await;
        for (verb, body) in [("complete", json!({ "result": 1 })), ("progress", json!({ "pct": 1 })), ("fail", json!({ "reason": "r", "category": "c" })), ("frames", json!({ "frames": [{ "type": "t", "payload": 1 }] })), ("suspend", json!({ "reason": "waiting_for_signal", "waitpoints": [{ "key": "k" }] })),
            ("usage", json!({ "budget_id": UNKNOWN, "dimensions": { "n": 1 } })), ("reserve", json!({ "budget_id": UNKNOWN, "dimensions": { "n": 1 } })),
            ("settle", json!({ "budget_id": UNKNOWN, "reservation_id": UNKNOWN, "dimensions": { "n": 1 } })), ("release", json!({ "budget_id": UNKNOWN, "reservation_id": UNKNOWN })),
            ("throttle", json!({ "quota_id": UNKNOWN, "key": "k", "retry_after_ms": 1_000 })), ("weight", json!({ "quota_id": UNKNOWN, "key": "k", "weight": 1 })),
        ] {
            two.task(&task, verb, body).await.refused(403, "forbidden");
        }
        let reserve = json!({ "dimensions": { "n": 1 }, "execution_id": task["execution_id"], "fence": crate::kit::fence(&task) });
        let budget = root.post("/v1/budgets", json!({ "dimensions": { "n": { "hard": 9 } } })).await.with(201)["budget_id"].as_str().expect("an id").to_owned();
        two.post(&format!("/v1/budgets/{budget}/reserve"), reserve.clone()).await.refused(403, "forbidden");
        one.post(&format!("/v1/budgets/{budget}/reserve"), reserve).await.with(200);
        two.register("w2", 1).await;
        let renew = json!({ "renew": [{ "execution_id": task["execution_id"], "attempt_id": task["attempt_id"], "lease_id": task["lease_id"], "lease_epoch": task["lease_epoch"] }] });
        let beaten = two.post("/v1/workers/w2/heartbeat", renew).await.with(200);
        assert_eq!(beaten["leases"][0]["code"], "forbidden", "{beaten}");
        // Another server does not know who holds it, and asks the store.
        let (other, _) = kit.guarded().await;
        Api { base: format!("http://{}", other.address()), ..two.clone() }.task(&task, "complete", json!({ "result": 1 })).await.refused(403, "forbidden");
        Api { base: format!("http://{}", other.address()), ..one.clone() }.task(&task, "complete", json!({ "result": 1 })).await.with(200);
        other.stop().await;
        server.stop().await;
    }

    async fn a_heartbeat_answers_every_lease_for_itself(kit) {
        let (server, root) = kit.guarded().await;
        let (one, _) = bearer(&root, json!({ "name": "one", "roles": ["worker"] })).await;
        let (two, _) = bearer(&root, json!({ "name": "two", "roles": ["worker"] })).await;
        let lease = |task: &Value| {
            let mut lease = crate::kit::fence(task);
            lease["execution_id"] = task["execution_id"].clone();
            lease
        };
        let mut leases = Vec::new();
        for (api, instance) in [(&one, "w1"), (&two, "w2"), (&one, "w1")] {
            api.register(instance, 4).await;
            root.submit(json!({ "kind": "k" })).await;
            leases.push(lease(&api.claim_one(instance).await));
        }
        // One whose execution is not there any more, or never was.
        leases.insert(1, json!({ "execution_id": UNKNOWN, "attempt_id": UNKNOWN, "lease_id": UNKNOWN, "lease_epoch": 1 }));
        let (other, _) = kit.guarded().await;
        // Another server does not know who holds them, and asks the store.
        let elsewhere = Api { base: format!("http://{}", other.address()), ..one.clone() };
        for api in [&one, &elsewhere] {
            let beaten = api.post("/v1/workers/w1/heartbeat", json!({ "renew": leases })).await.with(200);
            let codes: Vec<&Value> = beaten["leases"].as_array().expect("leases").iter().map(|lease| &lease["code"]).collect();
            assert_eq!(codes, [&Value::Null, &json!("execution_not_found"), &json!("forbidden"), &Value::Null], "{beaten}");
            assert!(beaten["leases"][0]["lease_expires_at"].is_i64() && beaten["leases"][3]["lease_expires_at"].is_i64(), "{beaten}");
        }
        // The other's lease is none the worse for it.
        let beaten = two.post("/v1/workers/w2/heartbeat", json!({ "renew": [leases[2]] })).await.with(200);
        assert!(beaten["leases"][0]["lease_expires_at"].is_i64(), "{beaten}");
        other.stop().await;
        server.stop().await;
    }

    async fn a_revoked_token_is_refused_by_every_server(kit) {
        let (server, root) = kit.guarded().await;
        let (other, _) = kit.guarded().await;
        let (reader, id) = bearer(&root, json!({ "name": "reader", "roles": ["read"] })).await;
        let elsewhere = Api { base: format!("http://{}", other.address()), ..reader.clone() };
        for api in [&reader, &elsewhere] {
            api.get("/v1/executions").await.with(200);
        }
        let listed = root.get("/v1/admin/tokens").await.with(200);
        assert_eq!(listed["items"][0]["name"], "reader");
        assert!(listed["items"][0].get("token").is_none() && listed["items"][0].get("digest").is_none(), "{listed}");
        assert_eq!(root.send(Method::DELETE, &format!("/v1/admin/tokens/{id}"), &[], "").await.status, 204);
        reader.get("/v1/executions").await.refused(401, "unauthenticated");
        eventually("the other server hears of it", async || (elsewhere.get("/v1/executions").await.status == 401).then_some(())).await;
        root.send(Method::DELETE, &format!("/v1/admin/tokens/{id}"), &[], "").await.refused(404, "access_not_found");
        root.post("/v1/admin/tokens", json!({ "name": "x", "roles": [] })).await.refused(400, "invalid_argument");
        root.post("/v1/admin/tokens", json!({ "name": "x", "roles": ["king"] })).await.refused(400, "invalid_argument");
        root.post("/v1/admin/tokens", json!({ "name": "root", "roles": ["read"] })).await.refused(400, "invalid_argument");
        root.post("/v1/admin/tokens", json!({ "name": "x", "roles": ["read"], "expires_at": 1 })).await.refused(400, "invalid_argument");
        other.stop().await;
        server.stop().await;
    }

    async fn failures_slow_only_further_failures(kit) {
        let (server, root) = kit.guarded().await;
        let guess = Api::of(&server).bearing("ff_this-is-not-the-token-at-all");
        for _ in 0..10 {
            let refused = guess.get("/v1/executions").await;
            assert_eq!(refused.headers.get("www-authenticate").map(|value| value.as_bytes()), Some(&b"Bearer"[..]));
            refused.refused(401, "unauthenticated");
        }
        let slowed = guess.get("/v1/executions").await;
        assert!(slowed.headers.contains_key("retry-after"));
        slowed.refused(429, "too_many_failures");
        root.get("/v1/executions").await.with(200);
        Api::of(&server).get("/v1/executions").await.refused(401, "unauthenticated");
        server.stop().await;
    }

    async fn what_an_operator_does_is_recorded_with_its_name(kit) {
        let (server, root) = kit.guarded().await;
        let (ann, _) = bearer(&root, json!({ "name": "ann", "roles": ["operator", "submit"] })).await;
        let id = ann.submit(json!({ "kind": "k" })).await;
        ann.post(&format!("/v1/executions/{id}/cancel"), json!({ "reason": "no" })).await.with(200);
        let history = root.get(&format!("/v1/executions/{id}/history")).await.with(200);
        assert!(history.to_string().contains("\"ann\""), "{history}");
        let events = root.send(Method::GET, "/v1/events?after=start&types=operator.*&limit=1", &[("accept", "application/x-ndjson")], "").await;
        let event: Value = serde_json::from_str(events.text().lines().next().expect("an event")).expect("JSON");
        assert_eq!((event["type"].as_str(), event["data"]["actor"].as_str()), (Some("operator.token_created"), Some("root")), "{event}");
        let budget = ann.post("/v1/budgets", json!({ "dimensions": { "n": { "hard": 9 } } })).await.with(201);
        let quota = ann.post("/v1/quotas", json!({ "concurrency": 1 })).await.with(201);
        let (budget, quota) = (budget["budget_id"].as_str().expect("an id").to_owned(), quota["quota_id"].as_str().expect("an id").to_owned());
        ann.send(Method::PATCH, &format!("/v1/budgets/{budget}"), &[], json!({ "dimensions": { "n": { "hard": 10 } } }).to_string()).await.with(200);
        ann.send(Method::PATCH, &format!("/v1/quotas/{quota}"), &[], json!({ "concurrency": 2 }).to_string()).await.with(200);
        assert_eq!(ann.send(Method::DELETE, &format!("/v1/quotas/{quota}"), &[], "").await.status, 204);
        let events = root.send(Method::GET, "/v1/events?after=start&types=budget.*,quota.*&limit=5", &[("accept", "application/x-ndjson")], "").await;
        let actors: Vec<Value> = events.text().lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str::<Value>(line).expect("JSON")["data"]["actor"].clone()).collect();
        assert_eq!(actors, ["ann"; 5].map(Value::from), "{}", events.text());

        // What leaves nothing behind that could say it, and what is not in the store.
        assert_eq!(ann.send(Method::DELETE, &format!("/v1/executions/{id}"), &[], "").await.status, 204);
        root.register("w1", 1).await;
        assert_eq!(ann.send(Method::DELETE, "/v1/workers/w1", &[], json!({ "force": true }).to_string()).await.status, 204);
        root.register("w2", 1).await;
        assert_eq!(root.send(Method::DELETE, "/v1/workers/w2", &[], "").await.status, 204);
        let (carl, _) = bearer(&root, json!({ "name": "carl", "roles": ["admin"] })).await;
        let rotated = carl.post("/v1/admin/keys/rotate", json!({})).await.with(200)["key_id"].clone();
        carl.post(&format!("/v1/admin/keys/{}/revoke", rotated.as_str().expect("a key")), json!({})).await.with(200);
        carl.post("/v1/admin/keys/nobodys/revoke", json!({})).await.refused(404, "key_not_found");
        carl.post("/v1/admin/fsck", json!({})).await.with(200);
        carl.post("/v1/admin/fsck", json!({ "repair": true })).await.with(200);
        let types = "execution.retired,worker.left,operator.keys_rotated,operator.key_revoked,operator.store_repaired";
        let events = root.send(Method::GET, &format!("/v1/events?after=start&types={types}&follow=false"), &[("accept", "application/x-ndjson")], "").await;
        let events = events.text().lines().filter(|line| !line.is_empty()).map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let mut said: Vec<Value> = events.map(|event| json!([event["type"], event["data"]["actor"], event["data"]["key_id"]])).collect();
        let mut expected = [
            json!(["execution.retired", "ann", null]),
            json!(["worker.left", "ann", null]),
            json!(["worker.left", null, null]),
            json!(["operator.keys_rotated", "carl", rotated]),
            json!(["operator.key_revoked", "carl", rotated]),
            json!(["operator.store_repaired", "carl", null]),
        ];
        // Partitions speak in no order among each other.
        said.sort_by_key(Value::to_string);
        expected.sort_by_key(Value::to_string);
        assert_eq!(said, expected);
        server.stop().await;
    }
}
