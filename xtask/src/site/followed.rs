//! The links of a built site, followed.

use std::collections::{BTreeMap, BTreeSet};

use crate::guide::{folder, joined};

/// The page that a server shows at any address that is none: its links depend on where the site is.
const NOT_FOUND: &str = "404.html";

/// Every link or image of a page that leads to no file of the site, or to no place in its page.
pub(super) fn broken(files: &BTreeMap<String, Option<String>>) -> Vec<String> {
    let ids: BTreeMap<&str, BTreeSet<&str>> = files
        .iter()
        .filter_map(|(path, page)| Some((&**path, values(page.as_deref()?, " id=\"").collect())))
        .collect();
    let is_there = |path: &str, place: &str| {
        files.contains_key(path)
            && (place.is_empty() || ids.get(path).is_some_and(|ids| ids.contains(place)))
    };
    let mut broken = Vec::new();
    for (path, page) in files {
        let Some(page) = page.as_deref().filter(|_| path != NOT_FOUND) else { continue };
        let targets = values(page, " href=\"").chain(values(page, " src=\""));
        for target in targets.filter(|target| !target.contains("://")) {
            let (to, place) = target.split_once('#').unwrap_or((target, ""));
            let to = if to.is_empty() { path.clone() } else { joined(folder(path), to) };
            if !is_there(&to, place) {
                broken.push(format!("{path}: {target}"));
            }
        }
    }
    broken
}

/// The values of an attribute, which `begin` begins.
fn values<'p>(page: &'p str, begin: &'p str) -> impl Iterator<Item = &'p str> {
    page.split(begin).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leads_nowhere_is_told_with_its_page() {
        let page = |text: &str| Some(text.to_owned());
        let files = BTreeMap::from([
            ("a/b.html".to_owned(), page("<a href=\"#x\">x</a><img src=\"../c.svg\"><p id=\"x\">")),
            ("c.svg".to_owned(), None),
            (
                "index.html".to_owned(),
                page(
                    "<a href=\"a/b.html#x\">1</a><a href=\"a/b.html#y\">2</a><a href=\"a\">3</a>\
                     <a href=\"https://example.org/\">4</a><script src=\"d.js\"></script>",
                ),
            ),
            ("404.html".to_owned(), page("<a href=\"elsewhere\">1</a>")),
        ]);
        assert_eq!(broken(&files), ["index.html: a/b.html#y", "index.html: a", "index.html: d.js"]);
    }
}
