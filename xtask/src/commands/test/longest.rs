//! The starts of the virtual host in a run of the tests, for people to read.

use testbed::boots::{Boot, Origin, Run};

/// The number of starts that are listed.
const LISTED: usize = 10;

/// Returns the summary's lines about the starts of the virtual host. There are none if no test needed one.
pub(super) fn lines(run: &Run) -> Vec<String> {
    shown(run.list())
}

fn shown(mut starts: Vec<Boot>) -> Vec<String> {
    if starts.is_empty() {
        return Vec::new();
    }
    let of = |origin| starts.iter().filter(|boot| boot.origin == origin).count();
    let [found, made, repeated] = [Origin::Found, Origin::Made, Origin::Repeated].map(of);
    let sum: f64 = starts.iter().map(|boot| boot.seconds).sum();
    let mut lines = vec![format!(
        "starts of the virtual host: {made} made, {found} found in the cache, {repeated} found and repeated with the same result; \
         {sum:.0} s; the longest:"
    )];
    starts.sort_by(|one, other| other.seconds.total_cmp(&one.seconds));
    let line = |boot: &Boot| format!("    {:.0} s  {}", boot.seconds, boot.test);
    lines.extend(starts.iter().take(LISTED).map(line));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_starts_come_first() {
        let boot = |it: u32| {
            let origin = if it < 5 { Origin::Found } else { Origin::Made };
            Boot { origin, seconds: f64::from(it) + 0.4, test: format!("a::b{it}") }
        };
        let lines = shown((0..12).map(boot).collect());
        assert_eq!(lines.len(), 1 + LISTED);
        let first = "starts of the virtual host: 7 made, 5 found in the cache, 0 found and repeated with the same result; 71 s; the \
                     longest:";
        assert_eq!(lines[0], first);
        assert_eq!(lines[1], "    11 s  a::b11");
        assert!(shown(Vec::new()).is_empty());
    }
}
