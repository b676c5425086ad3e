//! What a `resources` stanza says, read alike by every rule on requests and limits.

use crate::engine::document::Value;
use crate::engine::facts::Known;
use crate::engine::finding::{Action, Finding};
use crate::engine::pod::{Class, Container, Template};
use crate::engine::text::quoted;
use crate::rules::resources::quantity::Quantity;

/// One `resources` stanza: the pod's (TRAPS H03) or a container's.
#[derive(Debug, Clone, Copy)]
pub struct Stanza<'a> {
    /// The map of `requests` and `limits`; null where there is none.
    pub resources: &'a Value<'a>,
    /// The container; `None` for the pod's own.
    pub container: Option<Container<'a>>,
    template: Template<'a>,
}

/// The pod's stanza, then that of each container which can have one: regular ones, init containers and sidecars.
pub fn stanzas(template: Template<'_>) -> impl Iterator<Item = Stanza<'_>> {
    let pod = Stanza { resources: template.spec().get("resources"), container: None, template };
    let containers = template.containers().filter(|container| container.class != Class::Ephemeral);
    std::iter::once(pod).chain(containers.map(move |container| Stanza::of(template, container)))
}

impl<'a> Stanza<'a> {
    /// That of this container.
    pub fn of(template: Template<'a>, container: Container<'a>) -> Self {
        Stanza { resources: container.value.get("resources"), container: Some(container), template }
    }

    /// Class of the container; `None` for the pod's own.
    pub fn class(&self) -> Option<Class> {
        self.container.map(|container| container.class)
    }

    /// `container "app"`, or `the pod`.
    pub fn subject(&self) -> String {
        self.container
            .map_or_else(|| "the pod".to_owned(), |container| format!("container {}", quoted(container.name())))
    }

    /// A finding at this place below the stanza.
    pub fn finding(&self, rule: &'static str, below: &[&str], message: String) -> Finding {
        let below = [&["resources"], below].concat();
        match self.container {
            Some(container) => Finding::new(rule, container.pointer(&below), message).container(container.name()),
            None => Finding::new(rule, self.template.pointer(&[&["spec"], below.as_slice()].concat()), message),
        }
    }

    /// The quantity in this list (`requests`, `limits`), in thousandths; `None` where there is none.
    pub fn milli(&self, list: &str, name: &str) -> Option<i128> {
        Quantity::read(self.resources.get(list).get(name)).map(Quantity::milli)
    }
}

/// Whether something other than a map stands where a map belongs, which the API server refuses.
pub fn malformed(resources: &Value<'_>) -> bool {
    let odd = |value: &Value<'_>| !value.is_null() && value.as_object().is_none();
    odd(resources) || odd(&resources["requests"]) || odd(&resources["limits"])
}

/// The list that says how much is requested, and the value: the request, else the limit, which a pod gets as its
/// request too (TRAPS H02).
pub fn requested<'a>(resources: &'a Value<'a>, name: &str) -> Option<(&'static str, &'a Value<'a>)> {
    let lists = ["requests", "limits"].into_iter();
    lists.map(|list| (list, resources.get(list).get(name))).find(|(_, value)| !value.is_null())
}

/// The value as its author wrote it.
pub fn written(value: &Value<'_>) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Thousandths of a resource as a manifest would spell them: cores for `cpu` (`2`, `350m`), else bytes in the largest
/// binary unit that divides them (`1536Mi`), begun ones counted whole.
pub fn amount(resource: &str, milli: i128) -> String {
    if resource == "cpu" {
        return if milli % 1000 == 0 { (milli / 1000).to_string() } else { format!("{milli}m") };
    }
    let (mut number, mut unit) = (milli / 1000 + i128::from(milli % 1000 > 0), "");
    for larger in ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"] {
        if number == 0 || number % 1024 != 0 {
            break;
        }
        (number, unit) = (number / 1024, larger);
    }
    format!("{number}{unit}")
}

/// What may supply defaults unseen in the template (TRAPS H02): a sentence's end for the message and a bound for the
/// finding. Neither where the namespace has no LimitRange that sets container defaults.
pub fn limit_range_bound(limit_range: &Known<()>) -> (String, Option<Action>) {
    let says = "; a LimitRange may supply it";
    match limit_range {
        Known::Absent => (String::new(), None),
        Known::Known(()) => (says.to_owned(), Some(Action::Warn)),
        Known::Unknown(reason) => (format!("{says} ({reason})"), Some(Action::Warn)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a23_the_largest_amount_overflows_nothing() {
        assert_eq!(amount("memory", i128::MAX), "170141183460469231731687303715884106");
    }

    #[test]
    fn amounts_read_as_a_manifest_spells_them() {
        assert_eq!(amount("cpu", 2000), "2");
        assert_eq!(amount("cpu", 350), "350m");
        assert_eq!(amount("cpu", 0), "0");
        assert_eq!(amount("memory", 0), "0");
        assert_eq!(amount("memory", 1_610_612_736_000), "1536Mi");
        assert_eq!(amount("memory", 1_073_741_824_000), "1Gi");
        assert_eq!(amount("memory", 1_000_000_000), "1000000");
        assert_eq!(amount("memory", 1), "1");
    }
}
