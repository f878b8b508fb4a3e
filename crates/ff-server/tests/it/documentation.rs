//! The document and its page as they are served, and what is answered to requests no route takes.

use anyhow::Result;
use ff_server::routes;
use ff_testkit::browser::{Browser, Page};
use reqwest::Method;
use serde_json::json;

use crate::kit::{Api, Kind, run};

const UNKNOWN: &str = "0192a7c4-5b1e-7abc-8def-00112233aabb";

/// Opens the page in a browser, shows the token it asks for, and hands the page with all its routes to `look`.
async fn in_a_browser(
    base: String,
    token: Option<String>,
    look: impl FnOnce(&mut Page) -> Result<()> + Send + 'static,
) {
    let looked = tokio::task::spawn_blocking(move || -> Result<()> {
        let browser = Browser::start()?;
        let mut page = browser.page()?;
        page.go(&format!("{base}/docs"))?;
        if let Some(token) = token {
            page.until("!document.getElementById('ask').hidden")?;
            page.eval(&format!(
                "document.getElementById('token').value = {}; document.querySelector('#ask button').click()",
                json!(token)
            ))?;
        }
        page.until("document.querySelectorAll('details.route').length > 0")?;
        look(&mut page)?;
        let asked = page.requests()?;
        assert!(!asked.is_empty() && asked.iter().all(|url| url.starts_with(&base)), "{asked:?}");
        Ok(())
    });
    looked.await.expect("nobody panics").expect("the page can be looked at");
}

#[test]
fn a_browser_shows_every_route_with_what_it_takes_and_answers() {
    run(Kind::Embedded, async |kit| {
        let api = kit.api().await;
        let document = api.get("/openapi.json").await.with(200);
        let routes: usize = document["paths"]
            .as_object()
            .expect("paths")
            .values()
            .map(|item| item.as_object().expect("methods").len())
            .sum();
        in_a_browser(api.base.clone(), None, move |page| {
            assert_eq!(page.eval("document.querySelectorAll('details.route').length")?, json!(routes));
            // Every route opens, and every part of a route that opens further does too.
            page.eval("for (const route of document.querySelectorAll('details.route')) route.open = true")?;
            page.until("[...document.querySelectorAll('details.route')].every((route) => [...route.querySelectorAll('h3')].some((title) => title.textContent === 'Answers'))")?;
            page.eval("document.getElementById('search').value = 'webhooks'; document.getElementById('search').dispatchEvent(new Event('input'))")?;
            page.until("document.querySelectorAll('details.route:not(.none)').length === 1")?;
            assert_eq!(page.complaints()?, Vec::<String>::new());
            Ok(())
        })
        .await;
    });
}

#[test]
fn a_browser_shows_the_page_of_a_guarded_server_to_a_bearer_of_a_token() {
    run(Kind::Embedded, async |kit| {
        let (server, _) = kit.guarded().await;
        in_a_browser(format!("http://{}", server.address()), Some(kit.root().to_owned()), |page| {
            // The first look without a token is refused, and the browser says so.
            assert!(page.complaints()?.iter().all(|complaint| complaint.contains("401")));
            Ok(())
        })
        .await;
        server.stop().await;
    });
}

#[test]
fn a_browser_shows_routes_of_a_group_that_is_not_described() {
    run(Kind::Embedded, async |kit| {
        let api = kit.api().await;
        in_a_browser(api.base.clone(), None, |page| {
            page.eval("api.tags = api.tags.filter((tag) => tag.name !== 'lanes'); delete api.paths['/livez'].get.tags; render()")?;
            let shown = page.eval("[...document.querySelectorAll('section h2')].map((title) => title.textContent)")?;
            let shown = shown.as_array().expect("titles");
            assert!(shown.contains(&json!("lanes")) && shown.contains(&json!("other")), "{shown:?}");
            assert_eq!(page.complaints()?, Vec::<String>::new());
            Ok(())
        })
        .await;
    });
}

on_both_hosts! {
    async fn the_page_asks_nobody_else_and_the_document_asks_for_a_token(kit) {
        let (server, root) = kit.guarded().await;
        let nobody = Api::of(&server);
        nobody.get("/openapi.json").await.refused(401, "unauthenticated");
        let made = root.post("/v1/admin/tokens", json!({ "name": "m", "roles": ["metrics"] })).await.with(201);
        let document = root.bearing(made["token"].as_str().expect("a token")).get("/openapi.json").await.with(200);
        assert_eq!(document["openapi"], "3.1.0");
        assert!(document["paths"]["/v1/executions"]["post"]["responses"]["409"].is_object());
        for (path, content_type) in [("/docs", "text/html"), ("/docs/page.css", "text/css"), ("/docs/page.js", "text/javascript")] {
            let page = nobody.get(path).await;
            assert_eq!(page.status, 200, "{path}");
            let header = |name: &str| page.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
            assert!(header("content-type").starts_with(content_type), "{path}");
            let policy = header("content-security-policy");
            for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"] {
                assert!(policy.contains(part), "{path}: {policy}");
            }
            assert!(!page.text().contains("://") && !page.text().contains("innerHTML"), "{path} asks somebody else");
        }
        let page = nobody.get("/docs").await;
        for inline in ["<script>", "<style", "style=", "onclick", "onload"] {
            assert!(!page.text().contains(inline), "{inline} stands inline");
        }
        server.stop().await;
    }

    async fn another_method_is_answered_with_those_there_are(kit) {
        let (server, root) = kit.guarded().await;
        let nobody = Api::of(&server);
        let paths: std::collections::BTreeSet<&str> = routes().map(|(_, path, _)| path).collect();
        for path in paths {
            let taken: Vec<&str> = routes().filter(|(_, at, _)| *at == path).map(|(method, _, _)| method).collect();
            let filled: Vec<&str> = path.split('/').map(|part| match part {
                "{n}" => "0",
                part if part.starts_with('{') => UNKNOWN,
                part => part,
            }).collect();
            for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"] {
                if taken.contains(&method) {
                    continue;
                }
                for api in [&root, &nobody] {
                    let refused = api.send(method.parse::<Method>().expect("a method"), &filled.join("/"), &[], "").await;
                    let allow = refused.headers.get("allow").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
                    refused.refused(405, "method_not_allowed");
                    let allowed: Vec<&str> = allow.split(", ").filter(|method| *method != "HEAD").collect();
                    assert_eq!(allowed, taken, "{method} {path}");
                }
            }
        }
        root.get("/v1/nothing").await.refused(404, "not_found");
        root.get("/v1/executions/").await.refused(404, "not_found");
        server.stop().await;
    }
}
