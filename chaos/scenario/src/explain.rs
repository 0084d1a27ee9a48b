//! A plan in words: the timeline before anything runs.

use std::fmt::Write as _;

use crate::plan::{Plan, PlannedFault, When};
use crate::time::duration_text;

/// The timeline for people.
pub fn explain(plan: &Plan) -> String {
    let mut text = String::new();
    let cluster = &plan.cluster;
    // Writing into a string can't fail.
    let _ = writeln!(text, "{}, seed {}", plan.name, plan.seed);
    if !plan.about().is_empty() {
        let _ = writeln!(text, "{}", plan.about().trim());
    }
    let _ = writeln!(
        text,
        "\n{} servers and {} spares, {} agents, {} clients, {} watchers; {} of work, then heal and converge within {}",
        cluster.servers,
        cluster.spares,
        cluster.agents,
        cluster.clients,
        plan.watchers,
        duration_text(plan.duration),
        duration_text(plan.converge_within),
    );
    let _ = writeln!(text, "{} operations of clients\n", plan.ops.len());
    let mut rows: Vec<[String; 5]> = Vec::new();
    let mut faults: Vec<&PlannedFault> = plan.faults.iter().collect();
    faults.sort_by_key(|fault| match &fault.when {
        When::At(at) => *at,
        When::After(..) | When::On(..) => std::time::Duration::MAX,
    });
    for fault in faults {
        let to = fault.what.to.as_ref().map_or_else(String::new, |to| format!(" to {to}"));
        rows.push([
            when(&fault.when),
            fault.id.clone(),
            fault.what.kind.to_string(),
            format!("{}{to}", fault.target),
            format!("for {}", duration_text(fault.lasts)),
        ]);
    }
    table(&mut text, &rows);
    for want in &plan.sometimes {
        let during = want.during.as_ref().map_or_else(String::new, |fault| format!(" during {fault}"));
        let times = if want.at_least > 1 { format!("{} times: ", want.at_least) } else { String::new() };
        let _ = writeln!(text, "\nmust happen: {times}{}{during}", want.event);
    }
    for (event, most) in &plan.at_most {
        let _ = writeln!(text, "\nmay happen: {event}, at most {most} times");
    }
    for choice in &plan.choices {
        let _ = writeln!(text, "\nthe seed chose: {choice}");
    }
    text
}

fn when(when: &When) -> String {
    match when {
        When::At(at) => format!("{:.3} s", at.as_secs_f64()),
        When::After(id, delay) => format!("{} after {id}", duration_text(*delay)),
        When::On(on, delay) => {
            let nth = if on.nth == 1 { String::new() } else { format!(" (time {})", on.nth) };
            let delay = if delay.is_zero() { String::new() } else { format!(" + {}", duration_text(*delay)) };
            format!("at {}{nth}{delay}", on.event)
        }
    }
}

fn table(text: &mut String, rows: &[[String; 5]]) {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..5).map(width).collect();
    for row in rows {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Scenario, plan};

    #[test]
    fn faults_are_told_in_the_order_of_time_and_aligned() {
        let text = "format = 1\nname = \"x\"\nabout = \"why\"\n\
                    [[fault]]\nid = \"later\"\nat = \"9s\"\nwhat = \"crash\"\ntarget = \"leader\"\n\
                    [[fault]]\nid = \"a\"\nat = \"2s\"\nwhat = \"clog\"\ntarget = \"leader\"\nto = \"agent:*\"\n";
        let told = explain(&plan(&Scenario::parse(text).expect("a scenario"), 1));
        let lines: Vec<&str> = told.lines().filter(|line| line.starts_with("  ")).collect();
        assert_eq!(lines[0], "  2.000 s  a      clog   leader to agent:*  for 3s");
        assert_eq!(lines[1], "  9.000 s  later  crash  leader             for 3s");
    }
}
