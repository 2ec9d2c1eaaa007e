//! Who may use a volume that a box declares.
//!
//! The author of a box chooses its name, and so the names of its volumes. So a volume remembers the origins of the box that has made
//! it, and is refused to a box that has none of them: a box of a stranger with the same name does not get the home of another one.

use box_digest::Digest;

/// How many texts a volume remembers. Without a limit, the record would grow with each new build.
const KEPT: usize = 64;

/// The origins of a box that declares volumes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Claim {
    /// Texts such as the path of a Boxfile or `registry.example/acme/agent`, the best known one first.
    origins: Vec<String>,
    /// The digest of the box.
    digest: String,
    /// The digest of the box that this one replaces by an update: the user names both.
    predecessor: Option<String>,
}

impl Claim {
    /// Makes the claim of a box with these origins. `predecessor` is the box that an update replaces by it.
    pub fn new(
        origins: impl IntoIterator<Item = String>,
        digest: &Digest,
        predecessor: Option<Digest>,
    ) -> Self {
        let predecessor = predecessor.map(|it| it.to_string());
        Self { origins: origins.into_iter().collect(), digest: digest.to_string(), predecessor }
    }

    /// Returns whether a volume with this record may be used. A volume with an empty record is from an earlier version.
    pub(super) fn permits(&self, recorded: &[String]) -> bool {
        recorded.is_empty()
            || self.is_same(recorded)
            || self.has_origin(recorded)
            || self.is_successor(recorded)
    }

    /// Returns the best known origin, for messages.
    pub(super) fn shown(&self) -> &str {
        self.origins.first().unwrap_or(&self.digest)
    }

    /// Adds a box that uses a volume to the record of the volume. The origins of the first box stay. The box itself is added, so that it
    /// starts again when its name means a newer one. The origins of an equal box are not: its next version can be another one. A volume that
    /// a box has used with an earlier version (`is_used`, and no record) is left to a box whose origin is known.
    pub(super) fn add_to(&self, recorded: &mut Vec<String>, is_used: bool) {
        let is_first = recorded.is_empty();
        if is_first && is_used && self.origins.is_empty() {
            return;
        }
        if is_first || (self.is_successor(recorded) && !self.has_origin(recorded)) {
            recorded.extend(self.origins.iter().cloned());
        }
        if !self.is_same(recorded) {
            recorded.push(self.digest.clone());
        }
        if recorded.len() > KEPT {
            // The oldest box, which is after the origins.
            let at = recorded.iter().position(|it| it.starts_with(DIGEST)).unwrap_or_default();
            recorded.remove(at);
        }
    }

    fn is_same(&self, recorded: &[String]) -> bool {
        recorded.contains(&self.digest)
    }

    fn is_successor(&self, recorded: &[String]) -> bool {
        self.predecessor.as_ref().is_some_and(|it| recorded.contains(it))
    }

    fn has_origin(&self, recorded: &[String]) -> bool {
        recorded.iter().any(|it| self.origins.contains(it))
    }
}

/// The beginning of a digest's text.
const DIGEST: &str = "sha256:";

/// Returns the repository of a reference: without its tag and digest. For example, `host:5000/acme/agent` for
/// `host:5000/acme/agent:stable`.
pub fn repository(reference: &str) -> &str {
    let reference = reference.split('@').next().unwrap_or_default();
    let name = reference.rfind('/').map_or(0, |at| at + 1);
    let tag = reference[name..].rfind(':').map(|at| name + at);
    &reference[..tag.unwrap_or(reference.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(origins: &[&str], content: &str) -> Claim {
        let origins = origins.iter().map(|it| (*it).to_owned());
        Claim::new(origins, &Digest::of(content.as_bytes()), None)
    }

    #[test]
    fn a_box_of_the_same_origin_or_the_same_box_is_permitted_and_no_other() {
        let mut recorded = Vec::new();
        let first = claim(&["/home/me/a/Boxfile"], "1");
        assert!(first.permits(&recorded), "a volume of an earlier version");
        first.add_to(&mut recorded, false);
        for (origins, content, expected) in [
            (&["/home/me/a/Boxfile"][..], "2", true),
            (&[], "1", true),
            (&["/home/me/b/Boxfile"], "2", false),
            (&["registry.example/acme/agent"], "2", false),
            (&[], "2", false),
        ] {
            assert_eq!(claim(origins, content).permits(&recorded), expected, "{origins:?}");
        }
        claim(&["/home/me/a/Boxfile"], "2").add_to(&mut recorded, false);
        assert!(claim(&[], "2").permits(&recorded), "it starts again by its digest");
        assert_eq!(recorded[0], "/home/me/a/Boxfile", "messages name the first one");
    }

    #[test]
    fn who_publishes_an_equal_box_gets_no_volume_for_the_next_one() {
        let mut recorded = Vec::new();
        claim(&["good.example/app"], "1").add_to(&mut recorded, false);
        let copy = claim(&["evil.example/app"], "1");
        assert!(copy.permits(&recorded));
        copy.add_to(&mut recorded, false);
        assert!(!claim(&["evil.example/app"], "2").permits(&recorded));
    }

    #[test]
    fn an_update_gives_the_volumes_to_the_box_that_the_user_names() {
        let mut recorded = Vec::new();
        claim(&["/home/me/a/Boxfile"], "1").add_to(&mut recorded, false);
        let successor_of = |content: &str, by: Claim| Claim {
            predecessor: Some(Digest::of(content.as_bytes()).to_string()),
            ..by
        };
        let update = claim(&["registry.example/acme/agent"], "2");
        let of_third = successor_of("9", update.clone());
        assert!(!of_third.permits(&recorded), "a volume that the box before has not used");
        let update = successor_of("1", update);
        assert!(update.permits(&recorded));
        update.add_to(&mut recorded, false);
        assert!(claim(&["registry.example/acme/agent"], "3").permits(&recorded));
        assert!(claim(&[], "1").permits(&recorded), "the old box starts again if the update fails");
    }

    #[test]
    fn a_volume_of_an_earlier_version_is_left_to_a_box_of_a_known_origin() {
        let mut recorded = Vec::new();
        claim(&[], "1").add_to(&mut recorded, true);
        assert!(claim(&["/home/me/a/Boxfile"], "2").permits(&recorded));
        claim(&["/home/me/a/Boxfile"], "2").add_to(&mut recorded, true);
        assert!(!claim(&["/home/me/b/Boxfile"], "3").permits(&recorded));
    }

    #[test]
    fn a_box_without_an_origin_owns_what_it_uses_first_also_if_a_start_has_made_it() {
        let mut recorded = Vec::new();
        claim(&[], "1").add_to(&mut recorded, false);
        assert!(claim(&[], "1").permits(&recorded));
        assert!(!claim(&["evil.example/agent"], "2").permits(&recorded));
    }

    #[test]
    fn a_volume_remembers_so_many_boxes_and_no_more() {
        let mut recorded = Vec::new();
        for number in 0..100 {
            claim(&["/home/me/a/Boxfile"], &number.to_string()).add_to(&mut recorded, false);
        }
        assert_eq!(recorded.len(), KEPT);
        assert!(claim(&["/home/me/a/Boxfile"], "new").permits(&recorded));
    }

    #[test]
    fn a_repository_has_no_tag_and_no_digest() {
        for (reference, expected) in [
            ("host.example/acme/agent:stable", "host.example/acme/agent"),
            ("host.example:5000/agent@sha256:00", "host.example:5000/agent"),
            ("host.example:5000/agent:1@sha256:00", "host.example:5000/agent"),
        ] {
            assert_eq!(repository(reference), expected);
        }
    }
}
