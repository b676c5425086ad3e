//! The ConfigMap source, against answers as an API server gives them.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::channel::mpsc;
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};

use super::{said, store, with_spec};
use crate::engine::finding::Action::{Audit, Deny, Warn};
use crate::policy::source::ConfigMapSource;

type Answer = UnsyncBoxBody<Bytes, std::convert::Infallible>;

/// An API server with one ConfigMap in it.
#[derive(Clone, Default)]
struct Server {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    config_map: Option<Value>,
    /// What the watch will say, and whether a watch has begun.
    events: Option<mpsc::UnboundedReceiver<String>>,
    requests: Vec<String>,
    notes: Vec<String>,
    events_forbidden: bool,
}

fn config_map(data: Value) -> Value {
    let metadata = json!({"name": "policy", "namespace": "plimsoll", "resourceVersion": "7", "uid": "u"});
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data})
}

fn with_action(action: &str) -> Value {
    config_map(json!({"policy.yaml": with_spec(&format!("  rules: {{missing-requests: {action}}}"))}))
}

fn status(code: u16, reason: &str) -> (u16, Value) {
    let message = format!("configmaps \"policy\": {reason}");
    (
        code,
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "reason": reason,
        "code": code, "metadata": {}}),
    )
}

impl Server {
    fn with(config_map: Option<Value>) -> Self {
        let server = Server::default();
        server.state.lock().unwrap().config_map = config_map;
        server
    }

    fn source(&self) -> ConfigMapSource {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { Ok::<_, std::convert::Infallible>(server.answer(request).await) }
        });
        ConfigMapSource::new(Client::new(service, "default"), "plimsoll", "policy")
    }

    async fn answer(&self, request: Request<Body>) -> Response<Answer> {
        let (head, body) = request.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        let mut state = self.state.lock().unwrap();
        state.requests.push(format!("{} {}", head.method, head.uri));
        let query = head.uri.query().unwrap_or_default();
        let (code, value) = match head.uri.path() {
            "/api/v1/namespaces/plimsoll/configmaps/policy" => match &state.config_map {
                Some(config_map) => (200, config_map.clone()),
                None => status(404, "NotFound"),
            },
            "/api/v1/namespaces/plimsoll/configmaps" if query.contains("watch=true") => {
                return match state.events.take() {
                    Some(events) => {
                        let frames = events.map(|line| Ok(Frame::data(Bytes::from(line))));
                        Response::new(StreamBody::new(frames).boxed_unsync())
                    }
                    None => Response::new(StreamBody::new(futures::stream::pending()).boxed_unsync()),
                };
            }
            "/api/v1/namespaces/plimsoll/configmaps" => {
                let items: Vec<&Value> = state.config_map.iter().collect();
                let list = json!({"apiVersion": "v1", "kind": "ConfigMapList", "metadata": {"resourceVersion": "7"},
                    "items": items});
                (200, list)
            }
            "/apis/events.k8s.io/v1/namespaces/plimsoll/events" if head.method == Method::POST => {
                let event: Value = serde_json::from_slice(&body).unwrap();
                state.notes.push(event["note"].as_str().unwrap_or_default().to_owned());
                if state.events_forbidden { status(403, "Forbidden") } else { (201, event) }
            }
            other => panic!("nobody should ask for {other}"),
        };
        let body = Full::new(Bytes::from(value.to_string())).boxed_unsync();
        let mut response = Response::new(body);
        *response.status_mut() = StatusCode::from_u16(code).unwrap();
        response
    }
}

#[tokio::test]
async fn at_the_start_the_config_map_is_the_policy() {
    let store = store();
    assert!(Server::with(Some(with_action("deny"))).source().load(&store).await.is_ok());
    assert_eq!(store.current().map(|policy| said(&policy, "missing-requests")), Some((Deny, false)));
}

#[tokio::test]
async fn at_the_start_a_config_map_without_policy_is_an_error() {
    let told = async |config_map| {
        let store = store();
        let told = Server::with(config_map).source().load(&store).await.map(|_| ()).map_err(|error| error.to_string());
        assert!(store.current().is_none());
        told.unwrap_err()
    };
    assert_eq!(
        told(None).await,
        "there is no ConfigMap plimsoll/policy; create it with the policy under the key policy.yaml"
    );
    assert_eq!(
        told(Some(config_map(json!({"policy.yml": "x", "README": "y"})))).await,
        "ConfigMap plimsoll/policy has no policy under the key policy.yaml; it has README, policy.yml"
    );
    assert_eq!(
        told(Some(config_map(json!({"policy.yaml": " \n"})))).await,
        "ConfigMap plimsoll/policy has no policy under the key policy.yaml; it is empty"
    );
    assert_eq!(
        told(Some(with_action("denyy"))).await,
        "key policy.yaml of ConfigMap plimsoll/policy is no valid policy:\nline 5, column 29: \
         spec.rules.missing-requests: `denyy` is not known here; did you mean `deny`?"
    );
}

/// One watch through updates good and bad, deletion and return; `forbidden`: Events are refused by RBAC.
async fn watch(forbidden: bool) -> Server {
    let server = Server::with(Some(with_action("warn")));
    let (sender, receiver) = mpsc::unbounded();
    {
        let mut state = server.state.lock().unwrap();
        (state.events, state.events_forbidden) = (Some(receiver), forbidden);
    }
    let store = store();
    let source = server.source();
    let in_force = || store.current().map(|policy| said(&policy, "missing-requests").0);
    let until = async |wanted: &dyn Fn() -> bool| {
        while !wanted() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let say = |kind: &str, object: Value| {
        sender.unbounded_send(format!("{}\n", json!({"type": kind, "object": object}))).unwrap();
    };
    let notes = || server.state.lock().unwrap().notes.len();
    let story = async {
        until(&|| in_force() == Some(Warn)).await;
        say("MODIFIED", with_action("deny"));
        until(&|| in_force() == Some(Deny)).await;

        say("MODIFIED", with_action("never"));
        until(&|| notes() == 1).await;
        assert_eq!((in_force(), store.failures()), (Some(Deny), 1));

        say("MODIFIED", config_map(json!({})));
        until(&|| notes() == 2).await;
        assert_eq!((in_force(), store.failures()), (Some(Deny), 2));

        say("DELETED", config_map(json!({})));
        until(&|| store.failures() == 3).await;
        assert_eq!(in_force(), Some(Deny));
        let missing = "there is no ConfigMap plimsoll/policy; create it with the policy under the key policy.yaml";
        assert_eq!(store.trouble().as_deref(), Some(missing));

        say("ADDED", with_action("audit"));
        until(&|| in_force() == Some(Audit)).await;
        assert_eq!(store.trouble(), None);
    };
    tokio::select! {
        () = source.watch(&store) => {}
        () = story => {}
        // Only so that a failure ends.
        () = tokio::time::sleep(Duration::from_secs(60)) => panic!("in force: {:?}, {:?}", in_force(), store.trouble()),
    }
    server
}

#[tokio::test]
async fn i14_i15_a_watched_config_map_replaces_or_keeps() {
    let server = watch(false).await;
    let state = server.state.lock().unwrap();
    assert_eq!(
        state.notes[0],
        "key policy.yaml of ConfigMap plimsoll/policy is no valid policy:\nline 5, column 29: \
         spec.rules.missing-requests: `never` is not known here; allowed: off, audit, warn, deny\nThe last good policy \
         stays in force."
    );
    // Only ever this one ConfigMap, so that RBAC can name it.
    let asked = state.requests.iter().filter(|request| request.contains("/configmaps"));
    for request in asked {
        assert!(request.contains("fieldSelector=metadata.name%3Dpolicy"), "{request}");
    }
}

#[tokio::test]
async fn forbidden_events_do_not_stop_the_watch() {
    watch(true).await;
}
