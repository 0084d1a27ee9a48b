//! One page that needs nothing else: no script, no network.

use std::fmt::Write as _;

use super::Report;
use super::svg::{draw, escape};
use crate::measure::require::{short, sum_up};

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}\
table{border-collapse:collapse;margin:.5rem 0 1.5rem}td,th{padding:.2rem .8rem .2rem 0;text-align:left;border-bottom:1px solid #ddd}\
svg{width:100%;height:auto;margin:1rem 0;font:11px system-ui,sans-serif}.grid{stroke:#e4e4e4}.mark{stroke:#b00;stroke-dasharray:4 3}\
.title{font-weight:600;font-size:13px}.missed{color:#b00}code{background:#f4f4f4;padding:.1rem .3rem}";

/// The page.
pub fn page(report: &Report) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>cara-bench</title><style>{STYLE}</style>\n\
         <h1>cara-bench</h1>\n<p><code>cara-bench {}</code></p>\n<p>{}</p>\n",
        escape(&report.command),
        escape(&report.machine.line())
    );
    if let Some(disk) = &report.disk {
        let (per_s, p50, p99) = (short(disk.per_s), short(disk.p50_ms), short(disk.p99_ms));
        let _ = writeln!(html, "<p>The disk syncs {per_s} times a second by itself: p50 {p50} ms, p99 {p99} ms.</p>");
    }
    let class = if report.is_met() { "" } else { " class=\"missed\"" };
    let _ = writeln!(html, "<p{class}>{}</p>", escape(&sum_up(&report.verdicts)));
    let figures = report.figures.iter().map(|figure| {
        let value = figure.value.map_or_else(|| "not measured".to_owned(), short);
        vec![figure.name.clone(), format!("{value} {}", figure.unit), figure.what.to_owned()]
    });
    table(&mut html, "Figures", &["figure", "value", "what"], figures);
    for section in &report.sections {
        table(&mut html, &section.title, section.header, section.rows.iter().cloned());
    }
    report.plots.iter().for_each(|plot| html.push_str(&draw(plot)));
    if !report.notes.is_empty() {
        html.push_str("<h2>Notes</h2>\n<ul>\n");
        for note in &report.notes {
            let _ = writeln!(html, "<li>{}</li>", escape(note));
        }
        html.push_str("</ul>\n");
    }
    html.push_str("</html>\n");
    html
}

fn table(html: &mut String, title: &str, header: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    let _ = writeln!(html, "<h2>{}</h2>\n<table>", escape(title));
    let line = |cells: Vec<String>, tag: &str| {
        let cells: String = cells.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell))).collect();
        format!("<tr>{cells}</tr>\n")
    };
    html.push_str(&line(header.iter().map(|word| (*word).to_owned()).collect(), "th"));
    rows.for_each(|row| html.push_str(&line(row, "td")));
    html.push_str("</table>\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Plot, Section};

    #[test]
    fn a_page_needs_nothing_else_and_takes_no_text_for_markup() {
        let mut report = Report { command: "<script>".into(), ..Report::default() };
        report.figures.put("recovery", None);
        report.section(Section { title: "T".into(), header: &["a"], rows: vec![vec!["<b>".into()]] });
        report.note("<i>");
        report.plots.push(Plot::default());
        report.end(&["recovery=1".parse().expect("a requirement")]);
        let page = page(&report);
        for never in ["<script", "<b>", "<i>", "http://", "https://", "src="] {
            assert!(!page.contains(never), "{never}");
        }
        assert!(page.contains("not measured") && page.contains("class=\"missed\"") && page.contains("<svg"));
    }
}
