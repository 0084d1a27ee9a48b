//! Cuts a YAML stream into its documents.
//!
//! A line that begins with `---` at its first column always starts a document: YAML forbids it inside block scalars and
//! quoted text. So the stream can be cut before it is parsed, and each document is checked on its own, with its own
//! limits and its own line numbers.

/// One document and the number of lines before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Document<'a> {
    pub text: &'a str,
    pub lines_before: usize,
}

/// The documents that are more than blanks, comments and directives.
pub(super) fn split(text: &str) -> Vec<Document<'_>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut documents = Vec::new();
    let mut begin = 0;
    let mut lines_before = 0;
    let mut at = 0;
    let mut has_content = false;
    for (lines, line) in text.split_inclusive('\n').enumerate() {
        if is_marker(line) && has_content {
            documents.push(Document { text: &text[begin..at], lines_before });
            (begin, lines_before, has_content) = (at, lines, false);
        }
        let content = line.strip_prefix("---").filter(|_| is_marker(line)).unwrap_or(line).trim();
        has_content |= !content.is_empty() && !content.starts_with('#') && !line.starts_with('%') && content != "...";
        at += line.len();
    }
    if has_content {
        documents.push(Document { text: &text[begin..], lines_before });
    }
    documents
}

fn is_marker(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expect: &[(usize, &str)]) {
        let found: Vec<_> = split(text).iter().map(|d| (d.lines_before, d.text)).collect();
        assert_eq!(found, expect, "{text:?}");
    }

    #[test]
    fn documents_keep_their_line_numbers() {
        check("a: 1\n---\nb: 2\n", &[(0, "a: 1\n"), (1, "---\nb: 2\n")]);
        check("---\na: 1\n", &[(0, "---\na: 1\n")]);
        check("# hello\n\n---\na: 1\n--- # two\nb: 2", &[(0, "# hello\n\n---\na: 1\n"), (4, "--- # two\nb: 2")]);
    }

    #[test]
    fn empty_documents_are_nothing() {
        check("", &[]);
        check("---\n---\n# only words\n", &[]);
        check("\u{feff}%YAML 1.2\n---\na: 1\n...\n", &[(0, "%YAML 1.2\n---\na: 1\n...\n")]);
    }

    #[test]
    fn dashes_inside_text_do_not_cut() {
        check("a: |\n  ---\n  x\nb: ----\n", &[(0, "a: |\n  ---\n  x\nb: ----\n")]);
        check("----\n", &[(0, "----\n")]);
    }
}
