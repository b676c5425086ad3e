//! Every place of a pod template that names an image.

use crate::engine::finding::Finding;
use crate::engine::pod::{Class, Container, Template};
use crate::engine::text::quoted;

/// One place that names an image.
#[derive(Debug, Clone, Copy)]
pub struct Named<'a> {
    /// The text, as the author wrote it.
    pub image: &'a str,
    /// Of a container, or of an image volume (KEP-4639).
    holder: Holder<'a>,
}

#[derive(Debug, Clone, Copy)]
enum Holder<'a> {
    Container(Container<'a>),
    /// The template, the index of the volume, and its name.
    Volume(Template<'a>, usize, &'a str),
}

/// The images of containers, init containers and sidecars, with `ephemeral` those of ephemeral containers, and those of
/// image volumes. What is no string is left out.
pub fn named(template: Template<'_>, ephemeral: bool) -> impl Iterator<Item = Named<'_>> {
    let containers = template.containers().filter(move |container| match container.class {
        Class::Regular | Class::Sidecar | Class::Init => true,
        Class::Ephemeral => ephemeral,
    });
    let of_containers = containers.filter_map(|container| {
        let image = container.value.get("image").as_str()?;
        Some(Named { image, holder: Holder::Container(container) })
    });
    let volumes = template.spec().get("volumes").items().iter().enumerate();
    let of_volumes = volumes.filter_map(move |(index, volume)| {
        let image = volume.get("image").get("reference").as_str()?;
        let name = volume.get("name").as_str().unwrap_or_default();
        Some(Named { image, holder: Holder::Volume(template, index, name) })
    });
    of_containers.chain(of_volumes)
}

impl Named<'_> {
    /// `container "app"` or `volume "model"`.
    pub fn subject(&self) -> String {
        match self.holder {
            Holder::Container(container) => format!("container {}", quoted(container.name())),
            Holder::Volume(_, _, name) => format!("volume {}", quoted(name)),
        }
    }

    /// A finding at this place, with the image that mends it and a comment for the line.
    pub fn finding(&self, rule: &'static str, message: String, image: &str, comment: &str) -> Finding {
        let image = quoted(image);
        match self.holder {
            Holder::Container(container) => Finding::new(rule, container.pointer(&["image"]), message)
                .container(container.name())
                .mend(format!("image: {image}  # {comment}")),
            Holder::Volume(template, index, _) => {
                let pointer = template.pointer(&["spec", "volumes", &index.to_string(), "image", "reference"]);
                Finding::new(rule, pointer, message).mend(format!("image:\n  reference: {image}  # {comment}"))
            }
        }
    }
}
