//! What is read of a guide: its prose, and the links in it.

/// `path` as seen from `folder`, from the root.
pub(crate) fn joined(folder: &str, path: &str) -> String {
    let mut parts: Vec<_> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The folder of a file; the root's is empty.
pub(crate) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The lines of a guide that are no code, with their numbers.
pub(crate) fn prose(guide: &str) -> impl Iterator<Item = (&str, usize)> {
    lines(guide)
        .zip(1..)
        .filter_map(|((line, is_prose), number)| is_prose.then_some((line, number)))
}

/// All lines of a guide, and whether each is prose.
pub(crate) fn lines(guide: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut is_code = false;
    guide.lines().map(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        (line, !is_code && !is_fence)
    })
}

/// Where the links of a line lead.
pub(crate) fn targets(line: &str) -> impl Iterator<Item = &str> {
    line.split(OPEN).skip(1).filter_map(|rest| Some(rest.split_once(CLOSE)?.0))
}

/// The line with `new` in place of where its links lead.
pub(crate) fn with_targets(line: &str, mut new: impl FnMut(&str) -> String) -> String {
    let mut parts = line.split(OPEN);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        out += OPEN;
        match part.split_once(CLOSE) {
            Some((target, rest)) => out.extend([&*new(target), CLOSE, rest]),
            None => out += part,
        }
    }
    out
}

/// Whether a link stays within the repository.
pub(crate) fn is_local(target: &str) -> bool {
    !target.contains("://")
}

const OPEN: &str = "](";
const CLOSE: &str = ")";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_of_a_line_are_replaced_and_the_rest_stays() {
        let line = "[a](b.md) `x` ![c](d.svg), [e](";
        assert_eq!(targets(line).collect::<Vec<_>>(), ["b.md", "d.svg"]);
        let new = with_targets(line, |target| format!("../{target}"));
        assert_eq!(new, "[a](../b.md) `x` ![c](../d.svg), [e](");
        assert_eq!(with_targets("none", |_| panic!("no link")), "none");
    }
}
