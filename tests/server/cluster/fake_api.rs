//! An API server that answers what a test tells it to, over real HTTP.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use http::StatusCode;
use tokio::sync::Barrier;
use tokio::task::JoinHandle;

/// What is answered to one path.
#[derive(Clone)]
pub enum Answer {
    /// 200 and this JSON text.
    Json(String),
    /// This code, with a Status.
    Code(u16),
    /// Never anything.
    Hang,
    /// 200 once as many requests are waiting as the barrier wants.
    Together(Arc<Barrier>, String),
    /// These lines of a watch, and then nothing more for ever.
    Watch(String),
}

#[derive(Default)]
struct Shared {
    answers: HashMap<String, Answer>,
    /// Path and query of each request so far.
    seen: Vec<String>,
    /// What the last request for a path accepts.
    accepted: HashMap<String, String>,
    running: usize,
    most_running: usize,
}

/// The server; it ends when dropped.
pub struct FakeApi {
    shared: Arc<Mutex<Shared>>,
    url: http::Uri,
    task: JoinHandle<()>,
}

impl FakeApi {
    /// A server that answers these paths and 404 to all others. A path that ends in `?watch` is for watches of it,
    /// one that ends in `?continue=TOKEN` for a further page.
    pub async fn start(answers: &[(&str, Answer)]) -> FakeApi {
        let answers = answers.iter().map(|(path, answer)| ((*path).to_owned(), answer.clone())).collect();
        let shared = Arc::new(Mutex::new(Shared { answers, ..Shared::default() }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let router = axum::Router::new().fallback(answer).with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        FakeApi { shared, url, task }
    }

    /// How to reach it.
    pub fn config(&self) -> kube::Config {
        kube::Config::new(self.url.clone())
    }

    /// From now on the path is answered so.
    pub fn set(&self, path: &str, answer: Answer) {
        self.shared.lock().unwrap().answers.insert(path.to_owned(), answer);
    }

    /// Path and query of each request whose path contains the text.
    pub fn seen(&self, text: &str) -> Vec<String> {
        let shared = self.shared.lock().unwrap();
        shared.seen.iter().filter(|seen| seen.contains(text)).cloned().collect()
    }

    /// The `Accept` header of the last list or watch (`?watch`) of this path.
    pub fn accepted(&self, path: &str) -> Option<String> {
        self.shared.lock().unwrap().accepted.get(path).cloned()
    }

    /// Most requests for ConfigMaps that were ever waiting at the same time.
    pub fn most_running(&self) -> usize {
        self.shared.lock().unwrap().most_running
    }
}

impl Drop for FakeApi {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(State(shared): State<Arc<Mutex<Shared>>>, request: Request) -> Response {
    let uri = request.uri();
    let query = uri.query().unwrap_or_default();
    let page = query.split('&').find(|pair| pair.starts_with("continue="));
    let path = match page {
        Some(page) => format!("{}?{page}", uri.path()),
        None if query.contains("watch=true") => format!("{}?watch", uri.path()),
        None => uri.path().to_owned(),
    };
    let counted = path.contains("configmaps");
    let answer = {
        let mut shared = shared.lock().unwrap();
        shared.seen.push(uri.to_string());
        let accept = request.headers().get(http::header::ACCEPT).and_then(|accept| accept.to_str().ok());
        shared.accepted.insert(path.clone(), accept.unwrap_or_default().to_owned());
        shared.running += usize::from(counted);
        shared.most_running = shared.most_running.max(shared.running);
        shared.answers.get(&path).cloned().unwrap_or(Answer::Code(404))
    };
    let (code, body) = match answer {
        Answer::Json(text) => (200, Body::from(text)),
        Answer::Code(code) => {
            let status = format!(r#"{{"kind":"Status","apiVersion":"v1","status":"Failure","code":{code}}}"#);
            (code, Body::from(status))
        }
        Answer::Hang => std::future::pending().await,
        Answer::Together(barrier, text) => {
            barrier.wait().await;
            (200, Body::from(text))
        }
        Answer::Watch(lines) => {
            use futures::StreamExt as _;
            let first = futures::stream::iter([Ok::<_, std::io::Error>(lines)]);
            (200, Body::from_stream(first.chain(futures::stream::pending())))
        }
    };
    shared.lock().unwrap().running -= usize::from(counted);
    let response = Response::builder().status(StatusCode::from_u16(code).unwrap());
    response.header(http::header::CONTENT_TYPE, "application/json").body(body).unwrap()
}
