//! `image "oci:…"`, and `binary "PATH"` or `binary "URL" sha256="…"`: the source of a component's files.

use box_contract::rules::{is_layout_name, is_repository, is_tag};
use box_contract::{DEFAULT_TAG, DockerName, ImageRef};
use box_digest::{Algorithm as _, Digest, Sha256, algorithm};

use crate::errors::DECLARATION_ERRORS;
use crate::parse::Reader;
use crate::schema::Kind;
use crate::syntax::tree::{Data, Value};
use crate::syntax::word::TYPOGRAPHIC;
use crate::value::{self, Read, fitting, unfit};
use crate::{Binary, form};
use box_contract::image_ref::{DOCKER_ARCHIVE, OCI, OCI_ARCHIVE, REGISTRY, WITH_PATH};
use diagnostics::suggest::nearest;
use diagnostics::{Diagnostic, Spanned};

/// Returns the help that lists the possible forms of an image reference.
fn forms() -> String {
    format!(
        "an image is \"{OCI}DIR\", \"{OCI_ARCHIVE}FILE\", \"{DOCKER_ARCHIVE}FILE\" or \
         \"{REGISTRY}HOST/NAME\", each perhaps followed by `:TAG`"
    )
}

/// Reads the path or URL of the agent's program.
pub(super) fn binary(reader: &mut Reader<'_>) -> Option<Binary> {
    let source = reader.arg();
    let remote = source.is_some_and(value::is_url);
    if remote && reader.optional_prop("sha256").is_none() {
        let sha256 = form::prop(reader.syntax(), "sha256", "\"…\"");
        let error = DECLARATION_ERRORS.about("binary-sha256", &sha256, reader.span());
        reader.report_missing_error(error);
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
        return Err(DECLARATION_ERRORS.about("image-empty", name, value.span));
    }
    let whole = String::read(value, name, Kind::Path)?;
    check_kept(value, &whole)?;
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
        Some(_) if digest.is_some() => Err(DECLARATION_ERRORS.at("image-archive", value.span)),
        Some((_, place)) => {
            let (path, tag) = place_and_name(value, place)?;
            Ok(ImageRef::DockerArchive { path, tag })
        }
        None => registry(value, text, digest),
    }
}

/// Refuses a user or password in front of a registry's host. The message does not show it.
fn check_password(value: &Value, text: &str) -> Result<(), Diagnostic> {
    let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
    let host = rest.split('/').next().unwrap_or(rest);
    let has_user = host.split_once('@').is_some_and(|(_, after)| algorithm(after).is_none())
        || rest.rsplit_once('@').is_some_and(|(_, after)| after.contains('/'));
    if !has_user || WITH_PATH.iter().any(|form| text.starts_with(form)) {
        return Ok(());
    }
    Err(DECLARATION_ERRORS.at("image-password", value.span).hiding(value.span))
}

/// The forms of a reference to an image that a container engine keeps, as skopeo writes them, with the program of the engine.
const KEPT: [(&str, &str); 2] = [("docker-daemon:", "docker"), ("containers-storage:", "podman")];

/// Refuses the image of a container engine. The help says how to write it to a file.
fn check_kept(value: &Value, text: &str) -> Result<(), Diagnostic> {
    let kept = |(form, engine)| Some((text.strip_prefix(form)?, engine));
    let Some((name, engine)) = KEPT.into_iter().find_map(kept) else { return Ok(()) };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".:/_-".contains(c);
    let is_name = (1..=100).contains(&name.len()) && name.chars().all(is_plain);
    let name = if is_name { name } else { "NAME" };
    let help = format!(
        "write the image to a file: `{engine} save -o image.tar {name}`; its reference is then \"{DOCKER_ARCHIVE}image.tar\""
    );
    Err(unfit(value, text, "image-daemon").with_help(help))
}

/// Splits off the digest after an `@`.
fn split_digest<'v>(value: &Value, text: &'v str) -> Result<(&'v str, Option<Digest>), Diagnostic> {
    let (name, digest) = text.rsplit_once('@').unwrap_or((text, ""));
    let in_registry = !WITH_PATH.iter().any(|form| text.starts_with(form));
    let before_colon = || digest.split_once(':').map(|(it, _)| it).filter(|_| in_registry);
    match (algorithm(digest).or_else(before_colon), digest.parse()) {
        (None, _) => Ok((text, None)),
        (Some(_), Ok(digest)) => Ok((name, Some(digest))),
        (Some(Sha256::NAME), Err(_)) => Err(DECLARATION_ERRORS.at("image-sha256", value.span)),
        (Some(other), Err(_)) => {
            Err(DECLARATION_ERRORS.about("image-algorithm", other, value.span))
        }
    }
}

/// A path, and the tag or name after its colon.
type PathAndName<T> = Result<(String, Option<T>), Diagnostic>;

/// Reads the path of a layout, and the name of one of its images.
fn place_and_tag(value: &Value, place: &str, what: &str) -> PathAndName<String> {
    let (path, tag) = split_place(value, place, what)?;
    let tag = tag.map(|tag| fitting(value, tag, is_layout_name, "image-layout"));
    Ok((path, tag.transpose()?))
}

/// Reads the file of a docker archive, and the name of one of its images: a tag, or `NAME[:TAG]` as docker writes it.
fn place_and_name(value: &Value, place: &str) -> PathAndName<String> {
    let (path, name) = split_place(value, place, "file")?;
    if let Some(name) = name.filter(|name| !is_tag(name)) {
        registry(value, name, None)?;
    }
    Ok((path, name.map(str::to_owned)))
}

/// Splits a path from the tag or name after it.
fn split_place<'p>(value: &Value, place: &'p str, what: &str) -> PathAndName<&'p str> {
    // Splits at the first colon. A tag contains no colon, so the error of a path with a colon is about the tag.
    let (path, tag) = place.split_once(':').map_or((place, None), |(path, tag)| (path, Some(tag)));
    if path.is_empty() {
        return Err(DECLARATION_ERRORS.about("image-place", what, value.span).with_help(forms()));
    }
    check_tag(value, tag)?;
    Ok((path.to_owned(), tag))
}

/// Refuses a colon without a tag or name after it.
fn check_tag(value: &Value, tag: Option<&str>) -> Result<(), Diagnostic> {
    match tag {
        Some("") => Err(DECLARATION_ERRORS.at("image-tag-empty", value.span)),
        _ => Ok(()),
    }
}

/// Reads `docker://HOST/NAME[:TAG]`, and the short form `NAME[:TAG]`.
fn registry(value: &Value, text: &str, digest: Option<Digest>) -> Result<ImageRef, Diagnostic> {
    let explicit = text.strip_prefix(REGISTRY);
    let refuse =
        |error| Err(unfit(value, text, error).with_help(intended(text).unwrap_or_else(forms)));
    if explicit.is_none() && (text.contains("://") || misspelt_kind(text).is_some()) {
        return refuse("image-scheme");
    }
    let name = DockerName::parse(explicit.unwrap_or(text));
    let Some(DockerName { host, repository, tag }) =
        name.filter(|name| is_repository(&name.repository))
    else {
        return refuse("image");
    };
    check_tag(value, tag)?;
    let tag = tag.map(|tag| fitting(value, tag, is_tag, "image-tag")).transpose()?;
    let tag = tag.or_else(|| digest.is_none().then(|| DEFAULT_TAG.to_owned()));
    Ok(ImageRef::Registry { host, repository, tag, digest })
}

/// Returns the probable reference if its kind is misspelt, such as `oic:`. Returns `None` if the text after the colon
/// may be a tag: then the text in front of the colon may be a repository.
fn misspelt_kind(text: &str) -> Option<String> {
    let (kind, rest) = text.split_once(':')?;
    let meant = nearest(kind, &WITH_PATH.map(|it| it.trim_end_matches(':')))?;
    (!is_tag(rest) && !rest.starts_with("//")).then(|| format!("{meant}:{rest}"))
}

/// Returns the help with the reference that was probably meant.
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
