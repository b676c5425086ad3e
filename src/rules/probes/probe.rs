//! How a probe reads: its handler, its numbers as the kubelet takes them, the port that it asks.

use crate::engine::document::Value;
use crate::engine::exec::Simple;
use crate::engine::pod::Container;
use crate::engine::text::quoted;

/// What a probe decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `livenessProbe`: a failure restarts the container.
    Liveness,
    /// `readinessProbe`: a failure takes the pod out of its Services.
    Readiness,
    /// `startupProbe`: the others wait for it; a failure restarts the container.
    Startup,
}

impl Role {
    /// All of them, in the order in which findings come.
    pub const ALL: [Role; 3] = [Role::Liveness, Role::Readiness, Role::Startup];

    /// The member of the container.
    pub fn member(self) -> &'static str {
        match self {
            Role::Liveness => "livenessProbe",
            Role::Readiness => "readinessProbe",
            Role::Startup => "startupProbe",
        }
    }
}

/// One probe of a container, as far as the API server would accept it.
#[derive(Debug, Clone, Copy)]
pub struct Probe<'a> {
    /// What it decides.
    pub role: Role,
    /// Member of the probe that says how to ask: `httpGet`, `exec`, `tcpSocket`, `grpc` or a newer one.
    pub handler: &'a str,
    /// What stands there.
    pub action: &'a Value<'a>,
    /// Its numbers.
    pub tolerance: Tolerance,
}

impl<'a> Probe<'a> {
    /// The container's probe of this role; `None` where it has none, and where the probe is one that the API server
    /// refuses, which is not ours to speak of (TRAPS A23).
    pub fn of(container: &Container<'a>, role: Role) -> Option<Probe<'a>> {
        let value = container.value.get(role.member());
        value.as_object()?;
        let (handler, action) = handler(value)?;
        Some(Probe { role, handler, action, tolerance: Tolerance::of(value)? })
    }

    /// How it asks, for messages: `httpGet "/healthz"`, `tcpSocket`.
    pub fn asks(&self) -> String {
        match self.handler {
            "httpGet" => format!("httpGet {}", quoted(http_path(self.action))),
            // A newer handler's name is a string from the object.
            handler => {
                HANDLERS.iter().find(|known| **known == handler).map_or_else(|| quoted(handler), |it| (*it).to_owned())
            }
        }
    }

    /// Whether both ask the same, absent members filled in with the API's defaults and port names with their numbers.
    pub fn asks_as(&self, other: &Probe<'a>, container: &Container<'a>) -> bool {
        self.handler == other.handler && self.filled_in(container) == other.filled_in(container)
    }

    fn filled_in(&self, container: &Container<'a>) -> Value<'static> {
        let mut action = self.action.to_static();
        // An empty string or list is the same as none.
        for member in ["host", "path", "scheme", "service", "httpHeaders"] {
            let value = &action[member];
            if value.as_str() == Some("") || matches!(value, Value::Array(items) if items.is_empty()) {
                action.set(&[member], Value::Null);
            }
        }
        if self.handler == "httpGet" {
            action.set(&["path"], Value::from(http_path(self.action)));
            if action["scheme"].is_null() {
                action.set(&["scheme"], Value::from("HTTP"));
            }
        }
        if let Some(number) = port_number(container, &self.action["port"]) {
            action.set(&["port"], Value::from(number));
        }
        action
    }
}

/// Handlers of a probe (core/v1 `ProbeHandler`).
const HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];

/// The one handler of a probe: of its members all but the numbers, so that newer handlers count too (TRAPS D04).
/// `None` where there is none, or more than one, or what stands there is no object.
pub fn handler<'a>(probe: &'a Value<'a>) -> Option<(&'a str, &'a Value<'a>)> {
    const NUMBERS: [&str; 6] = [
        "initialDelaySeconds",
        "periodSeconds",
        "timeoutSeconds",
        "successThreshold",
        "failureThreshold",
        "terminationGracePeriodSeconds",
    ];
    let mut found = probe.members().filter(|(name, value)| !value.is_null() && !NUMBERS.contains(name));
    match (found.next(), found.next()) {
        (Some(handler), None) if handler.1.as_object().is_some() => Some(handler),
        _ => None,
    }
}

/// Whether this probe can never fail, because its command does nothing: it kills no start, and a copy of it would wait
/// for none.
pub fn never_fails(probe: &Value<'_>) -> bool {
    handler(probe).is_some_and(|(handler, action)| {
        handler == "exec" && Simple::of(action).is_some_and(|command| command.does_nothing())
    })
}

/// How long a probe lets a container fail before it acts, and the numbers behind it.
///
/// Absent numbers, as in CRDs, and zeros are the API's defaults (`SetDefaults_Probe`, TRAPS D10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tolerance {
    /// `initialDelaySeconds`, default 0.
    pub delay: i64,
    /// `periodSeconds`, default 10.
    pub period: i64,
    /// `timeoutSeconds`, default 1.
    pub timeout: i64,
    /// `failureThreshold`, default 3.
    pub failures: i64,
    /// From the start of the container: `delay` and `failures` periods.
    pub seconds: i64,
}

impl Tolerance {
    /// `None` where a number is no whole number ≥ 0, or more than the API's 32 bits hold.
    pub fn of(probe: &Value<'_>) -> Option<Tolerance> {
        let number = |member: &str, default: i64| match &probe[member] {
            Value::Null => Some(default),
            value => match value.as_i64()? {
                0 => Some(default),
                number => (1..=i64::from(i32::MAX)).contains(&number).then_some(number),
            },
        };
        let delay = number("initialDelaySeconds", 0)?;
        let period = number("periodSeconds", 10)?;
        let timeout = number("timeoutSeconds", 1)?;
        let failures = number("failureThreshold", 3)?;
        Some(Tolerance { delay, period, timeout, failures, seconds: delay + failures * period })
    }

    /// How [`Self::seconds`] come about: `failureThreshold 3 × periodSeconds 10`.
    pub fn sum(&self) -> String {
        let delay = if self.delay > 0 { format!("initialDelaySeconds {} + ", self.delay) } else { String::new() };
        format!("{delay}failureThreshold {} × periodSeconds {}", self.failures, self.period)
    }

    /// While the container runs: `failures` periods.
    pub fn running(&self) -> i64 {
        self.failures * self.period
    }
}

/// The port name that this action of a probe or hook asks for and that its container does not declare: names resolve
/// within the same container only (TRAPS D07). A number in a string is a number to the kubelet.
pub fn undeclared_port<'a>(container: &Container<'a>, action: &'a Value<'a>) -> Option<&'a str> {
    let name = action.get("port").as_str()?;
    (!name.is_empty() && port_number(container, action.get("port")).is_none()).then_some(name)
}

/// The number of a port given as a number, as a number in a string, or as the name of one of the container's ports.
fn port_number(container: &Container<'_>, port: &Value<'_>) -> Option<i64> {
    let Some(name) = port.as_str() else { return port.as_i64() };
    let declared = container.value["ports"].items().iter();
    let named = declared
        .filter(|declared| declared["name"].as_str() == Some(name))
        .find_map(|port| port["containerPort"].as_i64());
    named.or_else(|| name.parse().ok())
}

/// A handler to start from, for messages that say how to mend: what the container's first TCP port allows.
pub fn example_handler(container: &Container<'_>, path: &str) -> String {
    let mut ports = container.value["ports"].items().iter();
    let tcp = ports.find(|port| matches!(port["protocol"].as_str(), None | Some("TCP")));
    match tcp.and_then(|port| port["containerPort"].as_i64()) {
        Some(port) => format!("httpGet: {{path: {path}, port: {port}}}  # or tcpSocket, grpc, exec"),
        None => "exec: {command: [/check]}  # whatever tells that it can serve".to_owned(),
    }
}

fn http_path<'v>(action: &'v Value<'_>) -> &'v str {
    action["path"].as_str().filter(|path| !path.is_empty()).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::pod::Template;

    /// Reads a container and hands it on.
    fn with<T>(container: serde_json::Value, read: impl Fn(&Container<'_>) -> T) -> T {
        let text = json!({"spec": {"containers": [container]}}).to_string();
        let object = Value::parse(&text).unwrap();
        let template = Template { path: &[], value: &object };
        let container = template.regular().next().unwrap();
        read(&container)
    }

    fn tolerance(probe: serde_json::Value) -> Option<(i64, i64, i64, i64, i64)> {
        let text = probe.to_string();
        let read = Tolerance::of(&Value::parse(&text).unwrap())?;
        Some((read.delay, read.period, read.timeout, read.failures, read.seconds))
    }

    fn same(ports: serde_json::Value, readiness: serde_json::Value, liveness: serde_json::Value) -> bool {
        let members = json!({"ports": ports, "readinessProbe": readiness, "livenessProbe": liveness});
        with(members, |container| {
            let readiness = Probe::of(container, Role::Readiness).unwrap();
            Probe::of(container, Role::Liveness).unwrap().asks_as(&readiness, container)
        })
    }

    #[test]
    fn d10_absent_numbers_and_zeros_are_the_apis_defaults() {
        assert_eq!(tolerance(json!({})), Some((0, 10, 1, 3, 30)));
        assert_eq!(
            tolerance(json!({"periodSeconds": 0, "failureThreshold": 0, "timeoutSeconds": 0})),
            Some((0, 10, 1, 3, 30))
        );
        assert_eq!(
            tolerance(
                json!({"initialDelaySeconds": 5, "periodSeconds": 2, "timeoutSeconds": 4, "failureThreshold": 6})
            ),
            Some((5, 2, 4, 6, 17))
        );
    }

    #[test]
    fn a23_numbers_that_are_none() {
        for wrong in [json!("10"), json!(-1), json!(2.5), json!(2_147_483_648_i64), json!([])] {
            assert_eq!(tolerance(json!({"periodSeconds": wrong})), None);
            assert_eq!(tolerance(json!({"initialDelaySeconds": wrong})), None);
        }
        let most = i64::from(i32::MAX);
        let numbers = json!({"periodSeconds": most, "failureThreshold": most, "initialDelaySeconds": most});
        assert_eq!(tolerance(numbers), Some((most, most, 1, most, most + most * most)));
    }

    #[test]
    fn d04_one_handler_whatever_its_name() {
        let handler = |probe: serde_json::Value| {
            let text = probe.to_string();
            let probe = Value::parse(&text).unwrap();
            handler(&probe).map(|(name, _)| name.to_owned())
        };
        assert_eq!(
            handler(json!({"exec": {"command": ["x"]}, "httpGet": null, "periodSeconds": 3})).as_deref(),
            Some("exec")
        );
        assert_eq!(handler(json!({"newer": {}})).as_deref(), Some("newer"));
        assert_eq!(handler(json!({"exec": {}, "tcpSocket": {}})), None);
        assert_eq!(handler(json!({"exec": "true"})), None);
        assert_eq!(handler(json!({"periodSeconds": 3})), None);
    }

    #[test]
    fn d08_the_same_after_defaults() {
        let http = |action: serde_json::Value| json!({"httpGet": action});
        let ports = || json!([{"name": "http", "containerPort": 80}]);
        let full = http(json!({"path": "/", "port": 80, "scheme": "HTTP", "host": "", "httpHeaders": []}));
        assert!(same(ports(), full.clone(), http(json!({"port": "http"}))));
        assert!(same(json!([]), full.clone(), http(json!({"port": 80, "path": ""}))));
        assert!(!same(ports(), full.clone(), http(json!({"port": 80, "scheme": "HTTPS"}))));
        assert!(!same(ports(), full.clone(), http(json!({"port": 80, "path": "/livez"}))));
        assert!(!same(ports(), full.clone(), http(json!({"port": 81}))));
        assert!(!same(ports(), full.clone(), json!({"tcpSocket": {"port": 80}})));
        assert!(!same(ports(), full, http(json!({"port": 80, "httpHeaders": [{"name": "X", "value": "1"}]}))));
        assert!(same(json!(null), json!({"grpc": {"port": 9, "service": ""}}), json!({"grpc": {"port": 9}})));
        assert!(!same(json!(null), json!({"grpc": {"port": 9, "service": "live"}}), json!({"grpc": {"port": 9}})));
        assert!(same(json!(null), json!({"exec": {"command": ["a", "b"]}}), json!({"exec": {"command": ["a", "b"]}})));
        assert!(!same(json!(null), json!({"exec": {"command": ["a", "b"]}}), json!({"exec": {"command": ["b", "a"]}})));
    }

    #[test]
    fn d07_names_resolve_within_the_container() {
        let undeclared = |port: serde_json::Value| {
            let ports = json!([{"containerPort": 9090}, {"name": "http", "containerPort": 8080}]);
            with(json!({"ports": ports, "livenessProbe": {"httpGet": {"port": port}}}), |container| {
                let probe = Probe::of(container, Role::Liveness).unwrap();
                undeclared_port(container, probe.action).map(str::to_owned)
            })
        };
        assert_eq!(undeclared(json!("web")).as_deref(), Some("web"));
        for fine in [json!("http"), json!(8080), json!(1), json!("8080"), json!(""), json!(null), json!({})] {
            assert_eq!(undeclared(fine.clone()), None, "{fine}");
        }
    }

    #[test]
    fn how_it_asks() {
        let asks = |probe: serde_json::Value| {
            with(json!({"livenessProbe": probe}), |container| Probe::of(container, Role::Liveness).unwrap().asks())
        };
        assert_eq!(asks(json!({"httpGet": {"port": 80}})), "httpGet \"/\"");
        assert_eq!(asks(json!({"httpGet": {"port": 80, "path": "/a\nb"}})), "httpGet \"/a\\nb\"");
        assert_eq!(asks(json!({"grpc": {"port": 80}})), "grpc");
        assert_eq!(asks(json!({"ne\nwer": {}})), "\"ne\\nwer\"");
    }
}
