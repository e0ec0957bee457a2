-- Customers that owe something are listed for whoever looks after money.
CREATE INDEX accounts_owing ON accounts (id) WHERE claim > 0;
