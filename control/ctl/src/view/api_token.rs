//! API tokens.

use serde_json::Value;

use super::{list, text};
use crate::out::{Table, age, until};

pub(super) fn table(items: &[Value], wide: bool, now_ms: u64) -> Table {
    let mut header = vec!["ID", "NAME", "ABILITY", "SCOPES", "STATE", "LAST USED", "EXPIRES IN"];
    if wide {
        header.extend(["AGE", "CREATED BY"]);
    }
    let mut table = Table::new(&header);
    for token in items {
        let scopes: Vec<&str> = list(token, "/scopes").iter().filter_map(Value::as_str).collect();
        let ago = |pointer: &str| match age(&text(token, pointer), now_ms) {
            age if age.is_empty() => age,
            age => format!("{age} ago"),
        };
        let mut row = vec![
            text(token, "/id"),
            text(token, "/name"),
            text(token, "/ability"),
            if scopes.is_empty() { "everything".to_owned() } else { scopes.join(",") },
            text(token, "/state"),
            ago("/lastUsedAt"),
            until(&text(token, "/expiresAt"), now_ms),
        ];
        if wide {
            row.extend([age(&text(token, "/createdAt"), now_ms), text(token, "/createdBy")]);
        }
        table.row(row);
    }
    table
}

#[cfg(test)]
mod tests {
    use cara_proto::rest::ApiTokenView;

    use super::*;

    #[test]
    fn a_token_is_one_line() {
        let token = ApiTokenView {
            id: "tk-1".into(),
            name: "ci".into(),
            ability: "write".into(),
            scopes: vec!["node:nd_1".into(), "workload:shop-".into()],
            state: "active".into(),
            created_at: "2023-11-13T22:13:20Z".into(),
            created_by: "token:tk-0".into(),
            expires_at: Some("2023-11-14T22:28:20Z".into()),
            last_used_at: None,
            revoked_at: None,
        };
        let value = serde_json::to_value(token).expect("JSON");
        let shown = table(std::slice::from_ref(&value), true, 1_700_000_000_000).render(false, false, false);
        assert_eq!(shown, "tk-1\tci\twrite\tnode:nd_1,workload:shop-\tactive\t-\t15m\t1d\ttoken:tk-0\n");
        let shown = table(&[value], false, 1_700_000_000_000).render(false, false, true);
        assert!(shown.starts_with("ID\tNAME\tABILITY\tSCOPES\tSTATE\tLAST USED\tEXPIRES IN\ntk-1\t"), "{shown}");
    }
}
