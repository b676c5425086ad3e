//! Pod specs: containers of every class, what they read, how they start and end.

use plimsoll::engine::document::Value;

use super::entropy::Entropy;
use super::json::{Json, json, map, put, text};

/// What stands for a number that somebody got wrong.
const ODD: &[&str] = &["0", "-1", "2147483648", "9223372036854775807", "3.0", "\"10\"", "null", "true", "[]"];

/// One of these numbers, now and then an odd one, often none at all.
fn number(entropy: &mut Entropy<'_>, percent: u32, usual: &[&str]) -> Option<Json> {
    if !entropy.chance(percent) {
        return None;
    }
    Some(json(if entropy.chance(8) { entropy.pick(ODD) } else { entropy.pick(usual) }))
}

fn put_number(object: &mut Json, path: &str, entropy: &mut Entropy<'_>, percent: u32, usual: &[&str]) {
    if let Some(number) = number(entropy, percent, usual) {
        put(object, path, number);
    }
}

/// A pod's metadata and spec.
pub fn template(entropy: &mut Entropy<'_>) -> Json {
    let mut template = map();
    if !entropy.chance(4) {
        put(&mut template, "metadata.labels.app", text(entropy.pick(&["web", "web", "web", "api", "db"])));
    }
    if entropy.chance(20) {
        template.set(&["metadata", "annotations"], annotations(entropy));
    }
    template.set(&["spec"], spec(entropy));
    template
}

fn annotations(entropy: &mut Entropy<'_>) -> Json {
    json(entropy.pick(&[
        r#"{"team":"a"}"#,
        "null",
        "{}",
        r#"{"checksum/config":"sha256-by-the-chart"}"#,
        r#"{"plimsoll.dev/config-checksum":"forged","team":"a"}"#,
        r#"{"plimsoll.dev/hot-reload":"true"}"#,
        r#"{"plimsoll.dev/config-checksum":7}"#,
        r#"{"a~/b":"c"}"#,
    ]))
}

/// A pod's spec.
pub fn spec(entropy: &mut Entropy<'_>) -> Json {
    let mut spec = map();
    let restarts = entropy.pick(&["", "", "", "", "", "", "Always", "Always", "OnFailure", "Never"]);
    if !restarts.is_empty() {
        put(&mut spec, "restartPolicy", text(restarts));
    }
    if entropy.chance(30) {
        let inits = (0..1 + entropy.below(2)).map(|index| init(entropy, index)).collect();
        put(&mut spec, "initContainers", Value::Array(inits));
    }
    let count = entropy.pick(&[1, 1, 1, 1, 2, 2, 3, 0]);
    let containers = (0..count).map(|index| container(entropy, index)).collect();
    put(&mut spec, "containers", Value::Array(containers));
    if entropy.chance(4) {
        put(&mut spec, "ephemeralContainers", json(r#"[{"name":"debug","image":"busybox","stdin":true}]"#));
    }
    let grace = &["30", "30", "60", "10", "5", "0", "35", "1", "600", "-5"];
    put_number(&mut spec, "terminationGracePeriodSeconds", entropy, 40, grace);
    volumes(&mut spec, entropy);
    placement(&mut spec, entropy);
    spec
}

fn volumes(spec: &mut Json, entropy: &mut Entropy<'_>) {
    if !entropy.chance(50) {
        return;
    }
    let known = [
        r#"{"name":"config","configMap":{"name":"cfg"}}"#,
        r#"{"name":"config","configMap":{"name":"cfg","items":[{"key":"k","path":"p"}],"optional":true}}"#,
        r#"{"name":"secret","secret":{"secretName":"keys"}}"#,
        r#"{"name":"all","projected":{"sources":[{"configMap":{"name":"cfg"}},{"secret":{"name":"keys"}},null]}}"#,
        r#"{"name":"all","projected":{"sources":null}}"#,
        r#"{"name":"data","persistentVolumeClaim":{"claimName":"data"}}"#,
        r#"{"name":"data","persistentVolumeClaim":{"claimName":"data"}}"#,
        r#"{"name":"data","persistentVolumeClaim":{"claimName":"data"}}"#,
        r#"{"name":"more","persistentVolumeClaim":{"claimName":"data","readOnly":true}}"#,
        r#"{"name":"tz","hostPath":{"path":"/etc/localtime"}}"#,
        r#"{"name":"tz","hostPath":{"path":"/usr/share/zoneinfo/Europe/Berlin","type":"File"}}"#,
        r#"{"name":"tmp","emptyDir":{}}"#,
        r#"{"name":"odd","configMap":null}"#,
    ];
    let volumes = (0..1 + entropy.below(3)).map(|_| json(entropy.pick(&known))).collect();
    put(spec, "volumes", Value::Array(volumes));
}

fn placement(spec: &mut Json, entropy: &mut Entropy<'_>) {
    if entropy.chance(7) {
        put(spec, "hostNetwork", Value::Bool(true));
    }
    if entropy.chance(4) {
        put(spec, "resources", json(r#"{"requests":{"cpu":"1","memory":"1Gi"}}"#));
    }
    if entropy.chance(5) {
        put(spec, "nodeName", text("node-1"));
    }
    if entropy.chance(5) {
        put(spec, "os", json(r#"{"name":"windows"}"#));
    }
    if entropy.chance(10) {
        let term = r#"{"labelSelector":{"matchLabels":{"app":"web"}},"topologyKey":"kubernetes.io/hostname"}"#;
        let affinity = match entropy.below(3) {
            0 => format!(r#"{{"podAntiAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":[{term}]}}}}"#),
            1 => format!(r#"{{"podAffinity":{{"requiredDuringSchedulingIgnoredDuringExecution":[{term}]}}}}"#),
            _ => r#"{"podAntiAffinity":{"preferredDuringSchedulingIgnoredDuringExecution":[{"weight":1}]}}"#.to_owned(),
        };
        put(spec, "affinity", json(&affinity));
    }
    if entropy.chance(8) {
        let spread = r#"[{"maxSkew":1,"topologyKey":"zone","whenUnsatisfiable":"ScheduleAnyway"}]"#;
        put(spec, "topologySpreadConstraints", json(spread));
    }
}

/// Names of containers; the last ones are no names at all, and the first may come twice.
pub const NAMES: &[&str] = &["app", "web", "sidecar", "log", "app", "", "a/b", "a,b", " x "];

fn named(entropy: &mut Entropy<'_>, index: usize) -> Json {
    let mut container = map();
    let name = if entropy.chance(12) { entropy.pick(NAMES) } else { NAMES[index % 4] };
    put(&mut container, "name", text(name));
    let image = entropy.pick(&[
        "reg.example/app:1.2.3",
        "reg.example/app:1.2.3",
        "reg.example:5000/app:1.2.3@sha256:0000000000000000000000000000000000000000000000000000000000000000",
        "app:latest",
        "reg.example:5000/app",
        "app:LATEST",
        "",
        "docker.io/library/nginx:1",
        ":",
    ]);
    put(&mut container, "image", text(image));
    container
}

fn init(entropy: &mut Entropy<'_>, index: usize) -> Json {
    let mut container = named(entropy, index + 2);
    resources(&mut container, entropy);
    if entropy.chance(50) {
        put(&mut container, "restartPolicy", text("Always"));
        lifecycle(&mut container, entropy, 60);
        ports(&mut container, entropy);
    }
    if entropy.chance(20) {
        put(&mut container, "livenessProbe", probe(entropy));
    }
    reads(&mut container, entropy);
    container
}

fn container(entropy: &mut Entropy<'_>, index: usize) -> Json {
    let mut container = named(entropy, index);
    ports(&mut container, entropy);
    resources(&mut container, entropy);
    probes(&mut container, entropy);
    lifecycle(&mut container, entropy, 45);
    reads(&mut container, entropy);
    container
}

fn ports(container: &mut Json, entropy: &mut Entropy<'_>) {
    if entropy.chance(35) {
        return;
    }
    let ports = entropy.pick(&[
        r#"[{"containerPort":8080}]"#,
        r#"[{"name":"http","containerPort":8080,"protocol":"TCP"}]"#,
        r#"[{"name":"http","containerPort":8080},{"name":"metrics","containerPort":9090}]"#,
        r#"[{"containerPort":8080,"hostPort":8080}]"#,
        r#"[{"containerPort":8080},{"containerPort":8080}]"#,
        r#"[{"name":"http","containerPort":8080,"hostPort":80},{"name":"http","containerPort":8081,"hostPort":80}]"#,
        r#"[{"containerPort":"8080"},null,7]"#,
        "null",
    ]);
    put(container, "ports", json(ports));
}

fn resources(container: &mut Json, entropy: &mut Entropy<'_>) {
    let cpu = ["\"100m\"", "\"1\"", "2", "\"1000\"", "\"0\"", "0.5", "\"x\"", "null", "\"100Mi\""];
    let memory = ["\"128Mi\"", "\"1Gi\"", "\"128M\"", "\"256m\"", "0", "\"0\"", "\"1e9\"", "\"9E999\"", "\"-1\""];
    for of in ["requests", "limits"] {
        for (name, amounts) in [("cpu", &cpu), ("memory", &memory)] {
            if entropy.chance(55) {
                let amount = if entropy.chance(70) { amounts[entropy.below(4)] } else { entropy.pick(amounts) };
                put(container, &format!("resources.{of}.{name}"), json(amount));
            }
        }
    }
    if entropy.chance(3) {
        put(container, "resources", json(entropy.pick(&["null", "{}", r#"{"requests":null}"#, "[]"])));
    }
}

fn probes(container: &mut Json, entropy: &mut Entropy<'_>) {
    if entropy.chance(45) {
        put(container, "livenessProbe", probe(entropy));
    }
    if entropy.chance(45) {
        let same = entropy.chance(40) && !container["livenessProbe"].is_null();
        let probe = if same { container["livenessProbe"].clone() } else { probe(entropy) };
        put(container, "readinessProbe", probe);
    }
    if entropy.chance(15) {
        put(container, "startupProbe", probe(entropy));
    }
}

fn probe(entropy: &mut Entropy<'_>) -> Json {
    let mut probe = json(entropy.pick(&[
        r#"{"httpGet":{"path":"/healthz","port":8080}}"#,
        r#"{"httpGet":{"path":"/healthz","port":8080}}"#,
        r#"{"httpGet":{"path":"/healthz","port":"http"}}"#,
        r#"{"httpGet":{"path":"/ready","port":"nowhere"}}"#,
        r#"{"tcpSocket":{"port":8080}}"#,
        r#"{"tcpSocket":{"port":9090}}"#,
        r#"{"exec":{"command":["true"]}}"#,
        r#"{"exec":{"command":["sh","-c","exit 0"]}}"#,
        r#"{"exec":{"command":["cat","/tmp/ok"]}}"#,
        r#"{"grpc":{"port":9090,"service":null}}"#,
        r#"{"newHandler":{"z":1,"a":2}}"#,
        r#"{"httpGet":{"port":80},"exec":{"command":[":"]}}"#,
        r#"{"exec":{"command":null}}"#,
        r#"{"httpGet":"8080"}"#,
        "{}",
        "null",
    ]));
    if probe.is_null() {
        return probe;
    }
    put_number(&mut probe, "initialDelaySeconds", entropy, 25, &["5", "10", "30", "60", "300"]);
    put_number(&mut probe, "periodSeconds", entropy, 35, &["10", "5", "1", "2", "30", "3600"]);
    put_number(&mut probe, "timeoutSeconds", entropy, 35, &["1", "2", "5", "20", "60"]);
    put_number(&mut probe, "successThreshold", entropy, 15, &["1", "1", "2"]);
    put_number(&mut probe, "failureThreshold", entropy, 35, &["3", "1", "2", "1", "5", "30", "2147483647"]);
    put_number(&mut probe, "terminationGracePeriodSeconds", entropy, 8, &["30", "1", "60"]);
    probe
}

fn lifecycle(container: &mut Json, entropy: &mut Entropy<'_>, percent: u32) {
    if !entropy.chance(percent) {
        return;
    }
    let lifecycle = entropy.pick(&[
        r#"{"preStop":{"sleep":{"seconds":10}}}"#,
        r#"{"preStop":{"sleep":{"seconds":5}}}"#,
        r#"{"preStop":{"sleep":{"seconds":40}}}"#,
        r#"{"preStop":{"sleep":{"seconds":0}}}"#,
        r#"{"preStop":{"sleep":{"seconds":-3}}}"#,
        r#"{"preStop":{"sleep":{"seconds":9223372036854775807}}}"#,
        r#"{"preStop":{"sleep":null}}"#,
        r#"{"preStop":{"exec":{"command":["sleep","20"]}}}"#,
        r#"{"preStop":{"exec":{"command":["sh","-c","sleep 130"]}}}"#,
        r#"{"preStop":{"exec":{"command":["/bin/drain"]}}}"#,
        r#"{"preStop":{"httpGet":{"port":"http","path":"/quit"}}}"#,
        r#"{"preStop":{"tcpSocket":{"port":8080}}}"#,
        r#"{"postStart":{"exec":{"command":["true"]}}}"#,
        r#"{"postStart":{"tcpSocket":{"port":1}},"preStop":null}"#,
        r#"{"preStop":{}}"#,
        "{}",
        "null",
        "\"none\"",
    ]);
    put(container, "lifecycle", json(lifecycle));
}

fn reads(container: &mut Json, entropy: &mut Entropy<'_>) {
    if entropy.chance(30) {
        let variables = [
            r#"{"name":"A","value":"1"}"#,
            r#"{"name":"A","value":"2"}"#,
            r#"{"name":"TZ","value":"Europe/Berlin"}"#,
            r#"{"name":"B","valueFrom":{"configMapKeyRef":{"name":"cfg","key":"b"}}}"#,
            r#"{"name":"C","valueFrom":{"configMapKeyRef":{"name":"more","key":"c","optional":true}}}"#,
            r#"{"name":"D","valueFrom":{"secretKeyRef":{"name":"keys","key":"d"}}}"#,
            r#"{"name":"E","valueFrom":{"fieldRef":{"fieldPath":"status.podIP"}}}"#,
            r#"{"name":"F","valueFrom":{"configMapKeyRef":{"name":"","key":null}}}"#,
            "null",
        ];
        let list = (0..1 + entropy.below(4)).map(|_| json(entropy.pick(&variables))).collect();
        put(container, "env", Value::Array(list));
    }
    if entropy.chance(20) {
        let sources = entropy.pick(&[
            r#"[{"configMapRef":{"name":"cfg"}}]"#,
            r#"[{"configMapRef":{"name":"cfg"}},{"secretRef":{"name":"keys","optional":true}}]"#,
            r#"[{"prefix":"X_","configMapRef":{"name":"more"}},{}]"#,
            r#"[{"configMapRef":null},null]"#,
        ]);
        put(container, "envFrom", json(sources));
    }
    if entropy.chance(40) {
        let mounts = entropy.pick(&[
            r#"[{"name":"config","mountPath":"/etc/app"}]"#,
            r#"[{"name":"config","mountPath":"/etc/app/a.conf","subPath":"a.conf"},{"name":"tz","mountPath":"/etc/localtime"}]"#,
            r#"[{"name":"secret","mountPath":"/keys","subPath":"tls.key"},{"name":"data","mountPath":"/data"}]"#,
            r#"[{"name":"all","mountPath":"/all","subPathExpr":"$(A)"},{"name":"tz","mountPath":"/etc/localtime"}]"#,
            r#"[{"name":"none","mountPath":null},7]"#,
        ]);
        put(container, "volumeMounts", json(mounts));
    }
}
