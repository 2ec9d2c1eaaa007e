//! `rlimits …`: what each process of a component may take.

use box_image::Rlimits;

use crate::parse::reader::Reader;
use crate::sink::Sink;
use crate::syntax::tree::{Data, Node, Value};
use crate::{Diagnostic, Spanned, form, rules, schema, value};

/// Reads the limits of a process that runs as a user; nothing where no user is declared.
pub(super) fn read(node: Option<&Node>, user: Option<&Spanned<String>>, sink: &Sink) -> Rlimits {
    let Some(node) = node else { return Rlimits::default() };
    let mut reader = Reader::new(node, &schema::RLIMITS, sink);
    let cpu = reader.optional_prop("cpu");
    check_user(reader.optional_prop("nproc"), user, sink);
    let limits = Rlimits {
        nofile: reader.integer("nofile"),
        nproc: reader.integer("nproc"),
        as_bytes: reader.size("address-space"),
        cpu_seconds: reader.read(cpu, "cpu", |value, name| {
            let ms = value::some_duration(value, name)?;
            if ms.is_multiple_of(1000) {
                return Ok(ms / 1000);
            }
            let whole = format!("\"{}s\"", ms.div_ceil(1000));
            let help = format!("write `{}`", form::prop(value.syntax, name, &whole));
            let message = "the kernel counts CPU time in whole seconds";
            Err(Diagnostic::new(message, value.span, "not a whole second").with_help(help))
        }),
        core_bytes: reader.size("core"),
        fsize_bytes: reader.size("file-size"),
    };
    reader.finish();
    limits
}

/// Reports a limit on the processes of root, who is exempt from it (setrlimit(2), "RLIMIT_NPROC").
fn check_user(nproc: Option<&Value>, user: Option<&Spanned<String>>, sink: &Sink) {
    let root = user.filter(|user| rules::is_root(&user.value));
    let (Some(nproc), Some(root)) = (nproc, root) else { return };
    let Data::Integer(number) = nproc.data else { return };
    let pids = form::prop(nproc.syntax, "pids", &number.to_string());
    let help = format!("remove `nproc`, and write `{pids}` in `limits`, which holds everyone");
    sink.report(
        Diagnostic::new("`nproc` does not hold root", nproc.span, "has no effect here")
            .with_label(root.span, "the component runs as root")
            .with_help(help),
    );
}
