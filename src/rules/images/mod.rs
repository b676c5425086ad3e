//! Container images.

pub mod mutable_image_tag;
pub mod named;
pub mod reference;
pub mod registry_not_allowed;
pub mod unpinned_image;
