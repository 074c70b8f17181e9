//! Lines as a terminal shows them: styles from escape sequences, and rows of a fixed width.

/// How a piece of a line is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Style {
    #[default]
    Plain,
    Bold,
    Dim,
    Bad,
    Good,
}

/// A piece of a row, and the column that it begins in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) column: usize,
    pub(super) text: String,
    pub(super) style: Style,
}

/// The rows of a line, broken where a terminal of `width` columns breaks it.
pub(super) fn rows(line: &str, width: usize) -> Vec<Vec<Piece>> {
    let letters = letters(line);
    if letters.is_empty() {
        return vec![Vec::new()];
    }
    letters.chunks(width).map(pieces).collect()
}

fn letters(line: &str) -> Vec<(char, Style)> {
    let mut found = Vec::new();
    let mut style = Style::default();
    let mut rest = line.chars();
    while let Some(letter) = rest.next() {
        if letter == '\u{1b}' {
            let codes: String =
                rest.by_ref().take_while(|it| *it != 'm').filter(|it| *it != '[').collect();
            style = styled(style, &codes);
        } else {
            found.push((letter, style));
        }
    }
    found
}

/// The style that a sequence leads to; a color stays when bold comes to it.
fn styled(style: Style, codes: &str) -> Style {
    codes.split(';').fold(style, |style, code| match (code, style) {
        ("31", _) => Style::Bad,
        ("32", _) => Style::Good,
        ("1", Style::Plain) => Style::Bold,
        ("2", Style::Plain) => Style::Dim,
        ("" | "0", _) => Style::Plain,
        _ => style,
    })
}

/// The pieces of a row: each of one style, with no two spaces in a row.
fn pieces(row: &[(char, Style)]) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut spaces = usize::MAX;
    for (column, (letter, style)) in row.iter().enumerate() {
        if *letter == ' ' {
            spaces = spaces.saturating_add(1);
            continue;
        }
        match pieces.last_mut().filter(|last| last.style == *style && spaces <= 1) {
            Some(last) => {
                last.text.extend((spaces == 1).then_some(' '));
                last.text.push(*letter);
            }
            None => pieces.push(Piece { column, text: (*letter).into(), style: *style }),
        }
        spaces = 0;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(column: usize, text: &str, style: Style) -> Piece {
        Piece { column, text: text.into(), style }
    }

    #[test]
    fn styles_and_columns_are_those_of_the_line() {
        let line = "\u{1b}[1mTwo payments\u{1b}[0m";
        assert_eq!(rows(line, 80), [vec![piece(0, "Two payments", Style::Bold)]]);
        let line =
            "  calls made\u{1b}[1m\u{1b}[31m     4\u{1b}[0m\u{1b}[1m\u{1b}[32m     2\u{1b}[0m";
        let wanted = [
            piece(2, "calls made", Style::Plain),
            piece(17, "4", Style::Bad),
            piece(23, "2", Style::Good),
        ];
        assert_eq!(rows(line, 80), [wanted]);
    }

    #[test]
    fn a_long_line_is_broken_as_a_terminal_does() {
        let wanted = [
            vec![piece(0, "ab", Style::Dim)],
            vec![piece(1, "c", Style::Dim)],
            vec![piece(0, "é", Style::Plain)],
        ];
        assert_eq!(rows("\u{1b}[2mab c\u{1b}[0mé", 2), wanted);
        assert_eq!(rows("", 2), [vec![]]);
    }
}
