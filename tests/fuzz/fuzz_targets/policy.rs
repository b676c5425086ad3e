//! Bytes to a policy; one that compiles judges a Deployment under each of its profiles, at both endpoints.
#![no_main]

use std::sync::atomic::{AtomicU64, Ordering};

use libfuzzer_sys::fuzz_target;
use plimsoll::engine::facts::{Facts, Reason};
use plimsoll::engine::request::Endpoint;
use plimsoll::engine::{evaluate, needs};
use plimsoll::policy::Policy;
use plimsoll::review::Review;

/// How often the shares are told, runs.
const EVERY: u64 = 1 << 17;

static RUNS: AtomicU64 = AtomicU64::new(0);
static COMPILED: AtomicU64 = AtomicU64::new(0);

const REVIEW: &str = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u",
    "kind":{"group":"apps","version":"v1","kind":"Deployment"},"operation":"CREATE","namespace":"team-a","name":"web",
    "userInfo":{"username":"alice","groups":["platform-breakglass"]},"object":{"metadata":{"name":"web",
    "labels":{"plimsoll.dev/profile":"critical"}},"spec":{"replicas":4,"strategy":{"type":"RollingUpdate",
    "rollingUpdate":{"maxUnavailable":"25%","maxSurge":"25%"}},"template":{"metadata":{"labels":{"app":"web"}},
    "spec":{"terminationGracePeriodSeconds":30,"containers":[{"name":"app","image":"reg.example/app:latest",
    "ports":[{"containerPort":8080}],"livenessProbe":{"httpGet":{"path":"/","port":8080}},
    "envFrom":[{"configMapRef":{"name":"cfg"}}]}]}}}}}}"#;

fuzz_target!(|data: &[u8]| {
    let runs = RUNS.fetch_add(1, Ordering::Relaxed) + 1;
    if runs % EVERY == 0 {
        eprintln!("{runs} runs, {} of them policies", COMPILED.load(Ordering::Relaxed));
    }
    let Ok(text) = std::str::from_utf8(data) else { return };
    let policy = match Policy::parse(text) {
        Ok(policy) => policy,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    COMPILED.fetch_add(1, Ordering::Relaxed);
    assert_eq!(policy.hash, Policy::parse(text).expect("the same text").hash);
    let Ok(request) = Review::parse(REVIEW.as_bytes()).and_then(|review| review.into_request(None)) else { return };
    let facts = Facts::unknown(Reason::NotAsked);
    let profiles = policy.profiles.names().iter().map(|name| Some(name.as_str())).chain([None]);
    for profile in profiles {
        let resolved = policy.resolve(profile, Some("critical"));
        assert_eq!(resolved.settings.len(), policy.settings.len());
        for endpoint in [Endpoint::Mutate, Endpoint::Validate] {
            let _ = needs(endpoint, resolved, &request);
            let verdict = evaluate(endpoint, resolved, &request, &facts);
            assert_eq!(verdict, evaluate(endpoint, resolved, &request, &facts));
            assert!(endpoint == Endpoint::Validate || verdict.allowed());
        }
    }
});
