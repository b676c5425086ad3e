//! What is told of ConfigMaps and Secrets beside their digests, and of the Rollout CRD.

use super::*;
use plimsoll::engine::facts::ConfigFacts;

fn keys(name: &str, keys: &[&str]) -> Reference {
    Reference { keys: Some(keys.iter().map(|key| (*key).to_owned()).collect()), ..config_map(name) }
}

#[tokio::test]
async fn f03_one_read_tells_the_digest_and_the_facts_of_each_object() {
    let path = |name: &str| format!("/api/v1/namespaces/shop/configmaps/{name}");
    let text = r#"{"kind":"ConfigMap","immutable":true,"data":{"a":"1","long":"four"},"binaryData":{"b":"AAAA"}}"#;
    let api = FakeApi::start(&[]).await;
    api.set(&path("cfg"), Answer::Json(text.to_owned()));
    api.set(&path("plain"), Answer::Json(r#"{"data":{"a":"1"},"immutable":null}"#.to_owned()));
    api.set(&path("forbidden"), Answer::Code(403));
    api.set(&path("failed"), Answer::Code(500));
    let live = start(&api);
    let named = keys("cfg", &["z", "a", "b", "c"]);
    let configs = [named.clone(), config_map("cfg"), config_map("plain"), config_map("gone"), config_map("failed")];
    let needs = Needs {
        digests: vec![config_map("cfg"), config_map("forbidden"), config_map("gone")],
        configs: [&configs[..], &[config_map("forbidden")]].concat(),
        ..Needs::default()
    };
    let facts = gather(&live, needs).await;
    assert!(facts.digest(&config_map("cfg")).known().is_some());
    let bytes = (1 + 1) + (4 + 4) + (1 + 3);
    let told = ConfigFacts {
        immutable: true,
        bytes,
        missing_keys: vec!["c".to_owned(), "z".to_owned()],
        binary_keys: vec!["b".to_owned()],
    };
    assert_eq!(*facts.config(&named), Known::Known(told));
    let whole = ConfigFacts { immutable: true, bytes, missing_keys: Vec::new(), binary_keys: Vec::new() };
    assert_eq!(*facts.config(&config_map("cfg")), Known::Known(whole));
    let plain = ConfigFacts { immutable: false, bytes: 2, missing_keys: Vec::new(), binary_keys: Vec::new() };
    assert_eq!(*facts.config(&config_map("plain")), Known::Known(plain));
    assert_eq!(*facts.config(&config_map("gone")), Known::Absent);
    assert_eq!(facts.digest(&config_map("gone")), Known::Absent);
    assert_eq!(*facts.config(&config_map("failed")), Known::Unknown(Reason::Failed));
    assert_eq!(*facts.config(&config_map("forbidden")), Known::Unknown(Reason::Forbidden));
    assert_eq!(facts.digest(&config_map("forbidden")), Known::Unknown(Reason::Forbidden));
    assert_eq!(api.seen("configmaps").len(), 5, "one request an object");
}

#[tokio::test]
async fn j01_of_secrets_nothing_is_told_without_a_key() {
    let path = "/api/v1/namespaces/shop/secrets/s";
    let api = FakeApi::start(&[(path, Answer::Json(r#"{"kind":"Secret","data":{"k":"eA=="}}"#.to_owned()))]).await;
    let needs = || Needs { configs: vec![secret("s")], ..digests(&[secret("s")]) };
    let facts = gather(&start(&api), needs()).await;
    assert_eq!(*facts.config(&secret("s")), Known::Unknown(Reason::NotAllowed));
    assert_eq!(api.seen("secrets"), Vec::<String>::new());

    let digest_key = Some(DigestKey::new(&[7; 32]).unwrap());
    let live = Live::start(api.config(), Options { digest_key, ..Options::default() }).unwrap();
    let facts = gather(&live, needs()).await;
    let told = ConfigFacts { immutable: false, bytes: 2, missing_keys: Vec::new(), binary_keys: Vec::new() };
    assert_eq!(*facts.config(&secret("s")), Known::Known(told));
    assert!(facts.digest(&secret("s")).known().is_some());
    assert_eq!(api.seen("secrets"), [path], "one get");
}

#[tokio::test]
async fn i04_facts_of_configs_keep_the_deadline_and_the_bounds() {
    let api = FakeApi::start(&[(CFG, Answer::Hang)]).await;
    let live = start(&api);
    let needs = Needs { configs: vec![config_map("cfg")], ..Needs::default() };
    let facts = live.gather("shop", needs, Instant::now() + Duration::from_millis(50)).await;
    assert_eq!(*facts.config(&config_map("cfg")), Known::Unknown(Reason::TimedOut));

    let configs: Vec<_> = (0..17).map(|index| config_map(&format!("c{index}"))).collect();
    let facts = gather(&live, Needs { configs, ..Needs::default() }).await;
    assert_eq!(facts.configs.len(), 17);
    assert!(facts.configs.values().all(|told| *told == Known::Unknown(Reason::TooMany)));
    assert_eq!(api.seen("configmaps/c1"), Vec::<String>::new());
}

const CRD: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/rollouts.argoproj.io";

fn crd_sleep() -> Needs {
    Needs { crd_sleep: true, ..Needs::default() }
}

/// A CRD whose template is open, or lists nothing.
fn crd(open: bool) -> Answer {
    let template = if open { r#"{"x-kubernetes-preserve-unknown-fields":true}"# } else { "{}" };
    Answer::Json(format!(
        r#"{{"spec":{{"versions":[{{"name":"v1alpha1","served":true,"schema":{{"openAPIV3Schema":{{"properties":
        {{"spec":{{"properties":{{"template":{template}}}}}}}}}}}}}]}}}}"#
    ))
}

#[tokio::test]
async fn b12_the_rollout_crd_is_read_once_when_asked_for() {
    let api = FakeApi::start(&[(CRD, crd(true))]).await;
    let live = start(&api);
    gather(&live, digests(&[config_map("cfg")])).await;
    assert_eq!(api.seen("customresourcedefinitions"), Vec::<String>::new(), "only when needed");
    let burst = futures::future::join_all((0..8).map(|_| gather(&live, crd_sleep()))).await;
    assert!(burst.iter().all(|facts| facts.crd_sleep == Known::Known(true)));
    api.set(CRD, Answer::Code(500));
    assert_eq!(gather(&live, crd_sleep()).await.crd_sleep, Known::Known(true));
    assert_eq!(api.seen("customresourcedefinitions"), [CRD]);

    let api = FakeApi::start(&[(CRD, crd(false))]).await;
    assert_eq!(gather(&start(&api), crd_sleep()).await.crd_sleep, Known::Known(false));
}

#[tokio::test]
async fn b12_a_crd_that_is_missing_forbidden_or_late_is_asked_for_again() {
    let api = FakeApi::start(&[]).await;
    let live = start(&api);
    assert_eq!(gather(&live, crd_sleep()).await.crd_sleep, Known::Absent);
    for (answer, reason) in [
        (Answer::Code(403), Reason::Forbidden),
        (Answer::Code(500), Reason::Failed),
        (Answer::Json("<html>".to_owned()), Reason::Failed),
    ] {
        api.set(CRD, answer);
        assert_eq!(gather(&live, crd_sleep()).await.crd_sleep, Known::Unknown(reason));
    }
    api.set(CRD, Answer::Hang);
    let late = live.gather("shop", crd_sleep(), Instant::now() + Duration::from_millis(50)).await;
    assert_eq!(late.crd_sleep, Known::Unknown(Reason::TimedOut));
    api.set(CRD, crd(true));
    assert_eq!(gather(&live, crd_sleep()).await.crd_sleep, Known::Known(true));
}
