//! The numbers and names of Linux signals.

/// The first and the last real-time signal that a program may use: `SIGRTMIN` and `SIGRTMAX` of the C library.
const REAL_TIME: (u8, u8) = (34, 64);
/// The names of the signals from number 1 on, for x86-64
/// ([signal(7)](https://man7.org/linux/man-pages/man7/signal.7.html)).
const NAMES: [&str; 31] = [
    "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2",
    "PIPE", "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG",
    "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
];

/// Parses a signal. For example, `SIGTERM`, `term`, `15` or `SIGRTMIN+3`. Returns `None` if there is no such signal.
pub fn number(text: &str) -> Option<u8> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok().filter(|number| name(*number).is_some());
    }
    let name = text.to_ascii_uppercase();
    let name = name.strip_prefix("SIG").unwrap_or(&name);
    let position = NAMES.iter().position(|it| *it == name);
    position.and_then(|it| u8::try_from(it + 1).ok()).or_else(|| real_time(name))
}

/// The number of SIGTERM, the default signal that asks a program to end.
pub const TERM: u8 = 15;

/// Returns the name of a signal, such as `SIGTERM`, or `None` if there is no such signal.
pub fn name(number: u8) -> Option<String> {
    let (least, most) = REAL_TIME;
    let index = usize::from(number.checked_sub(1)?);
    match NAMES.get(index) {
        Some(name) => Some(format!("SIG{name}")),
        None if number == least => Some("SIGRTMIN".to_owned()),
        None if (least..=most).contains(&number) => Some(format!("SIGRTMIN+{}", number - least)),
        None => None,
    }
}

/// Returns whether a program can handle a signal, so that the signal can ask it to end. SIGKILL and SIGSTOP cannot be
/// handled.
pub fn can_ask_to_end(number: u8) -> bool {
    const KILL: u8 = 9;
    const STOP: u8 = 19;
    name(number).is_some() && !matches!(number, KILL | STOP)
}

/// Parses `RTMIN`, `RTMIN+N`, `RTMAX` or `RTMAX-N`.
fn real_time(name: &str) -> Option<u8> {
    let (least, most) = REAL_TIME;
    let distance = |text: &str, sign| match text.strip_prefix(sign) {
        Some(number) if number.bytes().all(|byte| byte.is_ascii_digit()) => number.parse().ok(),
        Some(_) => None,
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
        assert_eq!(number("TERM"), Some(TERM));
        for signal in (1..=31).chain(34..=64) {
            assert_eq!(name(signal).as_deref().and_then(number), Some(signal));
            assert_eq!(can_ask_to_end(signal), ![9, 19].contains(&signal));
        }
        assert_eq!([name(0), name(32), name(65)], [None, None, None]);
        for text in [
            "32", "+9", "RTMIN++1", "", "0", "65", "-1", "SIGNO", "RTMIN-1", "RTMIN+31",
            "RTMAX-31", "RTMIN+", "SIG",
        ] {
            assert_eq!(number(text), None, "{text}");
        }
    }
}
