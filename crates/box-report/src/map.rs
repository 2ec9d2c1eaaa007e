//! A map of a box: each level is a picture whose rectangles are links to the levels below.
//!
//! The picture needs no script: the page shows the level that the address names after `#`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use box_inspect::largest::Largest;
use safe_text::{counted, readable};

use crate::html::{Html, clipped};
use crate::names::Names;
use crate::squares::{Rect, squares};

/// The number of levels of a map: the largest directories can be opened.
const MAX_LEVELS: usize = 40;
/// The number of rectangles of a level. One more stands for the rest.
const MAX_ITEMS: usize = 24;
/// The number of characters of a name in a picture.
const MAX_NAME: usize = 48;
/// The size of a picture.
const PICTURE: Rect = Rect { x: 0.0, y: 0.0, width: 1000.0, height: 460.0 };

/// A map.
#[derive(Debug)]
pub(crate) struct Map {
    /// The letter with which the names of its levels begin.
    letter: char,
    title: &'static str,
    levels: Vec<Level>,
}

#[derive(Debug)]
struct Level {
    /// The names of the levels above, with their numbers.
    above: Vec<(String, usize)>,
    name: String,
    size: u64,
    items: Vec<Item>,
}

#[derive(Debug)]
struct Item {
    name: String,
    size: u64,
    /// The number in the tree. `None` for the rest of a level.
    node: Option<usize>,
    /// The number of the level that it opens.
    level: Option<usize>,
}

impl Map {
    /// Makes a map. The largest names with others below them become levels of their own.
    pub(crate) fn of(names: &Names<'_>, letter: char, title: &'static str) -> Self {
        let mut levels: Vec<Level> = Vec::new();
        let mut pending = BinaryHeap::from([(u64::MAX, Reverse(0usize), None::<(usize, usize)>)]);
        while let Some((_, Reverse(node), from)) =
            pending.pop().filter(|_| levels.len() < MAX_LEVELS)
        {
            let (number, mut above) = (levels.len(), Vec::new());
            if let Some((level, item)) = from {
                let from: &mut Level = &mut levels[level];
                from.items[item].level = Some(number);
                above = [from.above.as_slice(), &[(from.name.clone(), level)]].concat();
            }
            let items = items(names, node);
            for (at, item) in items.iter().enumerate() {
                let node = item.node.filter(|it| names.is_open(*it));
                pending.extend(node.map(|it| (item.size, Reverse(it), Some((number, at)))));
            }
            levels.push(Level {
                above,
                name: named(&names.shown(node)),
                size: names.size(node),
                items,
            });
        }
        Self { letter, title, levels }
    }

    /// Formats the levels of several maps. The page shows the first level of the first map until one is opened.
    pub(crate) fn html(maps: &[Self]) -> Html {
        let mut html = Html::default();
        // A later sibling can be hidden by an opened one, so the level to show at first is the last.
        for map in maps.iter().rev() {
            for number in (0..map.levels.len()).rev() {
                let class = if number == 0 && map.letter == maps[0].letter { " first" } else { "" };
                html.put(&format!("<div class=\"level{class}\" id=\"{}{number}\">\n", map.letter));
                html.put("<nav class=\"views\" aria-label=\"Maps\">");
                for Self { letter, title, .. } in maps {
                    let current = if *letter == map.letter { " aria-current=\"true\"" } else { "" };
                    html.put(&format!("<a href=\"#{letter}0\"{current}>{title}</a>"));
                }
                html.put("</nav>\n");
                map.level(&map.levels[number], &mut html);
                html.put("</div>\n");
            }
        }
        html
    }

    fn link(&self, level: Option<usize>, content: &str) -> String {
        match level {
            Some(level) => format!("<a href=\"#{}{level}\">{content}</a>", self.letter),
            None => content.to_owned(),
        }
    }

    fn level(&self, Level { above, name, size, items }: &Level, html: &mut Html) {
        let way = above.iter().map(|(name, level)| self.link(Some(*level), name) + " / ");
        let (way, all) = (way.collect::<String>(), readable(*size));
        html.put(&format!("<nav class=\"way\" aria-label=\"Levels above\">{way}<b>{name}</b> <span class=\"n\">{all}</span></nav>\n"));
        if items.is_empty() {
            return html.paragraph("There is nothing with a size.");
        }
        let Rect { width, height, .. } = PICTURE;
        html.put(&format!("<svg class=\"map\" viewBox=\"0 0 {width} {height}\" role=\"group\" aria-label=\"Map of {name}\">\n"));
        for ((at, item), rect) in items.iter().enumerate().zip(squares(&sizes(items), PICTURE)) {
            let class = match (item.node, item.level) {
                (None, _) => " class=\"rest\"".to_owned(),
                (_, None) => " class=\"leaf\"".to_owned(),
                _ => format!(" class=\"t{}\"", at.min(4)),
            };
            let (bytes, share) = (readable(item.size), share(item.size, *size));
            let title = format!("<title>{}: {bytes}, {share}</title>", item.name);
            html.put(&(self.link(item.level, &self.drawn(item, (&class, &title), rect, 2)) + "\n"));
        }
        html.put("</svg>\n");
        let rows = items.iter().map(|it| {
            let share = Html::own(share(it.size, *size));
            [Html::own(self.link(it.level, &it.name)), Html::size(it.size), share]
        });
        let mut table = Html::default();
        table.table(["name", "#size", "#share"], rows, (usize::MAX, ""));
        html.details("As a table", &table);
    }

    /// Draws an item: a rectangle with its name, and in it the items of the level that it opens, at most `depth` levels deep.
    fn drawn(&self, item: &Item, (class, title): (&str, &str), rect: Rect, depth: usize) -> String {
        let Rect { x, y, width, height } = rect;
        let mut drawn = format!(
            "<svg{class} x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\">{title}\
             <rect width=\"100%\" height=\"100%\"/>"
        );
        let narrow = if width > 150.0 { "" } else { " narrow" };
        if width > 40.0 && height > 22.0 {
            drawn += &format!("<text class=\"name{narrow}\" x=\"7\" y=\"18\">{}</text>", item.name);
        }
        let has_size = width > 40.0 && height > 42.0;
        if has_size {
            let size = readable(item.size);
            drawn += &format!("<text class=\"size{narrow}\" x=\"7\" y=\"35\">{size}</text>");
        }
        let inner = item.level.filter(|_| depth > 0 && has_size && height > 70.0);
        if let Some(items) = inner.map(|it| &self.levels[it].items) {
            let within = Rect { x: 5.0, y: 43.0, width: width - 10.0, height: height - 48.0 };
            let rects = squares(&sizes(items), within).into_iter().zip(items);
            for (rect, item) in rects.filter(|(it, _)| it.width > 6.0 && it.height > 6.0) {
                drawn += &self.drawn(item, ("", ""), rect, depth - 1);
            }
        }
        drawn + "</svg>"
    }
}

/// Returns the items of a level, the largest first.
fn items(names: &Names<'_>, of: usize) -> Vec<Item> {
    let mut largest = Largest::new(MAX_ITEMS);
    let below = || names.below(of).filter(|it| names.size(*it) > 0);
    below().for_each(|it| largest.add(names.size(it), || it));
    let (added, kept) = (largest.added(), largest.into_vec().into_iter());
    let item =
        |(size, it)| Item { name: named(&names.shown(it)), size, node: Some(it), level: None };
    let mut items: Vec<_> = kept.map(item).collect();
    let size = items.iter().fold(names.size(of), |rest, it| rest.saturating_sub(it.size));
    if size > 0 && added > items.len() {
        let name = counted(added - items.len(), "more entry", "more entries");
        items.push(Item { name, size, node: None, level: None });
    }
    items
}

fn sizes(items: &[Item]) -> Vec<u64> {
    items.iter().map(|it| it.size).collect()
}

/// Escapes and cuts a name.
fn named(name: &str) -> String {
    Html::text(&clipped(name, MAX_NAME)).into_string()
}

/// Formats a part as a percentage of a whole.
pub(crate) fn share(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{}.{} %", tenths / 10, tenths % 10)
}
