//! Creates without kubectl, with the warnings that an answer's headers carry.

use std::path::Path;

use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::Value;

/// A client of the API server.
pub struct Api(kube::Client);

/// What the API server answered.
pub struct Answer {
    status: u16,
    /// The object, or the Status of a refusal.
    pub object: Value,
    /// The texts of its `Warning` headers.
    pub warnings: Vec<String>,
}

impl Answer {
    /// Whether the object would be stored.
    pub fn accepted(&self) -> bool {
        self.status == 201
    }

    /// What a refusal says.
    pub fn message(&self) -> &str {
        self.object["message"].as_str().unwrap_or_default()
    }

    /// What a webhook's denial says, after the API server's own words.
    pub fn denial(&self) -> Option<&str> {
        self.message().split_once(" denied the request: ").map(|(_, denial)| denial)
    }
}

impl Api {
    /// A client by this kubeconfig.
    pub async fn connect(kubeconfig: &Path) -> Result<Self, String> {
        let kubeconfig = Kubeconfig::read_from(kubeconfig).map_err(|error| error.to_string())?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = kube::Client::try_from(config.map_err(|error| error.to_string())?);
        Ok(Self(client.map_err(|error| error.to_string())?))
    }

    /// Posts an object. The error is one of the connection, or of the server itself.
    pub async fn post(&self, path: &str, object: &Value) -> Result<Answer, String> {
        let request = http::Request::post(path).header("content-type", "application/json");
        let request = request.body(kube::client::Body::from(object.to_string().into_bytes()));
        let response = self.0.send(request.map_err(|error| error.to_string())?).await;
        let response = response.map_err(|error| format!("{path}: {error}"))?;
        let (parts, body) = response.into_parts();
        let bytes = body.collect_bytes().await.map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = parts.status.as_u16();
        if status >= 500 {
            return Err(format!("{path}: {status} {text}"));
        }
        let headers = parts.headers.get_all("warning").iter();
        let warnings = headers.map(|value| warning(&String::from_utf8_lossy(value.as_bytes()))).collect();
        let object = serde_json::from_str(&text).map_err(|error| format!("{path}: {error}: {text}"))?;
        Ok(Answer { status, object, warnings })
    }
}

/// The text of a `Warning` header: `299 - "text"`, with `\` before quotes and itself.
fn warning(header: &str) -> String {
    let quoted = header.split_once('"').map_or(header, |(_, rest)| rest.strip_suffix('"').unwrap_or(rest));
    let mut text = String::new();
    let mut characters = quoted.chars();
    while let Some(character) = characters.next() {
        text.extend(if character == '\\' { characters.next() } else { Some(character) });
    }
    text
}
