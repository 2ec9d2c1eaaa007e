//! The signals of Linux by their names, as people and images write them.

/// The first real-time signal that a program may use, and the last: `SIGRTMIN` and `SIGRTMAX` of the C library.
const REAL_TIME: (u8, u8) = (34, 64);
/// The names of the signals from 1 on (signal(7), for x86-64).
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// Returns the number of a signal: `SIGTERM`, `term`, `15` or `SIGRTMIN+3`; `None` where there is no such signal.
pub fn number(text: &str) -> Option<u8> {
    if let Ok(number) = text.parse() {
        return (1..=REAL_TIME.1).contains(&number).then_some(number);
    }
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let position = NAMES.iter().position(|it| *it == name);
    position.and_then(|it| u8::try_from(it + 1).ok()).or_else(|| real_time(name))
}

/// Returns the number of `RTMIN`, `RTMIN+N`, `RTMAX` or `RTMAX-N`.
fn real_time(name: &str) -> Option<u8> {
    let (least, most) = REAL_TIME;
    let distance = |text: &str, sign| match text.strip_prefix(sign) {
        Some(number) => number.parse().ok(),
        None => text.is_empty().then_some(0),
    };
    let number = match (name.strip_prefix("RTMIN"), name.strip_prefix("RTMAX")) {
        (Some(more), _) => least.checked_add(distance(more, '+')?)?,
        (_, Some(less)) => most.checked_sub(distance(less, '-')?)?,
        _ => return None,
    };
    (least..=most).contains(&number).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_named_as_people_do() {
        for (text, expected) in [
            ("SIGTERM", 15),
            ("quit", 3),
            ("SIGSYS", 31),
            ("9", 9),
            ("64", 64),
            ("SIGRTMIN+3", 37),
            ("RTMIN", 34),
            ("SIGRTMAX-1", 63),
        ] {
            assert_eq!(number(text), Some(expected), "{text}");
        }
        for text in
            ["", "0", "65", "-1", "SIGNO", "RTMIN-1", "RTMIN+31", "RTMAX-31", "RTMIN+", "SIG"]
        {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
