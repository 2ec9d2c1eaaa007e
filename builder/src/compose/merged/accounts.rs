//! Unites `/etc/passwd`, `/etc/group`, `/etc/shadow` and `/etc/gshadow`:
//! [passwd(5)](https://man7.org/linux/man-pages/man5/passwd.5.html),
//! [group(5)](https://man7.org/linux/man-pages/man5/group.5.html),
//! [shadow(5)](https://man7.org/linux/man-pages/man5/shadow.5.html),
//! [gshadow(5)](https://man7.org/linux/man-pages/man5/gshadow.5.html).
//!
//! A united file has the agent's lines, unchanged and in their order, followed by the lines of the business image whose
//! names are new. The same name with a different line is an error, because one of the two images would get another
//! account than it expects. For example, `app:x:1` and `app:x:2` clash. Two names with the same number are no error:
//! both have the number's rights, as they would without a name.

use std::collections::BTreeMap;
use std::fmt;

use box_contract::rules::ACCOUNT_FILES;
use safe_text::shown;

/// A file that can be united: its path, and the names of the fields of a line.
pub(super) struct Database {
    pub(super) path: &'static str,
    fields: &'static [&'static str],
    /// Whether any field may contain a password hash, so that the value of no field is shown.
    secret: bool,
}

const DATABASES: [Database; 4] = [
    Database {
        path: ACCOUNT_FILES[0],
        fields: &["name", PASSWORD, "uid", "gid", "comment", "home", "shell"],
        secret: false,
    },
    Database {
        path: ACCOUNT_FILES[1],
        fields: &["name", PASSWORD, "gid", "members"],
        secret: false,
    },
    Database {
        path: ACCOUNT_FILES[2],
        fields: &["name", PASSWORD, "last change", "minimum", "maximum", "warning", "grace", "end"],
        secret: true,
    },
    Database {
        path: ACCOUNT_FILES[3],
        fields: &["name", PASSWORD, "administrators", "members"],
        secret: true,
    },
];

/// The name of the field whose value is never shown.
const PASSWORD: &str = "password";

/// Two lines with the same name that differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountClash {
    /// The name of the account or group.
    pub name: String,
    /// The line numbers in the agent's file and in the business image's file, from 1.
    pub lines: [usize; 2],
    /// The name of the first field in which the lines differ.
    pub field: &'static str,
    /// The values of the field. `None` if they must not be shown.
    pub values: Option<[String; 2]>,
}

impl fmt::Display for AccountClash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, lines: [one, other], field, values } = self;
        write!(
            f,
            "`merge` cannot combine the files: both have a line for `{name}` (agent: line {one}, \
             business: line {other}), and "
        )?;
        match values {
            Some([one, other]) => write!(f, "the {field} is `{one}` and `{other}`")?,
            None => write!(f, "the {field} differs")?,
        }
        f.write_str(". Let the images agree, or write `prefer-agent` or `prefer-business`")
    }
}

/// Returns the description of the file at a path. `None` if the file cannot be united.
pub(super) fn unitable(path: &[u8]) -> Option<&'static Database> {
    DATABASES.iter().find(|it| it.path.as_bytes() == path)
}

/// Unites the agent's file with the business image's file.
///
/// # Errors
/// [`AccountClash`] for the first line of the business image that clashes.
pub(super) fn unite(
    database: &Database,
    agent: &[u8],
    business: &[u8],
) -> Result<Vec<u8>, AccountClash> {
    let mut united = Vec::new();
    let mut known: BTreeMap<&[u8], Vec<(usize, &[u8])>> = BTreeMap::new();
    for (number, line) in lines(agent) {
        put(&mut united, line);
        known.entry(name(line)).or_default().push((number, line));
    }
    for (number, line) in lines(business).filter(|(_, line)| !line.is_empty()) {
        match known.get(name(line)).map(Vec::as_slice) {
            None | Some([]) => put(&mut united, line),
            Some(same) if same.iter().any(|(_, it)| *it == line) => {}
            Some([(first, other), ..]) => {
                return Err(clash(database, [*first, number], other, line));
            }
        }
    }
    Ok(united)
}

/// Returns the lines without line ends, with their numbers from 1. An empty file has no lines.
fn lines(file: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let file = file.strip_suffix(b"\n").unwrap_or(file);
    (1..)
        .zip(file.split(|byte| *byte == b'\n'))
        .filter(|(number, line)| *number > 1 || !line.is_empty())
}

fn put(united: &mut Vec<u8>, line: &[u8]) {
    united.extend_from_slice(line);
    united.push(b'\n');
}

fn name(line: &[u8]) -> &[u8] {
    line.split(|byte| *byte == b':').next().unwrap_or_default()
}

fn clash(database: &Database, lines: [usize; 2], agent: &[u8], business: &[u8]) -> AccountClash {
    let fields = |line| <[u8]>::split(line, |byte| *byte == b':').map(text).collect::<Vec<_>>();
    let (agent, business) = (fields(agent), fields(business));
    let get = |fields: &[String], at: usize| fields.get(at).cloned().unwrap_or_default();
    let length = agent.len().max(business.len());
    let at = (0..length).find(|at| agent.get(*at) != business.get(*at)).unwrap_or(length);
    let field = database.fields.get(at).copied().unwrap_or("rest of the line");
    let hidden = field == PASSWORD || database.secret;
    AccountClash {
        name: get(&agent, 0),
        lines,
        field,
        values: (!hidden).then(|| [get(&agent, at), get(&business, at)]),
    }
}

fn text(bytes: &[u8]) -> String {
    shown(&String::from_utf8_lossy(bytes))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn united(agent: &str, business: &str) -> Result<String, String> {
        let united = unite(&DATABASES[0], agent.as_bytes(), business.as_bytes());
        united.map(|it| String::from_utf8(it).unwrap()).map_err(|clash| clash.to_string())
    }

    #[test]
    fn new_names_come_last() {
        let agent = "root:x:0:0:root:/root:/bin/sh\n\n# people\nann:x:1000:1000::/home/ann:/bin/sh";
        let business =
            "app:x:100:101::/app:\n\nroot:x:0:0:root:/root:/bin/sh\nbob:x:1000:1000:::\n";
        assert_eq!(
            united(agent, business).unwrap(),
            format!("{agent}\napp:x:100:101::/app:\nbob:x:1000:1000:::\n")
        );
        assert_eq!(united("", business).unwrap(), business.replace("\n\n", "\n"));
        assert_eq!(united(agent, "").unwrap(), format!("{agent}\n"));
        assert_eq!(united("", "").unwrap(), "");
    }

    #[test]
    fn one_name_is_one_account() {
        assert_eq!(
            united("root:x:0:0\napp:x:1000:1000::/a:/bin/sh\n", "app:x:1001:1000::/a:/bin/sh\n"),
            Err("`merge` cannot combine the files: both have a line for `app` (agent: line 2, \
                 business: line 1), and the uid is `1000` and `1001`. Let the images agree, or write \
                 `prefer-agent` or `prefer-business`"
                .to_owned())
        );
        let clash = united("a:x:1:1:::", "a:x:1:1:::\u{1b}[2J").unwrap_err();
        assert!(clash.contains("shell is `` and `\u{fffd}[2J`"), "{clash:?}");
    }

    #[test]
    fn no_password_is_ever_shown() {
        let secrets = ["app:$y$SECRET:19000::::::\n", "app:$y$OTHER:19000::::::\n"];
        for database in &DATABASES {
            let clash = unite(database, secrets[0].as_bytes(), secrets[1].as_bytes()).unwrap_err();
            assert_eq!((clash.field, &clash.values), ("password", &None));
        }
        let [one, other] = ["app:!:19000:0\n", "app:!:19001:0\n"].map(str::as_bytes);
        let clash = unite(&DATABASES[2], one, other).unwrap_err();
        assert_eq!((clash.field, clash.values), ("last change", None));
    }

    proptest! {
        #[test]
        fn a_file_united_with_itself_is_itself(lines in prop::collection::vec("[a-c]{1,2}:x:[0-9]", 0..6)) {
            let file: String = lines.iter().map(|line| format!("{line}\n")).collect();
            prop_assert_eq!(united(&file, &file).unwrap(), file);
        }
    }
}
