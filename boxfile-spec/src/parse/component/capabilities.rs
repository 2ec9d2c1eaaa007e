//! `capabilities add="…" drop="…"`: the capabilities of a component's root user.

use box_contract::capabilities::{CAPABILITIES, Capabilities, Capability, Grant};

use crate::errors::DECLARATION_ERRORS;
use crate::parse::{Children, Reader};
use crate::schema::{self, Kind};
use crate::syntax::tree::{Data, Value};
use crate::value::{self, Read};
use crate::{form, rules};
use diagnostics::suggest::nearest;
use diagnostics::{Diagnostic, Sink, Span, Spanned};
use safe_text::quote;

/// The word for all capabilities, which can only be dropped.
const ALL: &str = "ALL";

/// The settings of the component that limit its capabilities.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// The declared user; `None` if the component declares none.
    pub(super) user: Option<&'a Spanned<String>>,
    /// Whether the component has a separate mount namespace.
    pub(super) own_mounts: bool,
}

/// The capabilities that one value names; `None` stands for all of them.
type Named = Spanned<Vec<Option<&'static Capability>>>;

/// Reads the capabilities of a component.
pub(super) fn read(children: &Children<'_>, context: Context<'_>) -> Capabilities {
    let read = Reader::sole(children, &schema::CAPABILITIES, |reader| {
        let span = reader.span();
        let nothing = || Spanned { value: Vec::new(), span };
        let added = reader.optional("add").filter(|it| reader.check(addable(it)).is_some());
        Some((added.unwrap_or_else(nothing), reader.optional("drop").unwrap_or_else(nothing)))
    });
    let Some((added, dropped)) = read else { return Capabilities::default() };
    check(&added, &dropped, context, children.sink());
    let from = match dropped.value.contains(&None) {
        true => Capabilities::NONE,
        false => Capabilities::default(),
    };
    let left = dropped.value.into_iter().flatten().fold(from, Capabilities::without);
    added.value.into_iter().flatten().fold(left, Capabilities::with)
}

/// Reports a capability that is both added and dropped, capabilities for a user other than root,
/// which have no effect, and `SYS_CHROOT` for a component without a separate mount namespace.
fn check(added: &Named, dropped: &Named, context: Context<'_>, sink: &Sink) {
    let all = || added.value.iter().flatten();
    if let Some(both) = all().find(|it| dropped.value.contains(&Some(it))) {
        let error = DECLARATION_ERRORS.about("capability-twice", both.name, dropped.span);
        sink.report(error.with_label(added.span, "added"));
    }
    let other = context.user.filter(|user| !rules::is_root(&user.value));
    if let (Some(user), Some(_)) = (other, all().next()) {
        let error = DECLARATION_ERRORS.at("capability-user", added.span);
        sink.report(error.with_label(user.span, "the component runs as another user"));
    }
    if all().any(|it| it.name == "SYS_CHROOT") && !context.own_mounts {
        sink.report(DECLARATION_ERRORS.at("capability-chroot", added.span));
    }
}

/// Checks that capabilities can be added.
fn addable(named: &Named) -> Result<(), Diagnostic> {
    for capability in &named.value {
        let (message, label) = match capability {
            None => return Err(DECLARATION_ERRORS.at("capability-all", named.span)),
            Some(it) if it.grant == Grant::Never => (
                format!("no component can have the capability `{}`", it.name),
                format!("it {}", it.about),
            ),
            Some(_) => continue,
        };
        let help = "remove it; docs/security.md lists the capabilities that a component can have";
        return Err(Diagnostic::new(message, named.span, label).with_help(help));
    }
    Ok(())
}

/// Reads the names of capabilities, separated by spaces.
impl Read for Vec<Option<&'static Capability>> {
    fn read(value: &Value, name: &str, _: Kind) -> Result<Self, Diagnostic> {
        if matches!(value.data, Data::Other(_)) {
            let help = form::write_text(value.syntax, name, "KILL NET_RAW");
            let error = value::mismatch(value, name, "a string");
            return Err(error.with_help(format!("{help}: the names, with spaces between them")));
        }
        let text = value::filled_text(value, name)?;
        let one = |word: &str| {
            if word.eq_ignore_ascii_case(ALL) {
                return Ok(None);
            }
            Capability::find(word).map(Some).ok_or_else(|| unknown(word, value.span))
        };
        let names = text.split_whitespace().map(one).collect::<Result<Self, _>>()?;
        if names.is_empty() { Err(unknown(text, value.span)) } else { Ok(names) }
    }
}

fn unknown(text: &str, span: Span) -> Diagnostic {
    let names = CAPABILITIES.each_ref().map(|it| it.name);
    let upper = text.to_ascii_uppercase();
    if text.contains([',', ';', '|']) {
        return DECLARATION_ERRORS.about("capability-list", &quote(text), span);
    }
    let help = match nearest(upper.strip_prefix("CAP_").unwrap_or(&upper), &names) {
        Some(meant) => format!("did you mean \"{meant}\"?"),
        None => {
            let to_be_had = CAPABILITIES.iter().filter(|it| it.grant != Grant::Never);
            let names: Vec<_> = to_be_had.map(|it| it.name).collect();
            format!("those that a component can have are {}", names.join(", "))
        }
    };
    DECLARATION_ERRORS.about("capability", &quote(text), span).with_help(help)
}
