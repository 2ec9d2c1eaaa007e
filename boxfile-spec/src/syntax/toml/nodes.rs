//! Turns tables into nodes, by the meaning of each key in the schema.
//!
//! A declaration is a key with a table, such as `vm = { cpus = 2 }`. If it has only arguments, its value can be the
//! argument or a list of them. The keys of the table are the names of its first argument and of the further ones, of
//! its properties, and of its inner declarations.
//!
//! A declaration that can be repeated with different first arguments is a table of such tables, whose keys are the
//! first arguments: `[share.work]`. A declaration that can be repeated with the same first argument is a list of
//! arguments and tables: `allow = ["a.example", { peer = "b.example", port = 22 }]`.

use super::explain::written;
use super::table::{Content, Item, Table};
use crate::schema::{Count, Declaration, find};
use crate::syntax::tree::{Block, Data, Node, Prop, Value};
use crate::value::describe;
use diagnostics::suggest::nearest;
use diagnostics::{Diagnostic, Sink, Span, Spanned, Syntax};
use safe_text::quote;

/// The greatest number of unknown keys of a table that are examined. The search for a similar name takes time for each
/// of them, and the sink does not keep more errors anyway.
const MAX_UNKNOWN: usize = 1000;

/// The key of the default of a variable that may be given at launch.
const DEFAULT: &str = "default";

/// Turns the keys of a table into declarations.
pub(super) fn of_table(table: Table, known: &[&'static Declaration], sink: &Sink) -> Vec<Node> {
    let entries = table.entries.into_iter();
    entries.flat_map(|(name, item)| of_entry(name, item, known, sink)).collect()
}

fn of_entry(
    name: Spanned<String>,
    item: Item,
    known: &[&'static Declaration],
    sink: &Sink,
) -> Vec<Node> {
    match find(known, &name.value) {
        // The reader of the block reports the unknown name.
        None => vec![Node { broken: item.is_broken(), ..Node::new(name, Syntax::Toml) }],
        Some(declaration) if declaration.count == Count::Keyed => {
            keyed(&name, item, declaration, sink)
        }
        Some(declaration) => Maker { declaration, sink }.nodes(name, item),
    }
}

/// Turns a table of tables into one declaration for each of them.
fn keyed(
    name: &Spanned<String>,
    item: Item,
    declaration: &'static Declaration,
    sink: &Sink,
) -> Vec<Node> {
    let broken = || Node { broken: true, ..Node::new(name.clone(), Syntax::Toml) };
    let entries = match item.content {
        Content::Table(table) => table.entries,
        Content::Broken => return vec![broken()],
        Content::Value(_) | Content::List(_) => {
            sink.report(not_keyed(name.span, item.span, declaration));
            return vec![broken()];
        }
    };
    // In `skill = { path = "a", mode = "bake" }`, the skill's name is missing. This is one mistake, not one for each
    // property.
    let nameless = |(key, item): &&(Spanned<String>, Item)| {
        declaration.prop(&key.value).is_some() && !matches!(item.content, Content::Table(_))
    };
    if let Some((key, _)) = entries.iter().find(nameless) {
        sink.report(not_keyed(name.span, key.span, declaration));
        return vec![broken()];
    }
    let maker = Maker { declaration, sink };
    entries.into_iter().map(|(key, item)| maker.keyed(name, key, item)).collect()
}

/// Returns the error of a declaration without its first argument, such as `skill = { path = "a" }`.
fn not_keyed(name: Span, at: Span, declaration: &'static Declaration) -> Diagnostic {
    let what = declaration.first.as_ref().map_or("name", |first| first.name);
    let message = format!("each `{}` needs a {what} of its own", declaration.name);
    let error = Diagnostic::new(message, at, format!("no {what} in front of this"));
    let error = if name == at { error } else { error.with_label(name, "declared here") };
    error.with_help(written(declaration))
}

/// The meaning of a key of a declaration's table.
enum Role {
    First,
    Rest,
    Property,
    Child,
    /// The misspelt name of an argument.
    Misspelt(&'static str),
}

/// Makes the nodes of a declaration.
struct Maker<'s> {
    declaration: &'static Declaration,
    sink: &'s Sink,
}

impl Maker<'_> {
    /// Makes one node, or the nodes of a list: one for all its plain values, and one for each of its tables.
    fn nodes(&self, name: Spanned<String>, item: Item) -> Vec<Node> {
        let items = match item.content {
            Content::List(items) if self.declaration.is_listed() => items,
            Content::Table(table) if self.declaration.variables.is_some() => {
                return self.variables(name, table, item.span);
            }
            _ => return vec![self.node(name, item)],
        };
        let is_table = |it: &Item| matches!(it.content, Content::Table(_));
        let (tables, values): (Vec<Item>, Vec<Item>) = items.into_iter().partition(is_table);
        // The diagnostics of a table point to its opening brace.
        let brace = |table: &Item| Spanned {
            value: name.value.clone(),
            span: Span::at(table.span.offset, 1),
        };
        let mut nodes: Vec<Node> =
            tables.into_iter().map(|table| self.node(brace(&table), table)).collect();
        if !values.is_empty() || nodes.is_empty() {
            nodes.push(self.node(name, Item { content: Content::List(values), span: item.span }));
        }
        nodes
    }

    /// Makes one node for all variables with a plain value, and one for each variable with a table.
    fn variables(&self, name: Spanned<String>, mut table: Table, span: Span) -> Vec<Node> {
        let is_table = |(_, it): &(_, Item)| matches!(it.content, Content::Table(_));
        let entries = std::mem::take(&mut table.entries).into_iter();
        let (tables, entries): (Vec<_>, Vec<_>) = entries.partition(is_table);
        table.entries = entries;
        let launch = tables.into_iter().map(|(key, item)| self.variable(&name, key, item));
        let mut nodes: Vec<Node> = launch.collect();
        if !table.entries.is_empty() || nodes.is_empty() {
            nodes.push(self.node(name, Item { content: Content::Table(table), span }));
        }
        nodes
    }

    /// Makes the node of a variable that may be given at launch.
    fn variable(&self, name: &Spanned<String>, key: Spanned<String>, item: Item) -> Node {
        let name = Spanned { value: name.value.clone(), span: key.span };
        let mut node = Node::new(name, Syntax::Toml);
        let named = Value { data: Data::Text(key.value), span: key.span, syntax: Syntax::Toml };
        node.args.push(named);
        let Content::Table(table) = item.content else { return node };
        node.broken = table.doubtful && table.entries.is_empty();
        for (name, item) in table.entries {
            node.broken |= item.is_broken();
            match name.value.as_str() {
                DEFAULT => node.args.push(value(item)),
                _ => node.props.push(Prop { name, value: value(item) }),
            }
        }
        node
    }

    fn node(&self, name: Spanned<String>, item: Item) -> Node {
        let mut node = Node::new(name, Syntax::Toml);
        match item.content {
            Content::Broken => node.broken = true,
            Content::Table(table) => self.fill(&mut node, table),
            Content::List(items) if self.declaration.rest.is_some() => {
                node.args = items.into_iter().map(value).collect();
            }
            _ => node.args.push(value(item)),
        }
        node
    }

    /// Makes the node of one key in a table of tables.
    fn keyed(&self, name: &Spanned<String>, key: Spanned<String>, item: Item) -> Node {
        // The diagnostics of a declaration point to its key.
        let name = Spanned { value: name.value.clone(), span: key.span };
        let mut node = Node::new(name, Syntax::Toml);
        let argument = Data::Text(key.value.clone());
        match item.content {
            Content::Table(table) => self.fill(&mut node, table),
            Content::Broken => node.broken = true,
            Content::Value(_) | Content::List(_) => {
                self.sink.report(self.no_table(&key, &value(item)));
                node.broken = true;
            }
        }
        node.args.insert(0, Value { data: argument, span: key.span, syntax: Syntax::Toml });
        node
    }

    fn no_table(&self, key: &Spanned<String>, value: &Value) -> Diagnostic {
        let name = self.declaration.name;
        let message = format!("each `{name}` is a table, not {}", describe(value));
        Diagnostic::new(message, value.span, "not a table")
            .with_label(key.span, "its name")
            .with_help(written(self.declaration))
    }

    /// Moves arguments, properties and inner declarations from a table to the node.
    fn fill(&self, node: &mut Node, table: Table) {
        let (mut first, mut rest) = (None, Vec::new());
        let mut block = Block { open: node.name.span, nodes: Vec::new() };
        let is_block = !self.declaration.children.is_empty();
        node.broken |= table.doubtful && table.entries.is_empty();
        let mut unknown = 0;
        for (name, item) in table.entries {
            let role = self.role(&name.value).or_else(|| {
                unknown += 1;
                (unknown <= MAX_UNKNOWN).then(|| self.unknown(&name.value, is_block))
            });
            let Some(role) = role else { continue };
            match role {
                Role::Child => {
                    block.nodes.extend(of_entry(name, item, self.declaration.children, self.sink));
                }
                // Suppresses other errors of the node, because they could be a consequence.
                _ if item.is_broken() => node.broken = true,
                Role::First => first = Some(value(item)),
                Role::Rest => match item.content {
                    Content::List(items) => rest = items.into_iter().map(value).collect(),
                    _ => rest = vec![value(item)],
                },
                Role::Property => node.props.push(Prop { name, value: value(item) }),
                Role::Misspelt(meant) => {
                    self.sink.report(self.misspelt(&name, meant));
                    node.broken = true;
                }
            }
        }
        // The key of its table is the first argument of a keyed declaration.
        let needs_first =
            self.declaration.first.is_some() && self.declaration.count != Count::Keyed;
        if first.is_none() && !rest.is_empty() && needs_first {
            if !std::mem::replace(&mut node.broken, true) {
                self.report_no_first(node);
            }
            rest.clear();
        }
        node.args = first.into_iter().chain(rest).collect();
        node.block = is_block.then_some(block);
    }

    fn role(&self, key: &str) -> Option<Role> {
        let declaration = self.declaration;
        let is = |argument: &crate::schema::Argument| argument.name == key;
        // The first argument of a keyed declaration is the key of its table.
        if declaration.count != Count::Keyed && declaration.first.as_ref().is_some_and(is) {
            return Some(Role::First);
        }
        if declaration.rest.as_ref().is_some_and(is) {
            return Some(Role::Rest);
        }
        if declaration.prop(key).is_some() || declaration.variables.is_some() {
            return Some(Role::Property);
        }
        declaration.child(key).map(|_| Role::Child)
    }

    /// Returns the role that the user probably meant for an unknown key.
    fn unknown(&self, key: &str, is_block: bool) -> Role {
        let declaration = self.declaration;
        let first = declaration.first.as_ref().filter(|_| declaration.count != Count::Keyed);
        let arguments: Vec<&'static str> =
            first.into_iter().chain(&declaration.rest).map(|it| it.name).collect();
        let props = declaration.props.iter().map(|it| it.name);
        let children = declaration.children.iter().map(|it| it.name);
        let names: Vec<&'static str> =
            arguments.iter().copied().chain(props).chain(children).collect();
        match nearest(key, &names) {
            Some(meant) if arguments.contains(&meant) => Role::Misspelt(meant),
            Some(meant) if declaration.prop(meant).is_some() => Role::Property,
            _ if is_block => Role::Child,
            _ => Role::Property,
        }
    }

    fn misspelt(&self, name: &Spanned<String>, meant: &str) -> Diagnostic {
        let message = format!("`{}` has no {}", self.declaration.name, quote(&name.value));
        Diagnostic::new(message, name.span, "no such key")
            .with_help(format!("did you mean `{meant}`?"))
    }

    /// Reports that the first argument is missing, although there are further ones. Without it, the second argument
    /// would be read as the first.
    fn report_no_first(&self, node: &Node) {
        let [name, first] =
            [self.declaration.name, self.declaration.first.as_ref().map_or("", |it| it.name)];
        let message = format!("`{name}` needs `{first}`");
        self.sink.report(
            Diagnostic::new(message, node.name.span, format!("without `{first}`"))
                .with_help(written(self.declaration)),
        );
    }
}

fn value(item: Item) -> Value {
    let data = match item.content {
        Content::Value(data) => data,
        Content::List(_) => Data::Other("a list"),
        Content::Table(_) | Content::Broken => Data::Other("a table"),
    };
    Value { data, span: item.span, syntax: Syntax::Toml }
}
