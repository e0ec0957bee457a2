-- Who has a price list: read every few seconds, of customers that mostly have none.
CREATE INDEX accounts_listed ON accounts (id) WHERE price_list IS NOT NULL AND status <> 3;
