//! Plain reads of the API server: exact objects and single pages, answered or given up, never retried and never kept.

use bytes::Bytes;
use http::{StatusCode, header};
use http_body_util::{BodyExt, Limited};
use kube::api::{GetParams, ListParams};
use serde::Deserialize;

use super::name::{is_label, is_subdomain};
use crate::engine::document::Value;
use crate::engine::facts::{Reason, ServerVersion};

/// Longest answer that is read. An object is at most 1.5 MiB in etcd; a page of revisions is a handful of templates.
const MAX_BODY: usize = 8 << 20;

/// Longest error answer that is read, so that its connection can be used again.
const MAX_ERROR_BODY: usize = 64 << 10;

/// Most objects of a page.
const PAGE: u32 = 500;

/// A collection of objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Collection {
    /// `/api/v1` or `/apis/GROUP/VERSION`.
    root: &'static str,
    /// Resource, plural.
    plural: &'static str,
}

pub(super) const CONFIG_MAPS: Collection = Collection { root: "/api/v1", plural: "configmaps" };
pub(super) const SECRETS: Collection = Collection { root: "/api/v1", plural: "secrets" };
pub(super) const QUOTAS: Collection = Collection { root: "/api/v1", plural: "resourcequotas" };
pub(super) const LIMIT_RANGES: Collection = Collection { root: "/api/v1", plural: "limitranges" };
pub(super) const REPLICA_SETS: Collection = Collection { root: "/apis/apps/v1", plural: "replicasets" };
pub(super) const CONTROLLER_REVISIONS: Collection = Collection { root: "/apis/apps/v1", plural: "controllerrevisions" };
pub(super) const NAMESPACES: Collection = Collection { root: "/api/v1", plural: "namespaces" };
pub(super) const CRDS: Collection =
    Collection { root: "/apis/apiextensions.k8s.io/v1", plural: "customresourcedefinitions" };

impl Collection {
    /// In this namespace; `None` for a text that is no namespace and so must not become a URL (TRAPS J03).
    fn within(self, namespace: &str) -> Option<kube::core::Request> {
        let path = || format!("{}/namespaces/{namespace}/{}", self.root, self.plural);
        is_label(namespace).then(|| kube::core::Request::new(path()))
    }
}

/// Answers of the API server.
#[derive(Clone)]
pub(super) struct Api {
    client: kube::Client,
}

impl Api {
    pub(super) fn new(client: kube::Client) -> Self {
        Api { client }
    }

    /// One object as JSON text; `None` where there is none. Read without `resourceVersion`, so that the answer is not
    /// older than the request (TRAPS F02).
    pub(super) async fn get(
        &self,
        collection: Collection,
        namespace: &str,
        name: &str,
    ) -> Result<Option<Bytes>, Reason> {
        if !is_subdomain(name) {
            // An object of such a name cannot exist.
            return Ok(None);
        }
        let request = collection.within(namespace).ok_or(Reason::Failed)?;
        let request = request.get(name, &GetParams::default()).map_err(|_| Reason::Failed)?;
        self.send(request).await
    }

    /// As [`Api::get`], of an object that is in no namespace.
    pub(super) async fn get_global(&self, collection: Collection, name: &str) -> Result<Option<Bytes>, Reason> {
        if !is_subdomain(name) {
            return Ok(None);
        }
        let request = kube::core::Request::new(format!("{}/{}", collection.root, collection.plural));
        self.send(request.get(name, &GetParams::default()).map_err(|_| Reason::Failed)?).await
    }

    /// The first page of a list as JSON text.
    pub(super) async fn list(&self, collection: Collection, namespace: &str, labels: &str) -> Result<Bytes, Reason> {
        let request = collection.within(namespace).ok_or(Reason::Failed)?;
        let mut parameters = ListParams::default().limit(PAGE);
        if !labels.is_empty() {
            parameters = parameters.labels(labels);
        }
        let request = request.list(&parameters).map_err(|_| Reason::Failed)?;
        self.send(request).await?.ok_or(Reason::Failed)
    }

    /// The server's version.
    pub(super) async fn version(&self) -> Result<ServerVersion, Reason> {
        #[derive(Deserialize)]
        struct Version {
            major: String,
            minor: String,
        }
        let request = http::Request::get("/version").body(Vec::new()).map_err(|_| Reason::Failed)?;
        let body = self.send(request).await?.ok_or(Reason::Failed)?;
        let Version { major, minor } = parse(&body)?;
        ServerVersion::parse(&format!("{major}.{minor}")).ok_or(Reason::Failed)
    }

    /// The body of a 2xx answer, `None` for a 404. Reads through [`kube::Client::send`] and not `request`, which logs
    /// whole bodies that it cannot parse (TRAPS J06).
    async fn send(&self, mut request: http::Request<Vec<u8>>) -> Result<Option<Bytes>, Reason> {
        request.headers_mut().insert(header::ACCEPT, header::HeaderValue::from_static("application/json"));
        let failed = |error: &dyn std::fmt::Display| {
            tracing::debug!(%error, "look-up failed");
            Reason::Failed
        };
        let response = self.client.send(request.map(kube::client::Body::from)).await.map_err(|error| failed(&error))?;
        let status = response.status();
        let limit = if status.is_success() { MAX_BODY } else { MAX_ERROR_BODY };
        let body = Limited::new(response.into_body(), limit).collect().await;
        match status {
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::FORBIDDEN => Err(Reason::Forbidden),
            status if status.is_success() => Ok(Some(body.map_err(|error| failed(&error))?.to_bytes())),
            status => Err(failed(&status)),
        }
    }
}

/// Reads a JSON answer. The error is not logged: it may quote what it stumbled over.
pub(super) fn parse<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Reason> {
    serde_json::from_slice(body).map_err(|_| Reason::Failed)
}

/// Reads a JSON answer as a document.
pub(super) fn document(body: &[u8]) -> Result<Value<'_>, Reason> {
    let text = std::str::from_utf8(body).map_err(|_| Reason::Failed)?;
    Value::parse(text).map_err(|_| Reason::Failed)
}
