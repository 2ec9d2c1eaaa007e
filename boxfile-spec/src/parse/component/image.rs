//! `image "oci:…"`, and `binary "PATH"` or `binary "URL" sha256="…"`: where a component's files come
//! from.

use box_contract::rules::{is_layout_name, is_repository, is_tag};
use box_contract::{DEFAULT_TAG, DockerName, ImageRef};
use box_digest::{Algorithm as _, Digest, Sha256, algorithm};

use crate::parse::reader::Reader;
use crate::schema::Kind;
use crate::syntax::tree::{Data, Value};
use crate::syntax::word::TYPOGRAPHIC;
use crate::value::{self, Read};
use crate::{Binary, form};
use box_contract::image_ref::{DOCKER_ARCHIVE, OCI, OCI_ARCHIVE, REGISTRY, WITH_PATH};
use diagnostics::suggest::nearest;
use diagnostics::{Diagnostic, Spanned};
use safe_text::quote;

/// Returns the help that lists the forms of a reference.
fn forms() -> String {
    format!(
        "an image is \"{OCI}DIR\", \"{OCI_ARCHIVE}FILE\", \"{DOCKER_ARCHIVE}FILE\" or \
         \"{REGISTRY}HOST/NAME\", each perhaps followed by `:TAG`"
    )
}

/// Reads where the agent's program is.
pub(super) fn binary(reader: &mut Reader<'_>) -> Option<Binary> {
    let source = reader.arg();
    let remote = source.is_some_and(value::is_url);
    if remote && reader.optional_prop("sha256").is_none() {
        let sha256 = form::prop(reader.syntax(), "sha256", "\"…\"");
        reader.report_missing_as(
            "a binary that is downloaded needs its `sha256`",
            "without `sha256`",
            &format!("add `{sha256}`, of which `sha256sum FILE` prints the 64 digits"),
        );
    }
    let sha256 = reader.optional("sha256");
    let source: Spanned<String> = reader.read_first(source)?;
    match remote {
        false => Some(Binary::Local { path: source, sha256 }),
        true => Some(Binary::Remote { url: source, sha256: sha256? }),
    }
}

impl Read for ImageRef {
    fn read(value: &Value, name: &str, _: Kind) -> Result<Self, Diagnostic> {
        reference(value, name)
    }
}

fn reference(value: &Value, name: &str) -> Result<ImageRef, Diagnostic> {
    if matches!(&value.data, Data::Text(text) if text.is_empty()) {
        return Err(error(value, &format!("`{name}` is empty"), "nothing between the quotes")
            .with_help("name an image, such as \"oci:images/agent\""));
    }
    let whole = String::read(value, name, Kind::Path)?;
    check_password(value, &whole)?;
    let (text, digest) = split_digest(value, &whole)?;
    let form = WITH_PATH.into_iter().find_map(|form| Some((form, text.strip_prefix(form)?)));
    match form {
        Some((OCI, place)) => {
            let (path, tag) = place_and_tag(value, place, "directory")?;
            Ok(ImageRef::OciLayout { path, tag, digest })
        }
        Some((OCI_ARCHIVE, place)) => {
            let (path, tag) = place_and_tag(value, place, "file")?;
            Ok(ImageRef::OciArchive { path, tag, digest })
        }
        Some(_) if digest.is_some() => {
            let message = "a docker archive has no digests to name";
            Err(error(value, message, "after the `@`")
                .with_help("remove `@sha256:…`; the lock pins what is in the archive"))
        }
        Some((_, place)) => {
            let (path, tag) = place_and_name(value, place)?;
            Ok(ImageRef::DockerArchive { path, tag })
        }
        None => registry(value, text, digest),
    }
}

/// Refuses a user or a password in front of a registry's host, without showing it.
fn check_password(value: &Value, text: &str) -> Result<(), Diagnostic> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or(rest);
    let has_user = host.split_once('@').is_some_and(|(_, after)| algorithm(after).is_none())
        || rest.rsplit_once('@').is_some_and(|(_, after)| after.contains('/'));
    if !has_user || WITH_PATH.iter().any(|form| text.starts_with(form)) {
        return Ok(());
    }
    let message = "an image reference takes no user or password";
    let help = "leave out what is in front of the `@`, and log in: docker login HOST";
    Err(error(value, message, "it would be in the checkout").with_help(help).hiding(value.span))
}

/// Splits off the digest after an `@`.
fn split_digest<'v>(value: &Value, text: &'v str) -> Result<(&'v str, Option<Digest>), Diagnostic> {
    let (name, digest) = text.rsplit_once('@').unwrap_or((text, ""));
    let malformed = |message: &str, help: &str| {
        error(value, message, "after the `@`").with_help(format!("write {help}"))
    };
    let in_registry = !WITH_PATH.iter().any(|form| text.starts_with(form));
    let before_colon = || digest.split_once(':').map(|(it, _)| it).filter(|_| in_registry);
    match (algorithm(digest).or_else(before_colon), digest.parse()) {
        (None, _) => Ok((text, None)),
        (Some(_), Ok(digest)) => Ok((name, Some(digest))),
        (Some(Sha256::NAME), Err(_)) => Err(malformed(
            "the image's digest is not a sha256",
            "`@sha256:` and 64 hexadecimal digits in lower case",
        )),
        (Some(algorithm), Err(_)) => Err(malformed(
            &format!("a digest of the algorithm {algorithm} is not supported"),
            "the image's sha256: `@sha256:` and 64 hexadecimal digits",
        )),
    }
}

/// A path, and the tag or name after its colon.
type Place<T> = Result<(String, Option<T>), Diagnostic>;

/// Reads the path of a layout, and the name of one of its images.
fn place_and_tag(value: &Value, place: &str, what: &str) -> Place<String> {
    let (path, tag) = split_place(value, place, what)?;
    match tag {
        Some(tag) if !is_layout_name(tag) => Err(wrong_layout_name(value, tag)),
        tag => Ok((path, tag.map(str::to_owned))),
    }
}

/// Returns the error of what cannot name an image of a layout.
fn wrong_layout_name(value: &Value, name: &str) -> Diagnostic {
    let message = format!("{} does not name an image of a layout", quote(name));
    error(value, &message, "what follows the colon").with_help(
        "write the name that the layout's index.json gives the image (`org.opencontainers.image.ref.name`): \
         a tag such as `v1`, or a reference such as `registry.example.org/team/app:v1`",
    )
}

/// Reads the file of a docker archive, and the name of one of its images: a tag, or as docker has it,
/// `NAME[:TAG]`.
fn place_and_name(value: &Value, place: &str) -> Place<String> {
    let (path, name) = split_place(value, place, "file")?;
    if let Some(name) = name.filter(|name| !is_tag(name)) {
        registry(value, name, None)?;
    }
    Ok((path, name.map(str::to_owned)))
}

/// Splits a path from what follows it.
fn split_place<'p>(value: &Value, place: &'p str, what: &str) -> Place<&'p str> {
    // The first colon: a tag holds none, so a path with colons would be read as a wrong one.
    let (path, tag) = place.split_once(':').map_or((place, None), |(path, tag)| (path, Some(tag)));
    if path.is_empty() {
        let message = format!("the reference names no {what}");
        return Err(error(value, &message, "nothing after the first colon").with_help(forms()));
    }
    Ok((path.to_owned(), tag))
}

fn checked_tag(value: &Value, tag: &str) -> Result<String, Diagnostic> {
    if is_tag(tag) {
        return Ok(tag.to_owned());
    }
    let message = format!("{} is not a tag", quote(tag));
    Err(error(value, &message, "what follows the colon").with_help(
        "a tag has letters, digits, `_`, `.` and `-`, at most 128, and begins with none of the last two",
    ))
}

/// Reads `docker://HOST/NAME[:TAG]` and what people type: `NAME[:TAG]`.
fn registry(value: &Value, text: &str, digest: Option<Digest>) -> Result<ImageRef, Diagnostic> {
    let explicit = text.strip_prefix(REGISTRY);
    let refuse = |label: &str| {
        let message = format!("{} is not a valid image reference", quote(text));
        Err(error(value, &message, label).with_help(intended(text).unwrap_or_else(forms)))
    };
    if explicit.is_none() && (text.contains("://") || misspelt_kind(text).is_some()) {
        return refuse("unknown scheme");
    }
    let name = DockerName::parse(explicit.unwrap_or(text));
    let Some(DockerName { host, repository, tag }) =
        name.filter(|name| is_repository(&name.repository))
    else {
        return refuse("not a repository name");
    };
    let tag = tag.map(|tag| checked_tag(value, tag)).transpose()?;
    let tag = tag.or_else(|| digest.is_none().then(|| DEFAULT_TAG.to_owned()));
    Ok(ImageRef::Registry { host, repository, tag, digest })
}

/// Returns what a reference was probably meant to be whose kind is misspelt: a path follows it, which
/// no tag looks like.
fn misspelt_kind(text: &str) -> Option<String> {
    let (kind, rest) = text.split_once(':')?;
    let meant = nearest(kind, &WITH_PATH.map(|it| it.trim_end_matches(':')))?;
    (!is_tag(rest) && !rest.starts_with("//")).then(|| format!("{meant}:{rest}"))
}

/// Says what a wrong reference was probably meant to be.
fn intended(text: &str) -> Option<String> {
    if let Some(meant) = misspelt_kind(text) {
        return Some(format!("did you mean \"{meant}\"?"));
    }
    if let Some(rest) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) {
        return Some(format!("an image of a registry is \"{REGISTRY}{rest}\""));
    }
    if text.contains(TYPOGRAPHIC) {
        let plain = text.replace(TYPOGRAPHIC, "");
        return Some(format!("remove the typographic quotes: \"{plain}\""));
    }
    if text.starts_with(['.', '/']) && text.ends_with(".tar") {
        return Some(format!(
            "an archive is \"{DOCKER_ARCHIVE}{text}\" or \"{OCI_ARCHIVE}{text}\""
        ));
    }
    if text.starts_with(['.', '/']) {
        return Some(format!("a directory with an OCI image layout is \"{OCI}{text}\""));
    }
    let lower = text.to_ascii_lowercase();
    let name = DockerName::parse(lower.strip_prefix(REGISTRY).unwrap_or(&lower));
    (lower != text && name.is_some_and(|name| is_repository(&name.repository)))
        .then(|| format!("a repository name has lower-case letters only: \"{lower}\""))
}

fn error(value: &Value, message: &str, label: &str) -> Diagnostic {
    Diagnostic::new(message, value.span, label)
}
