//! The code blocks of a guide: what stands between fences, in which language, and on which line it begins.

/// A block of code.
pub(crate) struct Block<'t> {
    /// What follows the opening fence.
    pub(crate) language: &'t str,
    /// Its first line, from 1.
    pub(crate) line: usize,
    pub(crate) text: String,
}

/// All blocks of a guide, in their order.
pub(crate) fn blocks(guide: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut is_open = false;
    for (line, number) in guide.lines().zip(1..) {
        match line.trim_start().strip_prefix("```") {
            Some(_) if is_open => is_open = false,
            Some(language) => {
                blocks.push(Block { language, line: number + 1, text: String::new() });
                is_open = true;
            }
            None if is_open => {
                if let Some(block) = blocks.last_mut() {
                    block.text += line;
                    block.text.push('\n');
                }
            }
            None => {}
        }
    }
    blocks
}
