//! Container images.

pub mod mutable_image_tag;
pub mod reference;
