//! A small HTTPS client: one connection, HTTP/1.1, as API servers speak it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::Bytes;
use base64::Engine as _;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio_rustls::TlsConnector;

/// An answer.
#[derive(Debug)]
pub struct Reply {
    /// HTTP status.
    pub status: u16,
    /// The `Connection` header.
    pub connection: Option<String>,
    /// The body.
    pub text: String,
    /// The body as JSON, null where it is none.
    pub json: Value,
}

impl Reply {
    /// `response` of the AdmissionReview.
    pub fn response(&self) -> &Value {
        &self.json["response"]
    }

    /// Whether the object may be stored.
    pub fn allowed(&self) -> bool {
        assert_eq!(self.status, 200, "{}", self.text);
        self.response()["allowed"].as_bool().unwrap()
    }

    /// The denial's message.
    pub fn message(&self) -> &str {
        self.response()["status"]["message"].as_str().unwrap_or_default()
    }

    /// The warnings.
    pub fn warnings(&self) -> Vec<&str> {
        self.response()["warnings"].as_array().into_iter().flatten().filter_map(Value::as_str).collect()
    }

    /// The decoded patch. `patch` and `patchType` are there together or not at all (TRAPS A04).
    pub fn patch(&self) -> Option<Value> {
        let response = self.response().as_object().unwrap();
        assert_eq!(response.contains_key("patch"), response.contains_key("patchType"), "{}", self.text);
        let patch = response.get("patch")?;
        assert_eq!(response["patchType"], "JSONPatch");
        let bytes = base64::engine::general_purpose::STANDARD.decode(patch.as_str().unwrap()).unwrap();
        Some(serde_json::from_slice(&bytes).unwrap())
    }
}

/// One connection.
pub struct Client<'r> {
    runtime: &'r Runtime,
    sender: SendRequest<Full<Bytes>>,
    /// The certificate that the server showed.
    pub certificate: Vec<u8>,
}

/// Takes any certificate: tests look at it themselves where it matters.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, signature, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, signature, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// What a client offers and trusts.
pub fn tls(roots: Option<RootCertStore>, protocols: &[&str]) -> ClientConfig {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let mut config = match roots {
        Some(roots) => builder.with_root_certificates(roots).with_no_client_auth(),
        None => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
            .with_no_client_auth(),
    };
    config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
    config
}

impl<'r> Client<'r> {
    /// Connects, whatever the certificate.
    pub fn connect(runtime: &'r Runtime, address: SocketAddr) -> io::Result<Self> {
        Self::connect_with(runtime, address, tls(None, &[]))
    }

    /// Connects with these TLS settings.
    pub fn connect_with(runtime: &'r Runtime, address: SocketAddr, config: ClientConfig) -> io::Result<Self> {
        runtime.block_on(async {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            let name = ServerName::try_from("localhost").unwrap();
            let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
            let certificate = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
            let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
            runtime.spawn(connection);
            Ok(Client { runtime, sender, certificate })
        })
    }

    /// Posts a review.
    pub fn post(&mut self, path: &str, review: &Value) -> Reply {
        self.send("POST", path, Some("application/json"), review.to_string().into_bytes())
    }

    /// Sends anything.
    pub fn send(&mut self, method: &str, path: &str, content_type: Option<&str>, body: Vec<u8>) -> Reply {
        self.try_send(method, path, content_type, body).unwrap()
    }

    /// Sends anything, also where the connection may be gone.
    pub fn try_send(
        &mut self,
        method: &str,
        path: &str,
        content_type: Option<&str>,
        body: Vec<u8>,
    ) -> hyper::Result<Reply> {
        let mut request = hyper::Request::builder().method(method).uri(path).header("host", "localhost");
        if let Some(content_type) = content_type {
            request = request.header("content-type", content_type);
        }
        let request = request.body(Full::new(Bytes::from(body))).unwrap();
        self.runtime.block_on(async {
            self.sender.ready().await?;
            let response = self.sender.send_request(request).await?;
            let status = response.status().as_u16();
            let connection = response.headers().get("connection").map(|value| value.to_str().unwrap().to_owned());
            let bytes = response.into_body().collect().await?.to_bytes();
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            let json = serde_json::from_str(&text).unwrap_or_default();
            Ok(Reply { status, connection, text, json })
        })
    }
}

/// A connection below HTTP.
pub struct Raw(tokio_rustls::client::TlsStream<TcpStream>);

impl Raw {
    /// Connects.
    pub async fn connect(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        Raw(TlsConnector::from(Arc::new(tls(None, &[]))).connect(name, stream).await.unwrap())
    }

    /// Writes a whole request and reads nothing.
    pub async fn write_request(&mut self, path: &str, body: &str) {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.0.write_all(head.as_bytes()).await.unwrap();
        self.0.write_all(body.as_bytes()).await.unwrap();
        self.0.flush().await.unwrap();
    }
}
