//! Join tokens.

use serde_json::Value;

use super::text;
use crate::out::{Table, until};

pub(super) fn table(items: &[Value], now_ms: u64) -> Table {
    let mut table = Table::new(&["ID", "PURPOSE", "STATE", "EXPIRES IN", "USED BY"]);
    for token in items {
        let expires = until(&text(token, "/expiresAt"), now_ms);
        table.row(vec![
            text(token, "/id"),
            text(token, "/purpose"),
            text(token, "/state"),
            expires,
            text(token, "/usedBy"),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use cara_proto::rest::JoinTokenView;

    use super::*;

    #[test]
    fn a_token_is_one_line() {
        let token = JoinTokenView {
            id: "t1".into(),
            purpose: "node".into(),
            state: "unused".into(),
            expires_at: "2023-11-14T22:28:20Z".into(),
            used_by: String::new(),
        };
        let value = serde_json::to_value(token).expect("JSON");
        let text = table(&[value], 1_700_000_000_000).render(false, false, true);
        assert_eq!(text, "ID\tPURPOSE\tSTATE\tEXPIRES IN\tUSED BY\nt1\tnode\tunused\t15m\t-\n");
    }
}
