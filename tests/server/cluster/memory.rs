//! What the caches cost: `cargo test --test server cluster::memory -- --nocapture`. It reads the memory of the whole
//! process, so the test starts one of its own.

use super::*;

const NAMESPACES: usize = 500;
const EACH: usize = 20;
const PAGE: usize = 100;

/// Bytes of this process that are resident, after what is free was given back.
fn resident() -> usize {
    // SAFETY: it takes no pointer, and other threads' allocations stay as they are.
    unsafe { libc::malloc_trim(0) };
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

/// A Deployment as it stands in a cluster: defaults, managed fields, status; 4 labels and 2 ports.
fn deployment(index: usize) -> String {
    let (namespace, name) = (index / EACH, format!("storefront-{}", index % EACH));
    let labels = format!(
        r#"{{"app.kubernetes.io/name":"{name}","app.kubernetes.io/instance":"{name}","app.kubernetes.io/part-of":"shop","tier":"web"}}"#
    );
    let env: Vec<_> = (0..40).map(|n| format!(r#"{{"name":"SETTING_{n}","value":"value of {n}"}}"#)).collect();
    let managed = r#"{"f:metadata":{"f:labels":{}},"f:spec":{"f:replicas":{}}},"#.repeat(20);
    format!(
        r#"{{"metadata":{{"name":"{name}","namespace":"team-{namespace}","resourceVersion":"5","labels":{labels},
        "managedFields":[{managed}{{}}]}},"spec":{{"replicas":3,"selector":{{"matchLabels":{labels}}},"template":{{"metadata":{{"labels":{labels}}},
        "spec":{{"containers":[{{"name":"app","image":"registry.example.com/shop/{name}:1.2.3","env":[{}],
        "ports":[{{"name":"http","containerPort":8080}},{{"name":"metrics","containerPort":9090}}]}}]}}}}}},"status":{{"replicas":3}}}}"#,
        env.join(",")
    )
}

/// A source whose caches of workloads are filled.
async fn filled(api: &FakeApi) -> Live {
    let live = start(api);
    let needs = Needs { workloads: true, ..Needs::default() };
    gather_until(&live, needs, |facts| facts.workloads.known().is_some()).await;
    live
}

/// Set in the process that measures.
const MEASURES: &str = "PLIMSOLL_TEST_MEASURES_MEMORY";

#[test]
fn ten_thousand_deployments_cost_two_kilobytes_each_at_the_most() {
    if std::env::var_os(MEASURES).is_some() {
        tokio::runtime::Runtime::new().unwrap().block_on(measure());
        return;
    }
    let name = "cluster::memory::ten_thousand_deployments_cost_two_kilobytes_each_at_the_most";
    let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
    let output = alone.args(["--exact", name, "--nocapture"]).env(MEASURES, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let measured = text.lines().find(|line| line.contains("bytes kept for each of 10000 Deployments"));
    println!("{}", measured.unwrap_or_else(|| panic!("nothing was measured:\n{text}")));
}

async fn measure() {
    let api = FakeApi::start(&[]).await;
    for path in ["daemonsets", "deployments", "replicasets", "statefulsets"].map(|kind| format!("/apis/apps/v1/{kind}"))
    {
        api.set(&path, list(""));
        api.set(&format!("{path}?watch"), Answer::Watch(String::new()));
    }
    // What a source costs in any case.
    let _empty = filled(&api).await;
    let (pages, mut text) = (NAMESPACES * EACH / PAGE, 0);
    for page in 0..pages {
        let items: Vec<_> = (page * PAGE..(page + 1) * PAGE).map(deployment).collect();
        let next = if page + 1 < pages { format!("page-{}", page + 1) } else { String::new() };
        let body =
            format!(r#"{{"metadata":{{"resourceVersion":"9","continue":"{next}"}},"items":[{}]}}"#, items.join(","));
        text += body.len();
        let query = if page == 0 { String::new() } else { format!("?continue=page-{page}") };
        api.set(&format!("/apis/apps/v1/deployments{query}"), Answer::Json(body));
    }
    let before = resident();
    let live = filled(&api).await;
    let needs = Needs { workloads: true, ..Needs::default() };
    let last = live.gather("team-499", needs, Instant::now() + Duration::from_secs(120)).await;
    assert_eq!(last.workloads.known().map(Vec::len), Some(EACH));
    let (kept, all) = (resident().saturating_sub(before), NAMESPACES * EACH);
    println!("{} bytes of JSON and {} bytes kept for each of {all} Deployments", text / all, kept / all);
    assert!(kept / all < 2048, "{}", kept / all);
}
