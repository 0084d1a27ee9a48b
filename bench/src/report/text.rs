//! Tables for people.

use std::io::IsTerminal;

use caractrl::out::Table;

use super::Report;
use crate::measure::figure::Better;
use crate::measure::require::{short, sum_up};

/// The whole report; its last line sums up.
pub fn text(report: &Report) -> String {
    let terminal = std::io::stdout().is_terminal();
    let mut blocks = vec![format!("{}\n", report.machine.line())];
    if let Some(disk) = &report.disk {
        let (per_s, p50, p99) = (short(disk.per_s), short(disk.p50_ms), short(disk.p99_ms));
        blocks.push(format!("the disk syncs {per_s} times a second by itself: p50 {p50} ms, p99 {p99} ms\n"));
    }
    for section in &report.sections {
        let mut table = Table::new(section.header);
        section.rows.iter().for_each(|row| table.row(row.clone()));
        blocks.push(format!("{}\n{}", section.title, table.render(terminal, false, true)));
    }
    let mut table = Table::new(&["FIGURE", "VALUE", "BETTER", "WHAT"]);
    for figure in report.figures.iter() {
        let value = figure.value.map_or_else(|| "not measured".to_owned(), short);
        let unit = if figure.unit.is_empty() { String::new() } else { format!(" {}", figure.unit) };
        let better = if figure.better == Better::More { "more" } else { "less" };
        table.row(vec![figure.name.clone(), format!("{value}{unit}"), better.to_owned(), figure.what.to_owned()]);
    }
    blocks.push(table.render(terminal, false, true));
    let notes: String = report.notes.iter().map(|note| format!("note: {note}\n")).collect();
    blocks.push(notes);
    blocks.push(format!("{}\n", sum_up(&report.verdicts)));
    blocks.retain(|block| !block.is_empty());
    blocks.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_sums_up() {
        let mut report = Report::default();
        report.figures.put("false_offline", Some(0.0));
        report.end(&["false_offline=0".parse().expect("a requirement")]);
        let text = text(&report);
        assert!(text.ends_with("\n1 of 1 requirements met\n"), "{text}");
        assert!(text.contains("false_offline\t0\tless\t"), "{text}");
        assert!(report.is_met());
    }
}
