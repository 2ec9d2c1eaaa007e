//! The layout of a map: rectangles whose areas are the sizes.
//!
//! Bruls, Huizing, van Wijk: Squarified Treemaps (2000), <https://www.win.tue.nl/~vanwijk/stm.pdf>.

/// A rectangle of a map.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rect {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// Divides a rectangle among sizes, the largest first. No size is 0.
pub(crate) fn squares(sizes: &[u64], within: Rect) -> Vec<Rect> {
    let whole: f64 = sizes.iter().map(|it| *it as f64).sum();
    let scale = within.width * within.height / whole;
    let areas: Vec<f64> = sizes.iter().map(|it| *it as f64 * scale).collect();
    let (mut left, mut rects) = (within, Vec::with_capacity(areas.len()));
    while rects.len() < areas.len() {
        let rest = &areas[rects.len()..];
        let count = row(rest, left.width.min(left.height));
        left = fill(&rest[..count], left, &mut rects);
    }
    rects
}

/// Returns how many of the areas make the first row, along a side of this length: as many as make its rectangles squarer.
fn row(areas: &[f64], side: f64) -> usize {
    let (mut sum, mut count) = (areas[0], 1);
    while let Some(next) = areas.get(count) {
        if slimmest(areas[0], *next, sum + next, side)
            > slimmest(areas[0], areas[count - 1], sum, side)
        {
            break;
        }
        sum += next;
        count += 1;
    }
    count
}

/// Returns the largest ratio of the sides of a row's rectangles, from its largest and its smallest area.
fn slimmest(most: f64, least: f64, sum: f64, side: f64) -> f64 {
    let (square, sum) = (side * side, sum * sum);
    (square * most / sum).max(sum / (square * least))
}

/// Puts a row along the shorter side of a rectangle, and returns the rest of the rectangle.
fn fill(row: &[f64], Rect { x, y, width, height }: Rect, rects: &mut Vec<Rect>) -> Rect {
    let sum: f64 = row.iter().sum();
    let side = width.min(height);
    let depth = if side > 0.0 { sum / side } else { 0.0 };
    let mut along = 0.0;
    for area in row {
        let length = if depth > 0.0 { area / depth } else { 0.0 };
        rects.push(if width >= height {
            Rect { x, y: y + along, width: depth, height: length }
        } else {
            Rect { x: x + along, y, width: length, height: depth }
        });
        along += length;
    }
    if width >= height {
        Rect { x: x + depth, width: (width - depth).max(0.0), y, height }
    } else {
        Rect { y: y + depth, height: (height - depth).max(0.0), x, width }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PAGE: Rect = Rect { x: 0.0, y: 0.0, width: 1000.0, height: 500.0 };

    #[test]
    fn equal_sizes_are_squares() {
        let found = squares(&[1, 1], PAGE);
        let half = Rect { width: 500.0, ..PAGE };
        assert_eq!(found, [half, Rect { x: 500.0, ..half }]);
        assert_eq!(squares(&[], PAGE), []);
    }

    proptest! {
        #[test]
        fn areas_are_sizes_and_stay_inside(mut sizes in prop::collection::vec(1u64..u64::MAX / 64, 1..60)) {
            sizes.sort_by(|a, b| b.cmp(a));
            let whole: f64 = sizes.iter().map(|it| *it as f64).sum();
            for (rect, size) in squares(&sizes, PAGE).iter().zip(&sizes) {
                let area = *size as f64 / whole * PAGE.width * PAGE.height;
                prop_assert!((rect.width * rect.height - area).abs() < 1e-3, "{rect:?} {area}");
                prop_assert!(rect.x >= 0.0 && rect.x + rect.width <= PAGE.width + 1e-3);
                prop_assert!(rect.y >= 0.0 && rect.y + rect.height <= PAGE.height + 1e-3);
            }
        }
    }
}
