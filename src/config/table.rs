//! The canonical table: the six columns customers choose from, as rows and markdown.
//!
//! Rows of docs/interface.md: `canonical_table`.

use schemars::JsonSchema;
use serde::Serialize;

use super::Catalog;

/// The columns, as they are headed.
pub const TABLE_HEADINGS: [&str; 6] = [
    "model",
    "customer slug",
    "provider",
    "best path",
    "best environments",
    "service price",
];

/// A model that is sold
// One row of the canonical table: serialised, it has the columns' names with underscores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Model")]
pub struct TableRow {
    /// Its name
    pub model: String,
    /// What customers write
    pub customer_slug: String,
    /// Who makes it
    pub provider: String,
    /// chat, responses or native
    pub best_path: &'static str,
    /// What it is best for
    pub best_environments: Vec<String>,
    /// What it costs
    pub service_price: String,
}

impl TableRow {
    /// The cells in the order of [`TABLE_HEADINGS`].
    pub fn cells(&self) -> [String; 6] {
        [
            self.model.clone(),
            self.customer_slug.clone(),
            self.provider.clone(),
            self.best_path.to_owned(),
            self.best_environments.join(", "),
            self.service_price.clone(),
        ]
    }
}

impl super::Model {
    /// This model's row of the canonical table.
    pub fn row(&self) -> TableRow {
        TableRow {
            model: self.name.clone(),
            customer_slug: self.slug.clone(),
            provider: self.provider.clone(),
            best_path: self.best_path.shown(),
            best_environments: self.best_environments.clone(),
            service_price: self.price.shown(),
        }
    }
}

impl Catalog {
    /// The canonical table in the order of the file.
    pub fn rows(&self) -> Vec<TableRow> {
        self.models.iter().map(|model| model.row()).collect()
    }
}

/// The table as markdown. Ends with a newline.
pub fn table_markdown(rows: &[TableRow]) -> String {
    let line = |cells: [String; 6]| {
        format!(
            "| {} |\n",
            cells.map(|cell| cell.replace('|', "\\|")).join(" | ")
        )
    };
    let mut text = line(TABLE_HEADINGS.map(str::to_owned));
    text.push_str("|---|---|---|---|---|---|\n");
    for row in rows {
        let mut cells = row.cells();
        cells[1] = format!("`{}`", cells[1]);
        text.push_str(&line(cells));
    }
    text
}
