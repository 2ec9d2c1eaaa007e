//! Groups of files that import each other.

use std::collections::BTreeSet;

/// Returns the strongly connected components of more than one node, largest first. `edges` has for
/// each node the nodes that it leads to.
pub(crate) fn circles(edges: &[BTreeSet<usize>]) -> Vec<Vec<usize>> {
    let reached: Vec<_> = (0..edges.len()).map(|start| reachable(edges, start)).collect();
    let mut found: Vec<Vec<usize>> = Vec::new();
    for node in 0..edges.len() {
        if found.iter().any(|circle| circle.contains(&node)) {
            continue;
        }
        let others = reached[node].iter().filter(|other| reached[**other].contains(&node));
        let circle: Vec<_> = others.copied().collect();
        if circle.len() > 1 {
            found.push(circle);
        }
    }
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

/// Returns the nodes to which a way of one edge or more leads.
fn reachable(edges: &[BTreeSet<usize>], start: usize) -> BTreeSet<usize> {
    let mut found = BTreeSet::new();
    let mut waiting = vec![start];
    while let Some(node) = waiting.pop() {
        waiting.extend(edges[node].iter().filter(|next| found.insert(**next)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found_largest_first() {
        let edges = [&[1][..], &[0], &[3, 0], &[4], &[2], &[2], &[6]];
        let edges = edges.map(|to| to.iter().copied().collect());
        assert_eq!(circles(&edges), [vec![2, 3, 4], vec![0, 1]]);
    }
}
