//! Signs statements, and attaches them to the box in the store and in a registry, or writes them to a file.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use box_cache::Attachment;
use box_contract::{ErrorCode, RemoteName};
use box_digest::Digest;
use box_registry::{SentAttachments, send_attachments};
use box_trust::{BUNDLE_MEDIA_TYPE, PrivateKey, Statement, verify};
use cli_common::output::check_links;
use cli_registry::Located;
use host_fs::FileError;
use host_fs::own::STORE_RO;
use host_fs::publish::FileDraft;
use oci_registry::Registry;
use safe_text::{counted, readable, shell_word};
use serde_json::{Value, json};

use super::{Form, SigningOptions, Subject};
use crate::cli::failure::Failure;
use crate::cli::stored::PROGRAM;
use crate::cli::terminal;

/// The annotations with which cosign describes a bundle in a registry.
const CONTENT: &str = "dev.sigstore.bundle.content";
const PREDICATE_TYPE: &str = "dev.sigstore.bundle.predicateType";

/// A signed statement.
struct Signed {
    kind: String,
    predicate_type: String,
    attachment: Attachment,
    /// Whether the box lacked it.
    is_new: bool,
}

/// Attachments that were sent to a registry.
struct Sent {
    reference: RemoteName,
    registry_digest: Digest,
    amounts: SentAttachments,
}

/// Signs statements about a box, delivers them, and prints the result. With [`Form::Statement`] and [`Form::Predicate`], writes the one
/// statement to the file without signing it.
pub(crate) fn deliver(
    subject: &Subject<'_>,
    statements: &[Statement],
    options: &SigningOptions,
    (form, client, as_json): (Form, &Registry, bool),
) -> Result<(), Failure> {
    let unsigned = |text: &str| write(options, text.as_bytes());
    match (form, statements) {
        (Form::Statement, [only]) => unsigned(&only.to_json()?)?,
        (Form::Predicate, [only]) => unsigned(only.predicate())?,
        _ => return sign(subject, statements, options, (client, as_json)),
    }
    let statements = statements
        .iter()
        .map(|it| json!({ "kind": it.kind.name(), "predicate_type": it.kind.predicate_type() }));
    let report = json!({
        "box": subject.digest, "name": subject.name().or(options.name().as_deref()), "key_hint": null,
        "statements": statements.collect::<Vec<_>>(), "stored": false, "sent": null, "output": output(options),
    });
    print(subject, &report, as_json);
    Ok(())
}

fn sign(
    subject: &Subject<'_>,
    statements: &[Statement],
    options: &SigningOptions,
    (client, as_json): (&Registry, bool),
) -> Result<(), Failure> {
    check_destination(subject, options)?;
    let key = options.key()?;
    let note = |text: String| {
        if !as_json {
            terminal::note(&text);
        }
    };
    let (mut stored, mut sent) = (false, None);
    let signed;
    if let Some(path) = &options.output {
        signed = sign_all(statements, &key, &[])?;
        let bundles = signed.iter().map(|it| it.attachment.bytes.clone()).collect::<Vec<_>>();
        write(options, &bundles.concat())?;
        note(format!("wrote {}", path.display()));
    } else {
        signed = sign_all(statements, &key, &known(subject, client, &key)?)?;
        stored = attach(subject, &signed)?;
        sent = send(subject, &signed, options, client)?;
        signed.iter().for_each(|it| note(described(it)));
        note(destination(subject, stored, sent.as_ref()));
    }
    let statements: Vec<_> = signed.iter().map(Signed::json).collect();
    let report = json!({
        "box": subject.digest, "name": subject.name().or(options.name().as_deref()), "key_hint": key.public().hint(),
        "statements": statements, "stored": stored, "sent": sent.as_ref().map(Sent::json), "output": output(options),
    });
    print(subject, &report, as_json);
    Ok(())
}

fn print(subject: &Subject<'_>, report: &Value, as_json: bool) {
    match as_json {
        true => terminal::json(&report.to_string()),
        false => terminal::result(&subject.digest.to_string()),
    }
}

fn output(options: &SigningOptions) -> Option<String> {
    options.output.as_ref().map(|it| it.display().to_string())
}

/// Refuses a signature that would be kept nowhere, or where a link of a box leads, before a key is read.
fn check_destination(subject: &Subject<'_>, options: &SigningOptions) -> Result<(), Failure> {
    options.output.iter().try_for_each(|it| check_links(&PROGRAM, it))?;
    let has = subject.is_stored || subject.located.is_some();
    if has || options.output.is_some() || options.push.is_some() {
        return Ok(());
    }
    let word = shell_word(subject.argument().word());
    let help = format!(
        "write it to a file with `-o FILE`, or send it with `--push HOST/NAME:TAG`; `boxbuild load {word}` puts a whole box into the \
         store; if another store has the box, name it with --store or {STORE_RO}"
    );
    let message = format!(
        "the store does not have the box {}, so it cannot keep a signature of it",
        subject.digest
    );
    Err(Failure::new((ErrorCode::BoxNotFound, help), message))
}

/// Returns the attachments that the box has already. If the registry has too many, those that `key` has signed are among them.
fn known(
    subject: &Subject<'_>,
    client: &Registry,
    key: &PrivateKey,
) -> Result<Vec<Attachment>, Failure> {
    let mut known = match subject.is_stored {
        true => cli_common::store::attachments(&subject.stores(), &subject.digest)?,
        false => Vec::new(),
    };
    if let Some((_, located)) = &subject.located {
        let own = [key.public().clone()];
        known.extend(located.attachments(client, &own)?.all);
    }
    Ok(known)
}

/// Signs each statement, unless `known` has a bundle of the same statement by the same key, perhaps with another name of the box.
/// An ECDSA signature differs each time, so that repeated commands would otherwise add one bundle after another.
fn sign_all(
    statements: &[Statement],
    key: &PrivateKey,
    known: &[Attachment],
) -> Result<Vec<Signed>, Failure> {
    let own = [key.public().clone()];
    let is_same = |it: &&Attachment, statement: &Statement| {
        let verified = verify(&it.bytes, &own, &statement.digest).map(|it| it.statement);
        let says =
            |it: Statement| it.kind == statement.kind && it.predicate() == statement.predicate();
        it.media_type == BUNDLE_MEDIA_TYPE && verified.is_ok_and(says)
    };
    let signed = |statement: &Statement| {
        let before = known.iter().find(|it| is_same(it, statement));
        let attachment = match before {
            Some(before) => before.clone(),
            None => attachment(statement, statement.sign(key)?),
        };
        Ok(Signed {
            kind: statement.kind.name().to_owned(),
            predicate_type: statement.kind.predicate_type().to_owned(),
            attachment,
            is_new: before.is_none(),
        })
    };
    statements.iter().map(signed).collect()
}

/// Returns a bundle as the attachment of a box.
fn attachment(statement: &Statement, bundle: Vec<u8>) -> Attachment {
    let annotations = BTreeMap::from([
        (CONTENT.to_owned(), "dsse-envelope".to_owned()),
        (PREDICATE_TYPE.to_owned(), statement.kind.predicate_type().to_owned()),
    ]);
    Attachment { annotations, ..Attachment::new(BUNDLE_MEDIA_TYPE, bundle) }
}

/// Attaches bundles to the box in the store. Returns whether the store has the box.
fn attach(subject: &Subject<'_>, signed: &[Signed]) -> Result<bool, Failure> {
    if !subject.is_stored {
        return Ok(false);
    }
    let store = subject.argument().store.open(&PROGRAM)?;
    for it in signed {
        store.attach(&subject.digest, &it.attachment)?;
    }
    Ok(true)
}

/// Sends bundles to the registry that the command line names, and with `--push` all other attachments of the box, too.
fn send(
    subject: &Subject<'_>,
    signed: &[Signed],
    options: &SigningOptions,
    client: &Registry,
) -> Result<Option<Sent>, Failure> {
    let (reference, located) = match (&options.push, &subject.located) {
        (Some(push), _) => (push, &Located::read(client, push)?),
        (None, Some((reference, located))) => (reference, located),
        (None, None) => return Ok(None),
    };
    let found = located.remote.digest;
    if found != subject.digest {
        let help = format!(
            "name the box that is there now, or another tag; `boxbuild push BOX {reference}` would replace it"
        );
        let message = format!("{reference} is the box {found}, not {}", subject.digest);
        return Err(Failure::new((ErrorCode::DigestMismatch, help), message));
    }
    let mut all = match subject.is_stored && options.push.is_some() {
        true => cli_common::store::attachments(&subject.stores(), &subject.digest)?,
        false => Vec::new(),
    };
    for it in signed.iter().map(|it| &it.attachment) {
        if !all.contains(it) {
            all.push(it.clone());
        }
    }
    let registry_digest = located.remote.registry_digest;
    let amounts = send_attachments(client, &located.repository, &registry_digest, &all);
    let amounts = amounts?;
    Ok(Some(Sent { reference: reference.clone(), registry_digest, amounts }))
}

/// Writes the file of `--output`. An existing file is replaced.
fn write(options: &SigningOptions, bytes: &[u8]) -> Result<(), Failure> {
    let Some(path) = options.output.as_deref() else { return Ok(()) };
    let written = |path: &Path| {
        let draft = FileDraft::beside(path, 0o666)?;
        draft.file().write_all(bytes)?;
        draft.finish_over(path)
    };
    Ok(written(path).map_err(FileError::of("write", path))?)
}

fn described(signed: &Signed) -> String {
    let size = readable(signed.attachment.bytes.len() as u64);
    match signed.is_new {
        true => format!("signed: {} ({size})", signed.kind),
        false => format!("the box has this {} by this key already", signed.kind),
    }
}

/// Says where the bundles are, and how they get to a registry.
fn destination(subject: &Subject<'_>, stored: bool, sent: Option<&Sent>) -> String {
    let Some(Sent { reference, amounts, .. }) = sent else {
        let words = subject.argument().shell_words();
        let word = subject.argument().word();
        let attached = "attached to the box in the store, and not sent";
        // A pulled box is not pushed over its name: somebody may have pushed another box there. A signature is sent to a tag, not to a
        // digest.
        let send = match word.to_str().map(RemoteName::parse) {
            Some(Ok(name)) if name.tag.is_none() => return attached.to_owned(),
            Some(Ok(name)) => {
                format!("`boxbuild sign {words} --key KEY --push {}`", name.unpinned())
            }
            _ => format!("`boxbuild push {words} HOST/NAME:TAG`"),
        };
        return format!("{attached}; to send it: {send}");
    };
    let also = if stored { ", and attached to the box in the store" } else { "" };
    let SentAttachments { all, sent, bytes } = *amounts;
    let counted = counted(all, "attachment", "attachments");
    match sent {
        0 => format!("{reference} has {counted} of the box already{also}"),
        _ => format!("sent {sent} of {counted}, {}, to {reference}{also}", readable(bytes)),
    }
}

impl Signed {
    fn json(&self) -> Value {
        json!({
            "kind": self.kind,
            "predicate_type": self.predicate_type,
            "bundle": Digest::of(&self.attachment.bytes),
            "bytes": self.attachment.bytes.len(),
            "new": self.is_new,
        })
    }
}

impl Sent {
    fn json(&self) -> Value {
        json!({
            "reference": self.reference.to_string(),
            "registry_digest": self.registry_digest,
            "attachments": self.amounts.all,
            "attachments_sent": self.amounts.sent,
            "bytes": self.amounts.bytes,
        })
    }
}
