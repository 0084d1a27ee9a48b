//! `audit`: who changed what.

use cara_proto::rest::AuditPage;
use serde_json::Value;

use super::{Context, answer, get, segment};
use crate::cli::{Audit, AuditCommand, Since, Which};
use crate::client::Client;
use crate::failure::Outcome;
use crate::out::clean;
use crate::view;

/// Records that an export asks for at once.
const EXPORT_PAGE: u32 = 1_000;

pub(super) async fn run(cx: &Context, args: Audit) -> Outcome {
    let client = cx.client()?;
    match args.command {
        Some(AuditCommand::Export { which, after }) => export(cx, &client, &which, after).await,
        None => show(cx, &client, &args.which, args.limit, args.before).await,
    }
}

async fn show(cx: &Context, client: &Client, which: &Which, limit: u32, before: Option<u64>) -> Outcome {
    let before = before.map(|before| format!("&before={before}")).unwrap_or_default();
    let answer = client.get_raw(&format!("/audit-log?limit={limit}{before}{}", query(which, cx.now_ms()))).await?;
    get::banner(cx, &answer);
    let value: Value = answer.json()?;
    let page: AuditPage = answer::typed(&value)?;
    let names: Vec<String> = page.items.iter().map(|record| format!("audit/{}", record.revision)).collect();
    answer::many(cx, &value, &names, &view::audit(&page.items, cx.ui.wide()), "No change fits.")?;
    if !page.notice.is_empty() {
        cx.ui.note(&clean(&format!("note: {}", page.notice)));
    }
    if let Some(next) = page.next.filter(|_| !cx.ui.structured()) {
        cx.ui.note(&format!("There are older ones: --before {next}"));
    }
    Ok(())
}

/// Page after page, each printed before the next is asked for.
async fn export(cx: &Context, client: &Client, which: &Which, after: u64) -> Outcome {
    let which = query(which, cx.now_ms());
    let mut after = Some(after);
    while let Some(from) = after {
        let page: AuditPage = client.get(&format!("/audit-log?limit={EXPORT_PAGE}&after={from}{which}")).await?;
        for record in &page.items {
            cx.ui.bytes((serde_json::to_string(record).unwrap_or_default() + "\n").as_bytes());
        }
        if !page.notice.is_empty() {
            cx.ui.note(&clean(&format!("note: {}", page.notice)));
        }
        after = page.next;
    }
    Ok(())
}

/// The filters as a query that follows others.
fn query(which: &Which, now_ms: u64) -> String {
    let since = match which.since {
        None => String::new(),
        Some(Since::At(at)) => at.to_string(),
        Some(Since::Ago(ago)) => {
            let at_ms = now_ms.saturating_sub(u64::try_from(ago.as_millis()).unwrap_or(u64::MAX));
            let at = jiff::Timestamp::from_millisecond(i64::try_from(at_ms).unwrap_or(i64::MAX));
            at.unwrap_or(jiff::Timestamp::UNIX_EPOCH).to_string()
        }
    };
    let parts = [("actor", &which.actor), ("subject", &which.subject), ("since", &since)];
    let given = parts.into_iter().filter(|(_, text)| !text.is_empty());
    given.map(|(name, text)| format!("&{name}={}", segment(text))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_become_a_query_that_nothing_in_them_can_change() {
        let which = Which {
            actor: "a&limit=9".into(),
            subject: "node/w1".into(),
            since: Some(Since::Ago(std::time::Duration::from_secs(60))),
        };
        let text = query(&which, 1_700_000_060_000);
        assert_eq!(text, "&actor=a%26limit%3D9&subject=node%2Fw1&since=2023-11-14T22%3A13%3A20Z");
        assert_eq!(query(&Which::default(), 0), "");
    }
}
