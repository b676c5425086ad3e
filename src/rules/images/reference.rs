//! Image references, taken apart as container runtimes do (TRAPS H01).

/// The parts of `[registry[:port]/]repository[:tag][@digest]`.
///
/// The parts are not checked against the grammar of references: what is malformed never starts, which is the kubelet's
/// to report (`InvalidImageName`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImageReference<'a> {
    /// Registry and repository: `reg:5000/app`.
    pub name: &'a str,
    /// The tag written; `None` where there is none, which runtimes read as `latest`.
    pub tag: Option<&'a str>,
    /// The digest, `sha256:…`. With it the tag decides nothing.
    pub digest: Option<&'a str>,
}

impl<'a> ImageReference<'a> {
    /// Takes the reference apart: first the digest after `@`, then the tag after the last `:` that follows the last `/`
    /// (an earlier colon is a registry's port). `None` for an empty name, which the API server decides about.
    pub fn parse(text: &'a str) -> Option<Self> {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest).filter(|digest| !digest.is_empty())),
            None => (text, None),
        };
        let repository = rest.rfind('/').map_or(0, |slash| slash + 1);
        let (name, tag) = match rest[repository..].rfind(':') {
            Some(colon) => (&rest[..repository + colon], Some(&rest[repository + colon + 1..])),
            None => (rest, None),
        };
        (!name.is_empty()).then_some(ImageReference { name, tag, digest })
    }

    /// The tag that is pulled: the one written, else `latest`.
    pub fn pulled_tag(&self) -> &'a str {
        self.tag.unwrap_or("latest")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIGEST: &str = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    fn parts(text: &str) -> Option<(&str, Option<&str>, Option<&str>)> {
        ImageReference::parse(text).map(|image| (image.name, image.tag, image.digest))
    }

    #[test]
    fn h01_colons_are_not_tags() {
        assert_eq!(parts("app"), Some(("app", None, None)));
        assert_eq!(parts("app:latest"), Some(("app", Some("latest"), None)));
        assert_eq!(parts("reg:5000/app"), Some(("reg:5000/app", None, None)));
        assert_eq!(parts("reg:5000/app:1.2"), Some(("reg:5000/app", Some("1.2"), None)));
        assert_eq!(parts("reg:5000/team/app:latest"), Some(("reg:5000/team/app", Some("latest"), None)));
        assert_eq!(parts("app:LATEST"), Some(("app", Some("LATEST"), None)));
    }

    #[test]
    fn h01_the_digest_is_split_off_first() {
        assert_eq!(parts(&format!("app@{DIGEST}")), Some(("app", None, Some(DIGEST))));
        assert_eq!(parts(&format!("app:latest@{DIGEST}")), Some(("app", Some("latest"), Some(DIGEST))));
        assert_eq!(parts(&format!("reg:5000/app@{DIGEST}")), Some(("reg:5000/app", None, Some(DIGEST))));
        assert_eq!(parts("app:latest@"), Some(("app", Some("latest"), None)));
    }

    #[test]
    fn a23_nonsense_is_taken_apart_or_skipped() {
        assert_eq!(parts(""), None);
        assert_eq!(parts(":latest"), None);
        assert_eq!(parts("@sha256:00"), None);
        assert_eq!(parts("app:"), Some(("app", Some(""), None)));
        assert_eq!(parts("/"), Some(("/", None, None)));
        assert_eq!(parts("ä/ö:ü"), Some(("ä/ö", Some("ü"), None)));
    }
}
