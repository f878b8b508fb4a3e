//! A real headless browser: Chromium, driven over its debugging protocol.

use std::collections::VecDeque;
use std::fs;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use tungstenite::{Message, WebSocket};

use crate::binary::{CHROMIUM_VARIABLE, chromium};
use crate::guardian::Guardian;

/// Only a hang takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running browser with an empty profile. It ends when this value is dropped.
pub struct Browser {
    process: Child,
    _guardian: Guardian,
    _profile: TempDir,
    endpoint: String,
}

impl Browser {
    /// Starts the browser and waits until it can be driven.
    pub fn start() -> Result<Browser> {
        let program = chromium()
            .with_context(|| format!("no chromium on PATH; set {CHROMIUM_VARIABLE} or run `cargo xtask test`"))?;
        let profile = tempfile::Builder::new().prefix("ff-browser-").tempdir().context("no directory for a browser")?;
        let process = Command::new(&program)
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-dev-shm-usage",
                "--remote-debugging-port=0",
                "--window-size=1280,900",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot run {}", program.display()))?;
        let guardian = Guardian::of(process.id())?;
        let mut browser = Browser { process, _guardian: guardian, _profile: profile, endpoint: String::new() };
        browser.endpoint = browser.wait_for_endpoint()?;
        Ok(browser)
    }

    /// The browser writes its port and its address to a file once it listens.
    fn wait_for_endpoint(&mut self) -> Result<String> {
        let file = self._profile.path().join("DevToolsActivePort");
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if let Some((port, path)) = fs::read_to_string(&file).ok().as_deref().and_then(|text| text.split_once('\n'))
            {
                return Ok(format!("ws://127.0.0.1:{}{}", port.trim(), path.trim()));
            }
            if let Some(status) = self.process.try_wait()? {
                bail!("the browser ended with {status} before it could be driven");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        bail!("the browser could not be driven within {PATIENCE:?}")
    }

    /// A new tab with its own cookies and storage.
    pub fn page(&self) -> Result<Page> {
        let address = self.endpoint.trim_start_matches("ws://").split('/').next().unwrap_or_default();
        let stream = TcpStream::connect(address).context("cannot reach the browser")?;
        stream.set_read_timeout(Some(PATIENCE))?;
        let (socket, _) = tungstenite::client(self.endpoint.as_str(), stream)
            .map_err(|error| anyhow!("cannot talk to the browser: {error}"))?;
        let mut page = Page { socket, session: None, last_id: 0, events: VecDeque::new() };
        let context = page.command("Target.createBrowserContext", json!({}))?;
        let made = page.command(
            "Target.createTarget",
            json!({ "url": "about:blank", "browserContextId": context["browserContextId"] }),
        )?;
        let attached =
            page.command("Target.attachToTarget", json!({ "targetId": made["targetId"], "flatten": true }))?;
        page.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page.enable", "Runtime.enable", "Network.enable", "Log.enable"] {
            page.command(domain, json!({}))?;
        }
        Ok(page)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// One tab.
pub struct Page {
    socket: WebSocket<TcpStream>,
    session: Option<String>,
    last_id: u64,
    /// Events of the tab that were not read yet.
    events: VecDeque<Value>,
}

impl Page {
    /// Sends one command of the debugging protocol and returns its result.
    pub fn command(&mut self, method: &str, params: Value) -> Result<Value> {
        self.last_id += 1;
        let id = self.last_id;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        self.socket.send(Message::text(message.to_string())).with_context(|| format!("cannot send {method}"))?;
        loop {
            let answer = self.receive()?;
            if answer["id"] == json!(id) {
                if let Some(error) = answer.get("error") {
                    bail!("{method}: {error}");
                }
                return Ok(answer["result"].clone());
            }
            self.events.push_back(answer);
        }
    }

    fn receive(&mut self) -> Result<Value> {
        loop {
            if let Message::Text(text) = self.socket.read().context("the connection to the browser ended")? {
                return serde_json::from_str(&text).context("the browser sent invalid JSON");
            }
        }
    }

    /// The next event of this name, received already or still to come.
    fn event(&mut self, method: &str) -> Result<Value> {
        let began = Instant::now();
        loop {
            if let Some(at) = self.events.iter().position(|event| event["method"] == method) {
                return Ok(self.events.remove(at).map(|event| event["params"].clone()).unwrap_or_default());
            }
            if began.elapsed() > PATIENCE {
                bail!("no {method} within {PATIENCE:?}");
            }
            let event = self.receive()?;
            self.events.push_back(event);
        }
    }

    /// Opens an address and waits until the page and its resources are loaded.
    pub fn go(&mut self, url: &str) -> Result<()> {
        self.events.retain(|event| event["method"] != "Page.loadEventFired");
        let went = self.command("Page.navigate", json!({ "url": url }))?;
        if let Some(error) = went["errorText"].as_str().filter(|text| !text.is_empty()) {
            bail!("cannot go to {url}: {error}");
        }
        self.event("Page.loadEventFired").map(drop)
    }

    /// The value of an expression in the page; waits for a promise.
    pub fn eval(&mut self, expression: &str) -> Result<Value> {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.command("Runtime.evaluate", asked)?;
        if let Some(raised) = answer.get("exceptionDetails") {
            bail!("{expression}: {}", raised["exception"]["description"].as_str().unwrap_or("raised"));
        }
        Ok(answer["result"]["value"].clone())
    }

    /// Waits until an expression is true in the page.
    pub fn until(&mut self, expression: &str) -> Result<()> {
        let began = Instant::now();
        while self.eval(expression)? != json!(true) {
            if began.elapsed() > PATIENCE {
                let text = self.eval("document.body.innerText")?;
                bail!("not true within {PATIENCE:?}: {expression}\n{}", text.as_str().unwrap_or_default());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// The errors in the page since the last call: script errors, violations of its policy, failed requests.
    pub fn complaints(&mut self) -> Result<Vec<String>> {
        // All earlier messages of the page have arrived after this reply.
        self.eval("0")?;
        let complaint = |event: &Value| {
            let params = &event["params"];
            match event["method"].as_str()? {
                "Runtime.exceptionThrown" => Some(params["exceptionDetails"].to_string()),
                "Runtime.consoleAPICalled" if params["type"] == "error" => Some(params["args"].to_string()),
                "Log.entryAdded" if params["entry"]["level"] == "error" => Some(params["entry"].to_string()),
                _ => None,
            }
        };
        let found = self.events.iter().filter_map(complaint).collect();
        self.events.retain(|event| complaint(event).is_none());
        Ok(found)
    }

    /// The addresses that the page requested since the last call.
    pub fn requests(&mut self) -> Result<Vec<String>> {
        self.eval("0")?;
        let is_request = |event: &Value| event["method"] == "Network.requestWillBeSent";
        let url = |event: &Value| event["params"]["request"]["url"].as_str().unwrap_or_default().to_owned();
        let found = self.events.iter().filter(|event| is_request(event)).map(url).collect();
        self.events.retain(|event| !is_request(event));
        Ok(found)
    }

    /// Saves a screenshot of the page as PNG.
    pub fn screenshot(&mut self, path: &Path) -> Result<()> {
        use base64::Engine;
        let shot = self.command("Page.captureScreenshot", json!({ "format": "png" }))?;
        let bytes = base64::engine::general_purpose::STANDARD
            .decode(shot["data"].as_str().context("no picture came")?)
            .context("the screenshot is not base64")?;
        fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))
    }
}
