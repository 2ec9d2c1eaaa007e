//! The syntax of users and groups in Boxfiles and commands.

use super::NO_ID;

/// The maximum number of characters in the name of a user or group
/// ([useradd(8)](https://man7.org/linux/man-pages/man8/useradd.8.html)).
const MAX_USER_NAME: usize = 256;

/// Checks the user of a component or a command: `USER` or `USER:GROUP`, as in an
/// [OCI image configuration](https://github.com/opencontainers/image-spec/blob/v1.1.1/config.md). Each part is a name that
/// useradd(8) accepts, or a number less than [`NO_ID`]. For example, `app:app` and `1000` are accepted. An empty user
/// and [`NO_ID`] are refused, because the program would run as root.
///
/// # Errors
/// Returns the correct form, for an error message.
pub fn check_user(text: &str) -> Result<(), &'static str> {
    let (user, group) = text.split_once(':').unwrap_or((text, "0"));
    if user.is_empty() || group.is_empty() || group.contains(':') {
        return Err("write `USER` or `USER:GROUP`, names or numbers: \"app:app\", \"1000\"");
    }
    check_part(user).and_then(|()| check_part(group))
}

fn check_part(part: &str) -> Result<(), &'static str> {
    let name = part.strip_suffix('$').unwrap_or(part);
    let inner = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if part.bytes().all(|byte| byte.is_ascii_digit()) {
        let is_id = part.parse().is_ok_and(|id: u32| id < NO_ID);
        return is_id
            .then_some(())
            .ok_or("the numbers of users and groups go from 0 to 4294967294");
    }
    let is_name = !matches!(name, "" | "." | "..")
        && part.len() <= MAX_USER_NAME
        && name.bytes().all(inner)
        && !name.starts_with('-');
    is_name.then_some(()).ok_or(
        "the name of a user or a group has letters, digits, `_`, `.` and `-`, no `-` first, and at most 256 of them; \
         of any other, write the number",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_named_as_useradd_makes_them_or_numbered() {
        let longest = "x".repeat(MAX_USER_NAME);
        for good in
            ["app", "1000:1000", "0:app", "a.b_c-d$", "_apt", "9lives", "..a", "A:b$", &longest]
        {
            assert_eq!(check_user(good), Ok(()), "{good}");
        }
        for bad in ["-a", "a b", "a@b", "a$b", "$", ".", "a:..", "é", "a/b", &format!("{longest}x")]
        {
            assert!(check_user(bad).unwrap_err().starts_with("the name of"), "{bad}");
        }
    }

    #[test]
    fn no_part_is_missing_and_there_are_two() {
        for bad in ["", ":", "a:", ":a", "a:b:c"] {
            assert!(check_user(bad).unwrap_err().starts_with("write `USER`"), "{bad}");
        }
    }

    #[test]
    fn the_number_of_nobody_is_no_users() {
        assert_eq!(check_user("4294967294:4294967294"), Ok(()));
        for bad in ["4294967295", "0:4294967295", "99999999999", "app:99999999999"] {
            assert!(check_user(bad).unwrap_err().ends_with("from 0 to 4294967294"), "{bad}");
        }
    }
}
