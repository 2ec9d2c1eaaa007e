//! Resolves user and group names by an image's `/etc/passwd` and `/etc/group`.
//!
//! The accepted forms are `user`, `uid`, `user:group`, `uid:gid`, `uid:group` and `user:gid`
//! ([OCI image configuration](https://github.com/opencontainers/image-spec/blob/v1.1.1/config.md), "User"). For example,
//! `app:staff` and `1000:staff`. The formats of the files are
//! [passwd(5)](https://man7.org/linux/man-pages/man5/passwd.5.html) and
//! [group(5)](https://man7.org/linux/man-pages/man5/group.5.html).

use std::collections::BTreeSet;

use crate::User;
use crate::rules::{GROUP, NO_ID, PASSWD, PATH_MAX};

/// The maximum size of an account file, in bytes. Real account files are much smaller.
pub const MAX_ACCOUNTS: u64 = 4 << 20;
/// The maximum number of home directories that [`homes`] returns.
pub const MAX_HOMES: usize = 64;

/// A user's ids and home directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The numeric ids.
    pub user: User,
    /// The home directory from `/etc/passwd`, if it is an absolute path.
    pub home: Option<String>,
}

impl Account {
    /// Returns the value of `HOME` for the user: the home directory, or `/` if it is unknown.
    pub fn home(&self) -> &str {
        self.home.as_deref().unwrap_or("/")
    }
}

/// The error for a name that is in no account file, or a number that is no valid id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file} has no {name:?}")]
pub struct Unknown {
    /// The file that lacks the name: [`PASSWD`] or [`GROUP`].
    pub file: &'static str,
    /// The unknown name or number.
    pub name: String,
    /// The names that the file contains.
    pub names: Vec<String>,
}

/// Resolves a user with the contents of `/etc/passwd` and `/etc/group`. Pass an empty text for a file that the image
/// lacks. Malformed lines are skipped.
///
/// # Errors
/// Returns [`Unknown`] if `passwd` lacks the user's name, if `group` lacks the group's name, or if an id is [`NO_ID`]. Other
/// numbers need no entry in the files.
pub fn resolve(wanted: &str, passwd: &str, group: &str) -> Result<Account, Unknown> {
    let (passwd, group) = (lines(passwd), lines(group));
    let (user, named_group) = wanted.split_once(':').unwrap_or((wanted, ""));
    let unknown = |file| {
        let (lines, name) = if file == GROUP { (&group, named_group) } else { (&passwd, user) };
        let names = lines.iter().map(|line| line.name.to_owned()).collect();
        Unknown { file, name: name.to_owned(), names }
    };
    let named_group = Some(named_group).filter(|group| !group.is_empty());
    let user = if user.is_empty() { "0" } else { user };
    let number: Option<u32> = user.parse().ok();
    let is_wanted = |it: &&Line<'_>| it.name == user || number.is_some() && it.number(0) == number;
    let entry = passwd.iter().find(is_wanted);
    let uid = entry.and_then(|it| it.number(0)).or(number).ok_or_else(|| unknown(PASSWD))?;
    let gid = match named_group {
        None => entry.and_then(|it| it.number(1)).unwrap_or(0),
        Some(name) => group_id(name, &group).ok_or_else(|| unknown(GROUP))?,
    };
    let groups = match (entry, named_group) {
        (Some(entry), None) => supplementary(entry.name, gid, &group),
        _ => Vec::new(),
    };
    let home = entry.and_then(|it| it.rest.get(3)).filter(|home| home.starts_with('/'));
    if uid == NO_ID || gid == NO_ID {
        let is_groups = uid != NO_ID && named_group.is_some();
        return Err(unknown(if is_groups { GROUP } else { PASSWD }));
    }
    Ok(Account { user: User { uid, gid, groups }, home: home.map(|it| (*it).to_owned()) })
}

/// Returns the home directories that `/etc/passwd` has for a user, which is a name or a number, also with a group as in
/// `user:group`. Several accounts can have one number, and the name of an account can be another one's number: the homes of all
/// of them are returned, up to [`MAX_HOMES`]. Homes that are no absolute path are skipped.
///
/// # Examples
/// ```
/// let passwd = "web:x:1000:1000::/home/web:\ndeploy:x:1000:1000::/srv/deploy:\n";
/// let homes = box_contract::accounts::homes("1000", passwd);
/// assert!(homes.iter().eq(["/home/web", "/srv/deploy"]));
/// ```
pub fn homes(wanted: &str, passwd: &str) -> BTreeSet<String> {
    let passwd = lines(passwd);
    let user = wanted.split(':').next().filter(|user| !user.is_empty()).unwrap_or("0");
    let named = passwd.iter().filter(|it| it.name == user).filter_map(|it| it.number(0));
    let numbers: BTreeSet<u32> = user.parse::<u32>().ok().into_iter().chain(named).collect();
    let is_users = |it: &&Line<'_>| {
        it.name == user || it.number(0).is_some_and(|number| numbers.contains(&number))
    };
    let mut homes = BTreeSet::new();
    for home in passwd.iter().filter(is_users).filter_map(|it| it.rest.get(3)) {
        let is_path = home.starts_with('/') && home.len() <= PATH_MAX && !home.contains('\0');
        if is_path && homes.len() < MAX_HOMES {
            homes.insert((*home).to_owned());
        }
    }
    homes
}

/// Returns whether an account file has an account with this number: a user in `/etc/passwd`, a group in `/etc/group`.
/// Malformed lines are skipped.
pub fn has_number(text: &str, number: u32) -> bool {
    lines(text).iter().any(|it| it.number(0) == Some(number))
}

/// Returns `wanted`, or if the account file has an account with this name, `wanted` with the first number from 1 on that
/// makes it a new name.
pub fn free_name(text: &str, wanted: &str) -> String {
    let lines = lines(text);
    let is_free = |name: &String| lines.iter().all(|it| it.name != name);
    let numbered = (1_u32..).map(|number| format!("{wanted}{number}"));
    let mut names = std::iter::once(wanted.to_owned()).chain(numbered);
    names.find(is_free).unwrap_or_else(|| wanted.to_owned())
}

fn group_id(name: &str, group: &[Line<'_>]) -> Option<u32> {
    let entry = group.iter().find(|it| it.name == name);
    entry.and_then(|it| it.number(0)).or_else(|| name.parse().ok())
}

/// Returns the supplementary groups that list the user as a member.
fn supplementary(user: &str, primary: u32, group: &[Line<'_>]) -> Vec<u32> {
    let lists =
        |it: &&Line<'_>| it.rest.get(1).is_some_and(|list| list.split(',').any(|it| it == user));
    let mut ids: Vec<u32> = group.iter().filter(lists).filter_map(|it| it.number(0)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.retain(|id| *id != primary && *id != NO_ID);
    ids
}

/// A line of an account file: the name, and the fields after the password.
struct Line<'t> {
    name: &'t str,
    rest: Vec<&'t str>,
}

impl Line<'_> {
    fn number(&self, field: usize) -> Option<u32> {
        self.rest.get(field)?.parse().ok()
    }
}

fn lines(text: &str) -> Vec<Line<'_>> {
    text.lines().filter_map(line).collect()
}

fn line(text: &str) -> Option<Line<'_>> {
    let mut fields = text.split(':');
    let name = fields.next().filter(|name| !name.is_empty())?;
    // The skipped field is the password.
    Some(Line { name, rest: fields.skip(1).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD_TEXT: &str = "broken\nroot:x:0:0:root:/root:/bin/sh\napp:x:1000:100::/home/app:\n";
    const GROUP_TEXT: &str = "root:x:0:\nusers:x:100:app\naudio:x:29:other,app\n";

    fn resolved(wanted: &str) -> Result<Account, Unknown> {
        resolve(wanted, PASSWD_TEXT, GROUP_TEXT)
    }

    fn user(uid: u32, gid: u32, groups: &[u32]) -> User {
        User { uid, gid, groups: groups.to_vec() }
    }

    #[test]
    fn names_and_numbers_resolve_as_the_files_say() {
        let cases = [
            ("", user(0, 0, &[])),
            ("app", user(1000, 100, &[29])),
            ("1000", user(1000, 100, &[29])),
            ("app:audio", user(1000, 29, &[])),
            ("app:7", user(1000, 7, &[])),
            ("4242", user(4242, 0, &[])),
            ("4242:users", user(4242, 100, &[])),
            ("1000:", user(1000, 100, &[29])),
        ];
        for (wanted, expected) in cases {
            assert_eq!(resolved(wanted).unwrap().user, expected, "{wanted}");
        }
        assert_eq!(resolved("app").unwrap().home(), "/home/app");
        assert_eq!(resolved("4242").unwrap().home(), "/");
        assert_eq!(resolve("7:8", "", "").unwrap().user, user(7, 8, &[]));
    }

    #[test]
    fn homes_are_those_of_all_accounts_of_a_user() {
        let passwd = "1000:x:7:7::/named:\nweb:x:1000:1000::/home/web:/bin/sh\nweb:x:8:8::/again:\n\
                      other:x:1000:1::/other:\nbare:x:1001:1001:::/bin/sh\nrel:x:1001:1::home:\n\
                      seven:x:7:7::/seven:\nroot:x:0:0::/root:\n";
        let web = ["/again", "/home/web", "/other"];
        for (user, expected) in [
            ("web", &web[..]),
            ("web:staff", &web),
            ("other", &["/home/web", "/other"]),
            ("1000", &["/home/web", "/named", "/other", "/seven"]),
            ("1000:7", &["/home/web", "/named", "/other", "/seven"]),
            ("7", &["/named", "/seven"]),
            ("", &["/root"]),
            ("bare", &[]),
            ("1002", &[]),
            ("nobody", &[]),
        ] {
            assert!(homes(user, passwd).iter().eq(expected), "{user}: {:?}", homes(user, passwd));
        }
    }

    #[test]
    fn homes_that_are_no_path_are_skipped() {
        let home = |length: usize| format!("a:x:1:1::/{}:\n", "h".repeat(length - 1));
        assert_eq!(homes("1", &home(PATH_MAX)).len(), 1);
        assert!(homes("1", &home(PATH_MAX + 1)).is_empty());
        assert!(homes("1", "a:x:1:1::/h\0:\n").is_empty());
        let many: Vec<_> = (0..=MAX_HOMES).map(|it| format!("a:x:1:1::/{it}:\n")).collect();
        assert_eq!(homes("1", &many.concat()).len(), MAX_HOMES);
    }

    #[test]
    fn accounts_are_found_by_number_and_new_ones_have_another_name() {
        assert!(has_number(PASSWD_TEXT, 1000) && !has_number(PASSWD_TEXT, 100));
        assert!(has_number(GROUP_TEXT, 100) && !has_number(GROUP_TEXT, 1000));
        assert!(!has_number("", 0) && !has_number("app:x:1000x:0\n", 1000));
        assert_eq!(free_name(PASSWD_TEXT, "agent"), "agent");
        assert_eq!(free_name(PASSWD_TEXT, "app"), "app1");
        assert_eq!(free_name("app:\napp1\napp3:x\n", "app"), "app2");
    }

    #[test]
    fn a_group_that_the_kernel_takes_for_none_is_skipped() {
        let group = format!("{GROUP_TEXT}nobody:x:4294967295:app\n");
        assert_eq!(resolve("app", PASSWD_TEXT, &group).unwrap().user, user(1000, 100, &[29]));
    }

    #[test]
    fn unknown_names_are_errors() {
        let unknown = resolved("nobody").unwrap_err();
        assert_eq!(unknown.to_string(), "/etc/passwd has no \"nobody\"");
        assert_eq!(unknown.names, ["broken", "root", "app"]);
        assert_eq!(resolved("4294967295").unwrap_err().file, PASSWD);
        assert_eq!(resolved("app:none").unwrap_err().file, GROUP);
        assert_eq!(resolved("app:4294967295").unwrap_err().file, GROUP);
        let group = "nobody:x:4294967295:\n";
        let none = resolve("app:nobody", PASSWD_TEXT, group).unwrap_err();
        assert_eq!(none.to_string(), "/etc/group has no \"nobody\"");
    }
}
