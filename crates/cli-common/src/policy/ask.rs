//! Asks the policy of this host about a box.

use std::fmt::Write as _;

use box_cache::Attachment;
use box_contract::ErrorCode::{BoxUnsigned, PolicyRefused};
use box_digest::Digest;
use box_trust::{
    Accepted, BUNDLE_MEDIA_TYPE, Decision, Origin, PublicKey, Refusal, Requirement, TrustError,
};
use safe_text::shown;

use super::HostPolicy;
use crate::Explanation;

/// The maximum number of signatures whose faults a help lists.
const MAX_FAULTS: usize = 3;

/// The answer of a policy about a box that it does not refuse. The box is accepted after [`Asked::check`].
#[derive(Debug)]
pub struct Asked<'p> {
    policy: &'p HostPolicy,
    /// The box, as the user named it.
    subject: String,
    /// One answer for each group of origins. All must be fulfilled.
    answers: Vec<Answer<'p>>,
}

/// The answer about a box that may have one of several origins.
#[derive(Debug, Default)]
struct Answer<'p> {
    /// The line of the policy by which the box is accepted without a signature.
    allowed: Option<Place>,
    /// The signatures of which one is needed if the box is not `allowed`, with the lines of their rules.
    needed: Vec<(Requirement<'p>, Place)>,
}

/// A line of the policy's file. `None` if a default applies, which no line has.
type Place = Option<usize>;

/// How the policy accepts a box.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The policy's file, with the line if there is one: `/etc/boxbuild/policy.toml:4`.
    pub place: String,
    /// The hint of the key that has signed the box, if a signature is needed.
    pub key: Option<String>,
    /// The digests of the bundles by which the policy accepts the box.
    pub bundles: Vec<Digest>,
    /// The number of the release that the box is, if the rule refuses older ones.
    release: Option<Release>,
}

/// The number of a release by a rule that refuses older ones. `None` is older than every number.
type Release = Option<u64>;

impl Verdict {
    /// Returns the verdict for the user: `signed by the key …, as /etc/boxbuild/policy.toml:4 requires`.
    pub fn line(&self) -> String {
        let place = shown(&self.place);
        match &self.key {
            Some(key) => format!("signed by the key {key}, as {place} requires"),
            None => format!("accepted without a signature by {place}"),
        }
    }
}

/// Why the policy does not accept a box. The messages can contain text of a bundle, so they have to be shown as untrusted text.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    /// The policy refuses the box, whoever has signed it.
    #[error("{subject} is not accepted: {reason} ({place})")]
    Refused {
        /// The box, as the user named it.
        subject: String,
        /// The policy's answer, as a clause.
        reason: String,
        /// The file of the policy and the line.
        place: String,
        /// The kind of the answer.
        refusal: Refusal,
        /// Whether it is the administrator's policy.
        is_administrators: bool,
    },
    /// The box lacks a signature that the policy requires.
    #[error("{subject} is not accepted: {error}, which {place} requires")]
    Unsigned {
        /// The box, as the user named it.
        subject: String,
        /// What it lacks.
        error: Box<TrustError>,
        /// The file of the policy and the line.
        place: String,
        /// The hints of the keys that the line accepts, in their order there.
        keys: Vec<String>,
    },
    /// The box is an older release than the one that the store has under the name.
    #[error("{subject} is not accepted: it {}, and {before}, the box of this name in the store, is release {than}, and {place} refuses older ones", released(*.release))]
    Older {
        /// The box, as the user named it.
        subject: String,
        /// The number of its release. `None` if its signature has none.
        release: Option<u64>,
        /// The digest of the box in the store.
        before: Digest,
        /// The number of its release.
        than: u64,
        /// The file of the policy and the line.
        place: String,
    },
}

fn released(release: Option<u64>) -> String {
    release.map_or_else(|| "has no number of a release".to_owned(), |it| format!("is release {it}"))
}

impl From<&PolicyError> for Explanation {
    fn from(error: &PolicyError) -> Self {
        match error {
            PolicyError::Refused { refusal, is_administrators, .. } => {
                (PolicyRefused, help(*refusal, *is_administrators)).into()
            }
            PolicyError::Unsigned { error, keys, .. } => {
                (BoxUnsigned, unsigned(error, keys)).into()
            }
            PolicyError::Older { .. } => {
                let help = "if you want this one, write its digest after the name: HOST/NAME:TAG@sha256:...";
                (PolicyRefused, help).into()
            }
        }
    }
}

fn help(refusal: Refusal, is_administrators: bool) -> &'static str {
    match refusal {
        Refusal::NoRule if is_administrators => {
            "the administrator of this host can add a rule for the repository"
        }
        Refusal::NoRule => "add a rule for the repository: docs/trust.md has an example",
        Refusal::NoDigest => "write the digest after the name: HOST/NAME:TAG@sha256:...",
        Refusal::Rule => "no signature helps: use a box of another repository",
        Refusal::Local | Refusal::File => {
            "sign it, push it to a repository for which the policy has a rule, and pull it from there"
        }
        Refusal::Malformed => "write the name as HOST/NAME:TAG",
    }
}

/// Returns why each signature of a box was not accepted and which keys would be, or how to sign a box that has none.
fn unsigned(error: &TrustError, keys: &[String]) -> String {
    let TrustError::Missing { faults, .. } = error else {
        return "docs/trust.md describes signatures".to_owned();
    };
    if faults.is_empty() {
        return "the box has no such document at all: `boxbuild sign` and `boxbuild attest` make them, and `boxlaunch pull` fetches \
                those that are new in the registry"
            .to_owned();
    }
    let mut text = "the box has these bundles, which do not count:".to_owned();
    // A key that signed several statements is named once.
    let faults: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let mut different: Vec<&String> = Vec::new();
    for fault in &faults {
        if !different.contains(&fault) {
            different.push(fault);
        }
    }
    for fault in different.iter().take(MAX_FAULTS) {
        let _ = write!(text, "\n{fault}");
    }
    let more = different.len().saturating_sub(MAX_FAULTS);
    if more > 0 {
        let _ = write!(text, "\nand {more} more");
    }
    if !keys.is_empty() {
        text += "\naccepted are the keys of the rule, in its order:";
        keys.iter().for_each(|key| text = format!("{text}\n`{key}`"));
    }
    text
}

impl HostPolicy {
    /// Asks about a box that has one of several origins, at least one: the policy accepts the box if it accepts it from any of
    /// them. `subject` is the box as the user named it. Reads no part of the box.
    ///
    /// # Errors
    /// [`PolicyError::Refused`] for the first origin, if the policy refuses all of them.
    pub fn ask(&self, subject: &str, origins: &[Origin<'_>]) -> Result<Asked<'_>, PolicyError> {
        self.ask_groups(subject, [origins])
    }

    /// Asks about a box that has each of several origins, at least one: the policy must accept the box from all of them.
    ///
    /// # Errors
    /// [`PolicyError::Refused`] for the first origin from which the policy refuses the box.
    pub fn ask_all(&self, subject: &str, origins: &[Origin<'_>]) -> Result<Asked<'_>, PolicyError> {
        self.ask_groups(subject, origins.chunks(1))
    }

    fn ask_groups<'o, 'n: 'o>(
        &self,
        subject: &str,
        groups: impl IntoIterator<Item = &'o [Origin<'n>]>,
    ) -> Result<Asked<'_>, PolicyError> {
        let answers = groups.into_iter().map(|it| self.answer(subject, it));
        let answers = answers.collect::<Result<_, _>>()?;
        Ok(Asked { policy: self, subject: subject.to_owned(), answers })
    }

    fn answer(&self, subject: &str, origins: &[Origin<'_>]) -> Result<Answer<'_>, PolicyError> {
        let (mut answer, mut refused) = (Answer::default(), None);
        for origin in origins {
            let line = self.policy.line(origin);
            match self.policy.decide(origin) {
                Decision::Allowed => answer.allowed = answer.allowed.or(Some(line)),
                Decision::Signed(requirement) => answer.needed.push((requirement, line)),
                Decision::Refused(refusal) => refused = refused.or(Some((refusal, line))),
            }
        }
        if answer.allowed.is_some() || !answer.needed.is_empty() {
            return Ok(answer);
        }
        let (refusal, line) = refused.unwrap_or((Refusal::NoRule, None));
        Err(PolicyError::Refused {
            subject: subject.to_owned(),
            reason: refusal.to_string(),
            place: self.place(line),
            refusal,
            is_administrators: self.is_administrators,
        })
    }

    /// Returns the policy's file with the line, if there is one.
    fn place(&self, line: Place) -> String {
        let path = self.path.display();
        line.map_or_else(|| path.to_string(), |line| format!("{path}:{line}"))
    }
}

impl Asked<'_> {
    /// Returns whether the box is accepted only with a signature, so that [`Self::check`] needs its attachments.
    pub fn needs_signature(&self) -> bool {
        self.answers.iter().any(|it| it.allowed.is_none())
    }

    /// Returns the keys whose signatures count.
    pub fn keys(&self) -> Vec<PublicKey> {
        let needed = self.answers.iter().flat_map(|it| &it.needed);
        needed.flat_map(|(it, _)| it.keys).cloned().collect()
    }

    /// Accepts the box with this digest, or refuses it because none of its attachments is a signature that the policy requires.
    ///
    /// # Errors
    /// [`PolicyError::Unsigned`].
    pub fn check(
        &self,
        digest: &Digest,
        attachments: &[Attachment],
    ) -> Result<Verdict, PolicyError> {
        let verdicts = self.answers.iter().map(|it| self.check_answer(it, digest, attachments));
        let verdicts: Vec<_> = verdicts.collect::<Result<_, _>>()?;
        let bundles = verdicts.iter().flat_map(|it| it.bundles.clone()).collect();
        // `answer` refuses a box without origins, so there is at least one.
        let verdict = verdicts.into_iter().max_by_key(|it| it.key.is_some());
        Ok(Verdict { bundles, ..verdict.unwrap_or_else(|| self.allowed(None)) })
    }

    /// Returns whether [`Self::check_not_older`] needs the attachments of the box before.
    pub fn refuses_older(&self) -> bool {
        self.answers.iter().flat_map(|it| &it.needed).any(|(it, _)| it.refuse_older)
    }

    /// Refuses a box to which a name moves, and which is an older release than `before`, the box that has the name. `verdict` is that of
    /// [`Self::check`] about the later box.
    ///
    /// # Errors
    /// [`PolicyError::Older`]. A box before that the policy does not accept any more is not compared.
    pub fn check_not_older(
        &self,
        verdict: &Verdict,
        before: &Digest,
        attachments: &[Attachment],
    ) -> Result<(), PolicyError> {
        let Some(release) = verdict.release else { return Ok(()) };
        let former = self.check(before, attachments).ok().and_then(|it| it.release.flatten());
        match former {
            Some(than) if release < Some(than) => {
                let (subject, place) = (self.subject.clone(), verdict.place.clone());
                Err(PolicyError::Older { subject, release, before: *before, than, place })
            }
            _ => Ok(()),
        }
    }

    fn allowed(&self, line: Place) -> Verdict {
        Verdict { place: self.policy.place(line), key: None, bundles: Vec::new(), release: None }
    }

    fn check_answer(
        &self,
        answer: &Answer<'_>,
        digest: &Digest,
        attachments: &[Attachment],
    ) -> Result<Verdict, PolicyError> {
        if let Some(line) = answer.allowed {
            return Ok(self.allowed(line));
        }
        let mut lacking = None;
        for (requirement, line) in &answer.needed {
            let bundles = attachments.iter().filter(|it| it.media_type == BUNDLE_MEDIA_TYPE);
            let place = || self.policy.place(*line);
            match requirement.check(bundles.map(|it| it.bytes.as_slice()), digest) {
                Ok(accepted) => return Ok(signed(place(), requirement, &accepted)),
                Err(error) => {
                    let hints = || requirement.keys.iter().map(PublicKey::hint).collect();
                    lacking = lacking.or_else(|| Some((error, place(), hints())));
                }
            }
        }
        let kind = box_trust::Kind::Signature;
        let missing = TrustError::Missing { kind, faults: Vec::new() };
        let none = || (missing, self.policy.place(None), Vec::new());
        let (error, place, keys) = lacking.unwrap_or_else(none);
        let (subject, error) = (self.subject.clone(), Box::new(error));
        Err(PolicyError::Unsigned { subject, error, place, keys })
    }
}

fn signed(place: String, requirement: &Requirement<'_>, accepted: &Accepted<'_>) -> Verdict {
    let all = [Some(&accepted.signature), accepted.provenance.as_ref()];
    let bundles = all.into_iter().flatten().map(|it| it.bundle).collect();
    let release = requirement.refuse_older.then(|| accepted.signature.statement.release());
    Verdict { place, key: Some(accepted.signature.key.hint()), bundles, release }
}
