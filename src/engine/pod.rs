//! A pod template and its containers by class.

use super::document::Value;
use super::pointer::pointer;

/// What kind of container it is: a rule says which it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// `containers`.
    Regular,
    /// `initContainers` with `restartPolicy: Always`, native sidecars (KEP-753).
    Sidecar,
    /// Any other of `initContainers`.
    Init,
    /// `ephemeralContainers`.
    Ephemeral,
}

/// A pod template (or a Pod) within its object.
#[derive(Debug, Clone, Copy)]
pub struct Template<'a> {
    /// Members from the object's root to here.
    pub path: &'static [&'static str],
    /// `metadata` and `spec` are members of this.
    pub value: &'a Value<'a>,
}

/// A container within its object.
#[derive(Debug, Clone, Copy)]
pub struct Container<'a> {
    /// Its class.
    pub class: Class,
    /// Index in its list.
    pub index: usize,
    /// The container itself.
    pub value: &'a Value<'a>,
    template: &'static [&'static str],
}

impl<'a> Template<'a> {
    /// `spec` of the pod.
    pub fn spec(&self) -> &'a Value<'a> {
        self.value.get("spec")
    }

    /// `metadata` of the pod.
    pub fn metadata(&self) -> &'a Value<'a> {
        self.value.get("metadata")
    }

    /// Members from the object's root to this place below the template.
    pub fn path(&self, below: &[&str]) -> Vec<String> {
        self.path.iter().copied().chain(below.iter().copied()).map(str::to_owned).collect()
    }

    /// JSON Pointer of this place below the template.
    pub fn pointer(&self, below: &[&str]) -> String {
        pointer(&self.path(below))
    }

    /// All containers that are objects: regular ones, then init containers and sidecars, then ephemeral ones.
    pub fn containers(&self) -> impl Iterator<Item = Container<'a>> + use<'a> {
        let (spec, template) = (self.spec(), self.path);
        [Class::Regular, Class::Init, Class::Ephemeral].into_iter().flat_map(move |class| {
            let list = spec.get(list_name(class)).items().iter().enumerate();
            list.filter(|(_, value)| value.as_object().is_some()).map(move |(index, value)| {
                let sidecar = class == Class::Init && value["restartPolicy"].as_str() == Some("Always");
                Container { class: if sidecar { Class::Sidecar } else { class }, index, value, template }
            })
        })
    }

    /// The regular containers.
    pub fn regular(&self) -> impl Iterator<Item = Container<'a>> + use<'a> {
        self.containers().filter(|container| container.class == Class::Regular)
    }

    /// The containers that run as long as the pod does: regular ones, then native sidecars.
    pub fn running(&self) -> impl Iterator<Item = Container<'a>> + use<'a> {
        self.containers().filter(|container| matches!(container.class, Class::Regular | Class::Sidecar))
    }

    /// Whether its pods start again when they end; absent means `Always`.
    pub fn restarts_always(&self) -> bool {
        matches!(self.spec()["restartPolicy"].as_str(), None | Some("Always"))
    }

    /// Whether it serves: a regular container declares a port.
    pub fn serving(&self) -> bool {
        self.regular().any(|container| container.has_ports())
    }
}

impl<'a> Container<'a> {
    /// Its name, `""` where there is none.
    pub fn name(&self) -> &'a str {
        self.value["name"].as_str().unwrap_or_default()
    }

    /// Whether it declares a port.
    pub fn has_ports(&self) -> bool {
        !self.value["ports"].items().is_empty()
    }

    /// Members from the object's root to this place below the container.
    pub fn path(&self, below: &[&str]) -> Vec<String> {
        let mut path: Vec<String> = self.template.iter().map(|segment| (*segment).to_owned()).collect();
        path.extend(["spec".to_owned(), list_name(self.class).to_owned(), self.index.to_string()]);
        path.extend(below.iter().map(|segment| (*segment).to_owned()));
        path
    }

    /// JSON Pointer of this place below the container.
    pub fn pointer(&self, below: &[&str]) -> String {
        pointer(&self.path(below))
    }
}

fn list_name(class: Class) -> &'static str {
    match class {
        Class::Regular => "containers",
        Class::Sidecar | Class::Init => "initContainers",
        Class::Ephemeral => "ephemeralContainers",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_and_pointers() {
        let object = Value::parse(
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"a","ports":[{"containerPort":1}]}],
                "initContainers":[{"name":"i"},{"name":"s","restartPolicy":"Always"}],"ephemeralContainers":null}}}}"#,
        )
        .unwrap();
        let template = Template { path: &["spec", "template"], value: object.at(&["spec", "template"]) };
        let seen: Vec<_> = template.containers().map(|c| (c.name(), c.class, c.pointer(&["image"]))).collect();
        assert_eq!(
            seen,
            [
                ("a", Class::Regular, "/spec/template/spec/containers/0/image".to_owned()),
                ("i", Class::Init, "/spec/template/spec/initContainers/0/image".to_owned()),
                ("s", Class::Sidecar, "/spec/template/spec/initContainers/1/image".to_owned()),
            ]
        );
        assert!(template.serving() && template.restarts_always());
    }
}
