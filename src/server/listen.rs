//! Connections: accepted, encrypted, bounded, and ended in good order.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::header::{CONNECTION, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus::IntCounter;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use super::crowd::Crowd;
use super::drain::{Drain, Phase};
use super::stall::Impatient;

/// After a failed accept (no file descriptors left): long enough not to spin, short enough to recover at once.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Bytes of one request's headers, and of what is read ahead: API servers send a few hundred, or some thousand with a
/// token. hyper's own bound is 400 KiB, for each of all connections.
const HEADER_BYTES: usize = 64 << 10;

/// Bounds of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Connections {
    /// At the same time; more wait in the kernel's queue. One address gets half of them, and more of it are closed.
    pub max: usize,
    /// For the TLS handshake.
    pub handshake: Duration,
    /// From one answer to the next request's last header. Longer than the 90 s after which Go's client closes an idle
    /// connection, or both ends would race (TRAPS I11).
    pub idle: Duration,
    /// Requests of one connection, so that load spreads over new replicas (TRAPS I12).
    pub requests: u64,
    /// For a client to take what is written to it.
    pub write: Duration,
    /// For the requests under way when we stop accepting.
    pub drain: Duration,
}

impl Default for Connections {
    fn default() -> Self {
        Connections {
            max: 1024,
            handshake: Duration::from_secs(5),
            idle: Duration::from_secs(120),
            requests: 1000,
            write: Duration::from_secs(10),
            drain: Duration::from_secs(10),
        }
    }
}

/// TLS for a listener, and where its failures are counted.
#[derive(Clone)]
pub struct Tls {
    /// Does the handshake.
    pub acceptor: TlsAcceptor,
    /// Counts those that fail.
    pub failures: IntCounter,
}

/// Serves the router on this socket, over TLS or plainly, until the drain has ended and the last connection with it.
pub async fn serve(listener: TcpListener, tls: Option<Tls>, router: Router, limits: Connections, drain: Drain) {
    let crowd = Crowd::new(limits.max);
    let mut connections = JoinSet::new();
    let ended = drain.ended();
    tokio::pin!(ended);
    loop {
        tokio::select! {
            () = &mut ended => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = accept(&listener, &crowd) => match accepted {
                Ok((stream, address, room)) => {
                    let Some(seat) = crowd.seat(address, room) else {
                        tracing::debug!(%address, "has half of all connections: one more is closed");
                        continue;
                    };
                    let (tls, router, drain) = (tls.clone(), router.clone(), drain.clone());
                    connections.spawn(async move {
                        connection(stream, tls, router, limits, drain).await;
                        drop(seat);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    if timeout(limits.drain, all).await.is_err() {
        tracing::warn!("requests that did not end in time are cut off");
        connections.shutdown().await;
    }
}

async fn accept(listener: &TcpListener, crowd: &Arc<Crowd>) -> io::Result<(TcpStream, IpAddr, OwnedSemaphorePermit)> {
    let room = crowd.room().await?;
    let (stream, address) = listener.accept().await?;
    Ok((stream, address.ip(), room))
}

async fn connection(stream: TcpStream, tls: Option<Tls>, router: Router, limits: Connections, drain: Drain) {
    // An answer is written at once and waits for nothing; without this option it might.
    let _ = stream.set_nodelay(true);
    let stream = Impatient::new(stream, limits.write);
    let Some(tls) = tls else {
        return http(stream, router, limits, drain).await;
    };
    match timeout(limits.handshake, tls.acceptor.accept(stream)).await {
        Ok(Ok(stream)) => http(stream, router, limits, drain).await,
        Ok(Err(error)) => {
            tls.failures.inc();
            tracing::debug!(%error, "TLS handshake failed");
        }
        Err(_elapsed) => {
            tls.failures.inc();
            tracing::debug!("TLS handshake timed out");
        }
    }
}

async fn http<S>(stream: S, router: Router, limits: Connections, drain: Drain)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let served = AtomicU64::new(0);
    let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| {
        let last = served.fetch_add(1, Ordering::Relaxed) + 1 >= limits.requests;
        let (router, drain) = (router.clone(), &drain);
        async move {
            let mut response = router.oneshot(request.map(Body::new)).await?;
            // Asked after the decision: whoever began before we left learns it too.
            if last || drain.phase() != Phase::Serving {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response)
        }
    });
    // hyper's time for headers starts with the wait for them: it is the idle timeout too.
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.idle)
        .max_buf_size(HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let served = tokio::select! {
        served = connection.as_mut() => served,
        () = drain.ended() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!(%error, "connection ended with an error");
    }
}
