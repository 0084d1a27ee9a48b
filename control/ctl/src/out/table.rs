//! Tables: aligned columns without borders on a terminal, tab-separated lines in a pipe.

use comfy_table::{Cell, Color, ContentArrangement, Table as Grid, TableStyle, presets};

use super::{Tone, clean, tone_of};

/// A header and rows of text. An empty cell is printed as `-`, so that every line has the same fields.
#[derive(Debug, Clone, Default)]
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// An empty table.
    pub fn new(header: &[&'static str]) -> Self {
        Self { header: header.to_vec(), rows: Vec::new() }
    }

    /// Adds a line; it has as many cells as the header.
    pub fn row(&mut self, cells: Vec<String>) {
        let cell = |text: String| if text.trim().is_empty() { "-".to_owned() } else { clean(&text) };
        self.rows.push(cells.into_iter().map(cell).collect());
    }

    /// Has it no line?
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The text, each line ended.
    pub fn render(&self, terminal: bool, color: bool, header: bool) -> String {
        if terminal { self.aligned(color, header) } else { self.tabs(header) }
    }

    fn tabs(&self, header: bool) -> String {
        let head = header.then(|| self.header.join("\t"));
        let lines = head.into_iter().chain(self.rows.iter().map(|row| row.join("\t")));
        lines.map(|line| line + "\n").collect()
    }

    fn aligned(&self, color: bool, header: bool) -> String {
        let mut grid = Grid::new();
        let style: TableStyle = presets::NOTHING;
        grid.load_style(style).set_content_arrangement(ContentArrangement::Disabled);
        if color {
            grid.enforce_styling();
        } else {
            grid.force_no_tty();
        }
        if header {
            grid.set_header(self.header.clone());
        }
        for row in &self.rows {
            grid.add_row(row.iter().map(|text| cell(text)));
        }
        for column in grid.column_iter_mut() {
            column.set_padding((0, 2));
        }
        grid.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
    }
}

fn cell(text: &str) -> Cell {
    let cell = Cell::new(text);
    match tone_of(text) {
        Tone::Good => cell.fg(Color::Green),
        Tone::Busy => cell.fg(Color::Yellow),
        Tone::Bad => cell.fg(Color::Red),
        Tone::Plain => cell,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&["NAME", "STATE", "AGE"]);
        table.row(vec!["w1".into(), "Ready".into(), "2m".into()]);
        table.row(vec!["worker-long".into(), String::new(), "a\tb".into()]);
        table
    }

    #[test]
    fn a_terminal_gets_aligned_columns() {
        let text = "NAME         STATE  AGE\nw1           Ready  2m\nworker-long  -      a b\n";
        assert_eq!(table().render(true, false, true), text);
    }

    #[test]
    fn a_pipe_gets_tabs_and_never_colour() {
        assert_eq!(table().render(false, true, true), "NAME\tSTATE\tAGE\nw1\tReady\t2m\nworker-long\t-\ta b\n");
        assert_eq!(table().render(false, false, false), "w1\tReady\t2m\nworker-long\t-\ta b\n");
    }

    #[test]
    fn colour_is_put_around_status_words_only() {
        let text = table().render(true, true, false);
        assert!(text.contains('\x1b'));
        assert!(text.contains("Ready") && text.contains("worker-long"));
        assert!(!text.lines().nth(1).expect("two lines").contains('\x1b'));
    }
}
