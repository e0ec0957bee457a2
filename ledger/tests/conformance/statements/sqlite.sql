DELETE FROM answers WHERE at <= ?1
DELETE FROM deliveries WHERE event IN (SELECT id FROM events WHERE position < (SELECT min(position) FROM events) + ?2 AND at < ?1)
DELETE FROM events WHERE position < (SELECT min(position) FROM events) + ?2 AND at < ?1
DELETE FROM excesses WHERE target = ?1
DELETE FROM excesses WHERE target = ?1 AND at <= ?2
DELETE FROM holds WHERE request = ?1
DELETE FROM lessons WHERE target = ?1
DELETE FROM links WHERE expires <= ?1
DELETE FROM links WHERE key = ?1
DELETE FROM links WHERE token = ?1
DELETE FROM personal_data WHERE customer = ?1
DELETE FROM reservations WHERE id = ?1
DELETE FROM sessions WHERE expires <= ?1
DELETE FROM sessions WHERE key = ?1
DELETE FROM sessions WHERE key = ?1 AND token NOT IN (SELECT token FROM sessions WHERE key = ?1 ORDER BY at DESC, token LIMIT ?2)
DELETE FROM sessions WHERE token = ?1
DELETE FROM sessions WHERE token IN (SELECT s.token FROM keys k JOIN sessions s ON s.key = k.id WHERE k.customer = (SELECT customer FROM keys WHERE id = ?1) ORDER BY s.at DESC, s.token LIMIT -1 OFFSET ?2)
INSERT INTO accounts (id, label, external_id, price_list, low_balance, rate, concurrency, status, credit, spent, held, claim, caps, auto_top_up, personal, created_at, created_by, token, last_at, audit_seq, audit_last, audit_hash, seq, last, hash, event_seq, last_top_up, told, opened) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29)
INSERT INTO addressees SELECT ?1, customer, data FROM personal_data WHERE customer = ?2
INSERT INTO addressees VALUES (?1, ?2, ?3)
INSERT INTO answers (id, token, at, operation, body, status, answer) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (id) DO UPDATE SET at = excluded.at, operation = excluded.operation, body = excluded.body, status = excluded.status, answer = excluded.answer
INSERT INTO audit VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)
INSERT INTO deliveries (event, webhook, status, tries, due) VALUES (?1, ?2, 1, 0, ?3) ON CONFLICT DO NOTHING
INSERT INTO deliveries (event, webhook, status, tries, due) VALUES (?1, ?2, 1, 0, ?3) ON CONFLICT DO UPDATE SET status = 1, tries = 0, due = excluded.due
INSERT INTO entries VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, ?26, ?27, ?28, ?29, ?30, ?31, ?32, ?33, ?34, ?35, ?36)
INSERT INTO epochs VALUES (?1, ?2)
INSERT INTO events (id, kind, at, customer, seq, data) VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (id) DO NOTHING
INSERT INTO excesses AS t VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO UPDATE SET tokens = max(t.tokens, excluded.tokens), at = max(t.at, excluded.at)
INSERT INTO files_acts (operation, at, actor, details) VALUES (?1, ?2, ?3, ?4) ON CONFLICT (operation) DO NOTHING
INSERT INTO holds VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
INSERT INTO house_acts (seq, at, actor, act, token, lot, operation, details, state, hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
INSERT INTO identity VALUES (1, ?1, 1, ?2)
INSERT INTO keys (id, customer, owner, made_by, token, label, models, expires_at, rate, concurrency, status, secret, old_secret, old_until, caps, used_at, created_at, created_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18)
INSERT INTO lessons AS t VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET tokens = (t.tokens + excluded.tokens) / CASE WHEN t.tokens + excluded.tokens >= 5000000 THEN 2 ELSE 1 END, millis = (t.millis + excluded.millis) / CASE WHEN t.tokens + excluded.tokens >= 5000000 THEN 2 ELSE 1 END, theirs = (t.theirs + excluded.theirs) / CASE WHEN t.ours + excluded.ours >= 5000000 THEN 2 ELSE 1 END, ours = (t.ours + excluded.ours) / CASE WHEN t.ours + excluded.ours >= 5000000 THEN 2 ELSE 1 END, facts = t.facts | excluded.facts
INSERT INTO links (token, key, expires) VALUES (?1, ?2, ?3)
INSERT INTO lots (id, count, amount, expires_at, once, void, redeemed, created_at, created_by, operation) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
INSERT INTO payments (folded, reference, customer, currency, gross, tax, credit, refunded, withdrawn, reinstated, waiting, status, why, actor, token, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
INSERT INTO personal_data VALUES (?1, ?2) ON CONFLICT DO UPDATE SET data = excluded.data
INSERT INTO refs VALUES (?1, ?2)
INSERT INTO reservations (id, token, customer, credit, until, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
INSERT INTO sessions (token, key, at, expires) VALUES (?1, ?2, ?3, ?4)
INSERT INTO slugs (slug, published_at) VALUES (?1, ?2) ON CONFLICT (slug) DO UPDATE SET published_at = coalesce(published_at, excluded.published_at)
INSERT INTO token_days (token, day, booked) SELECT id, sold_on, sold FROM kept_tokens WHERE sold_on IS NOT NULL;
INSERT INTO token_days (token, day, booked, payments, customers, keys, reissues, reversed, reversed_payments, unapplied) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT (token, day) DO UPDATE SET booked = excluded.booked, payments = excluded.payments, customers = excluded.customers, keys = excluded.keys, reissues = excluded.reissues, reversed = excluded.reversed, reversed_payments = excluded.reversed_payments, unapplied = excluded.unapplied
INSERT INTO tokens (id, label, role, daily, expires_at, revoked, secret, created_at, created_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
INSERT INTO tokens SELECT id, label, role, daily, expires_at, revoked, secret, created_at, created_by FROM kept_tokens;
INSERT INTO usage (hour, key, slug, target, requests, input, cache_read, cache_write, cache_write_1h, output, reasoning, images, charge, loss, exposure, cost, cache_write_12h, calls) VALUES (?1, ?2, ?3, ?4, 0, 0, 0, 0, ?7, 0, 0, ?10, 0, ?11, ?5, ?6, ?8, ?9)
INSERT INTO usage (hour, key, slug, target, requests, input, cache_read, cache_write, cache_write_1h, output, reasoning, images, charge, loss, exposure, cost, cache_write_12h, calls) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, 0, ?9, ?10, 0, ?11, 0, 0, 0, 0, 0)
INSERT INTO vouchers (code, lot, number, customer, operation) VALUES (?1, ?2, ?3, ?4, ?5)
INSERT INTO webhooks (id, url, since, handed) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING
INSERT OR IGNORE INTO slugs (slug) VALUES (?1)
INSERT OR IGNORE INTO targets (target, tier, place, context_band, account) VALUES (?1, ?2, ?3, ?4, ?5)
SELECT 1 FROM links WHERE token = ?1 AND expires > ?2
SELECT DISTINCT hour FROM usage
SELECT a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at, a.audit_seq, a.audit_last, a.audit_hash, a.seq, a.last, a.hash, a.event_seq, a.last_top_up, a.told, a.opened FROM accounts a WHERE (a.created_at, a.id) > (?1, ?2) AND (?4 IS NULL OR instr(lower(a.label), ?4) > 0 OR instr(lower(a.external_id), ?4) > 0) AND (?5 IS NULL OR a.status = ?5) AND (?6 IS NULL OR a.credit - a.spent < ?6) ORDER BY a.created_at ASC, a.id ASC LIMIT ?3
SELECT a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at, a.audit_seq, a.audit_last, a.audit_hash, a.seq, a.last, a.hash, a.event_seq, a.last_top_up, a.told, a.opened FROM accounts a WHERE a.external_id = ?1
SELECT a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at, a.audit_seq, a.audit_last, a.audit_hash, a.seq, a.last, a.hash, a.event_seq, a.last_top_up, a.told, a.opened FROM accounts a WHERE a.id = ?1
SELECT a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at, a.audit_seq, a.audit_last, a.audit_hash, a.seq, a.last, a.hash, a.event_seq, a.last_top_up, a.told, a.opened FROM accounts a WHERE a.id > ?1 ORDER BY a.id LIMIT ?2
SELECT a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at, a.audit_seq, a.audit_last, a.audit_hash, a.seq, a.last, a.hash, a.event_seq, a.last_top_up, a.told, a.opened FROM accounts a WHERE a.id IN (SELECT id FROM accounts WHERE claim > 0 UNION SELECT id FROM accounts WHERE auto_top_up IS NOT NULL) ORDER BY a.id
SELECT amount FROM entries WHERE refunds = ?1
SELECT amount FROM holds
SELECT audit_last FROM accounts WHERE id = ?1
SELECT coalesce(max(position), 0) FROM entries
SELECT coalesce(min(hour), 1), coalesce((SELECT max(hour) FROM usage), 0) FROM usage
SELECT code, lot, number, customer, operation FROM vouchers ORDER BY lot, number
SELECT code, lot, number, customer, operation FROM vouchers WHERE code = ?1
SELECT code, lot, number, customer, operation FROM vouchers WHERE customer IS NOT NULL AND lot IN (SELECT v.lot FROM vouchers v JOIN lots l ON l.id = v.lot WHERE l.once = 1 AND v.code = ?1)
SELECT count(*) FROM (SELECT 1 FROM events WHERE customer IS NOT NULL GROUP BY customer, seq HAVING count(*) > 1) twice
SELECT count(*) FROM accounts a WHERE EXISTS (SELECT 1 FROM events e WHERE e.customer = a.id) AND NOT EXISTS (SELECT 1 FROM events e WHERE e.customer = a.id AND e.seq = a.event_seq)
SELECT count(*) FROM addressees WHERE folded NOT IN (SELECT folded FROM refs) AND folded NOT IN (SELECT folded FROM payments)
SELECT count(*) FROM answers WHERE token IS NOT NULL AND token NOT IN (SELECT id FROM tokens)
SELECT count(*) FROM audit
SELECT count(*) FROM entries
SELECT count(*) FROM events e WHERE e.customer IS NOT NULL AND NOT EXISTS (SELECT 1 FROM accounts a WHERE a.id = e.customer AND a.event_seq >= e.seq AND e.seq > 0)
SELECT count(*) FROM holds
SELECT count(*) FROM holds WHERE key NOT IN (SELECT id FROM keys)
SELECT count(*) FROM keys WHERE customer NOT IN (SELECT id FROM accounts)
SELECT count(*) FROM links WHERE key NOT IN (SELECT id FROM keys)
SELECT count(*) FROM personal_data WHERE customer NOT IN (SELECT id FROM accounts)
SELECT count(*) FROM refs r WHERE NOT EXISTS (SELECT 1 FROM entries e WHERE e.operation = r.operation)
SELECT count(*) FROM sessions WHERE key NOT IN (SELECT id FROM keys)
SELECT count(*) FROM token_days WHERE token NOT IN (SELECT id FROM tokens)
SELECT count(*) FROM vouchers v WHERE operation IS NOT NULL AND NOT EXISTS (SELECT 1 FROM entries e JOIN lots l ON l.id = v.lot WHERE e.operation = v.operation AND e.customer = v.customer AND e.amount = l.amount)
SELECT created_at, id FROM keys WHERE (created_at, id) < (?1, ?2) ORDER BY created_at DESC, id DESC LIMIT 1 OFFSET ?3
SELECT created_at, id FROM keys WHERE (created_at, id) > (?1, ?2) ORDER BY created_at ASC, id ASC LIMIT 1 OFFSET ?3
SELECT credit - (SELECT coalesce(sum(amount), 0) FROM entries WHERE customer = ?1 AND kind <> 2 AND kind IN (1, 8, 9)) FROM accounts WHERE id = ?1
SELECT customer FROM keys WHERE id = ?1
SELECT customer, data FROM personal_data
SELECT d.webhook, d.tries, id, kind, at, customer, seq, data FROM deliveries d JOIN events e ON e.id = d.event WHERE d.webhook = ?1 AND d.status = 1 AND d.due <= ?2 ORDER BY d.due LIMIT ?3
SELECT data FROM personal_data WHERE customer = ?1
SELECT e.position, e.seq, e.customer, e.key, e.operation, e.kind, e.amount, e.balance_after, e.at, e.actor, e.reference, e.reason, e.refunds, e.prev, e.format, e.hash, s.slug, coalesce(e.slug, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts) IS NOT NULL, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts FROM entries e LEFT JOIN slugs s ON s.id = e.slug JOIN refs r ON r.operation = e.operation WHERE r.folded = ?1
SELECT e.position, e.seq, e.customer, e.key, e.operation, e.kind, e.amount, e.balance_after, e.at, e.actor, e.reference, e.reason, e.refunds, e.prev, e.format, e.hash, s.slug, coalesce(e.slug, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts) IS NOT NULL, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts FROM entries e LEFT JOIN slugs s ON s.id = e.slug WHERE e.operation = ?1
SELECT e.position, e.seq, e.customer, e.key, e.operation, e.kind, e.amount, e.balance_after, e.at, e.actor, e.reference, e.reason, e.refunds, e.prev, e.format, e.hash, s.slug, coalesce(e.slug, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts) IS NOT NULL, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts FROM entries e LEFT JOIN slugs s ON s.id = e.slug WHERE e.position = ?1
SELECT e.position, e.seq, e.customer, e.key, e.operation, e.kind, e.amount, e.balance_after, e.at, e.actor, e.reference, e.reason, e.refunds, e.prev, e.format, e.hash, s.slug, coalesce(e.slug, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts) IS NOT NULL, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts FROM entries e LEFT JOIN slugs s ON s.id = e.slug WHERE e.position > ?1
SELECT e.position, e.seq, e.customer, e.key, e.operation, e.kind, e.amount, e.balance_after, e.at, e.actor, e.reference, e.reason, e.refunds, e.prev, e.format, e.hash, s.slug, coalesce(e.slug, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts) IS NOT NULL, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts FROM entries e LEFT JOIN slugs s ON s.id = e.slug WHERE e.position > ?1 ORDER BY e.position
SELECT e.position, e.seq, e.customer, e.key, e.operation, e.kind, e.amount, e.balance_after, e.at, e.actor, e.reference, e.reason, e.refunds, e.prev, e.format, e.hash, s.slug, coalesce(e.slug, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts) IS NOT NULL, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts FROM entries e LEFT JOIN slugs s ON s.id = e.slug WHERE e.position > ?1 ORDER BY e.position LIMIT ?2
SELECT e.position, e.seq, e.customer, e.key, e.operation, e.kind, e.amount, e.balance_after, e.at, e.actor, e.reference, e.reason, e.refunds, e.prev, e.format, e.hash, s.slug, coalesce(e.slug, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts) IS NOT NULL, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts FROM entries e LEFT JOIN slugs s ON s.id = e.slug WHERE e.position BETWEEN ?1 AND ?2 ORDER BY e.position DESC
SELECT e.position, e.seq, e.customer, e.key, e.operation, e.kind, e.amount, e.balance_after, e.at, e.actor, e.reference, e.reason, e.refunds, e.prev, e.format, e.hash, s.slug, coalesce(e.slug, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts) IS NOT NULL, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts FROM entries e LEFT JOIN slugs s ON s.id = e.slug WHERE e.reference = ?1
SELECT e.position, e.seq, e.customer, e.key, e.operation, e.kind, e.amount, e.balance_after, e.at, e.actor, e.reference, e.reason, e.refunds, e.prev, e.format, e.hash, s.slug, coalesce(e.slug, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts) IS NOT NULL, e.family, e.target, e.status, e.end_reason, e.first_byte_ms, e.total_ms, e.answer_id, e.hold, e.loss, e.evidence, e.input, e.cache_read, e.cache_write, e.cache_write_1h, e.output, e.reasoning, e.images, e.lines, e.facts FROM entries e LEFT JOIN slugs s ON s.id = e.slug WHERE e.reference = ?1 ORDER BY e.position LIMIT 1
SELECT e.reference FROM refs r JOIN entries e ON e.operation = r.operation WHERE r.folded = ?1
SELECT event, tries, due, why, (SELECT max(due) FROM deliveries WHERE webhook = $1 AND status = 2) FROM deliveries WHERE webhook = $1 AND status = 1 AND tries > 0 ORDER BY tries DESC, due LIMIT 1
SELECT event, webhook, tries, due, why FROM deliveries WHERE status = 1 ORDER BY due, event
SELECT external_id, id FROM accounts WHERE external_id = ?1
SELECT folded, customer, data FROM addressees
SELECT folded, customer, data FROM addressees WHERE customer = ?1
SELECT h.request, h.key, h.opened, h.amount, h.used, h.slug, h.family, h.at, h.epoch, h.day, h.checkpoint, h.moves FROM holds h
SELECT h.request, h.key, h.opened, h.amount, h.used, h.slug, h.family, h.at, h.epoch, h.day, h.checkpoint, h.moves FROM holds h WHERE (?1 IS NULL OR h.key = ?1) AND (?3 IS NULL OR h.key IN (SELECT id FROM keys WHERE customer = ?3)) ORDER BY h.at, h.request LIMIT ?2
SELECT h.request, h.key, h.opened, h.amount, h.used, h.slug, h.family, h.at, h.epoch, h.day, h.checkpoint, h.moves FROM holds h WHERE h.epoch < ?1 LIMIT ?2
SELECT h.request, h.key, h.opened, h.amount, h.used, h.slug, h.family, h.at, h.epoch, h.day, h.checkpoint, h.moves FROM holds h WHERE h.key = ?1
SELECT h.request, h.key, h.opened, h.amount, h.used, h.slug, h.family, h.at, h.epoch, h.day, h.checkpoint, h.moves FROM holds h WHERE h.key IN (SELECT id FROM keys WHERE customer = ?1)
SELECT h.request, h.key, h.opened, h.amount, h.used, h.slug, h.family, h.at, h.epoch, h.day, h.checkpoint, h.moves FROM holds h WHERE key IN (SELECT id FROM keys WHERE customer = ?1)
SELECT hash FROM audit WHERE position > ?1 AND position <= ?2 ORDER BY position
SELECT hash FROM entries WHERE position > ?1 AND position <= ?2 ORDER BY position
SELECT hour, target, sum(cost) FROM own_costs WHERE hour BETWEEN ?1 AND ?2 GROUP BY hour, target ORDER BY hour, target
SELECT id FROM accounts WHERE id > ?1 ORDER BY id LIMIT ?2
SELECT id FROM events ORDER BY position DESC LIMIT 1
SELECT id FROM slugs WHERE slug = ?1
SELECT id FROM targets WHERE target = ?1 AND tier = ?2 AND place = ?3 AND context_band = ?4 AND account = ?5
SELECT id, claim FROM accounts WHERE claim > 0
SELECT id, count, amount, expires_at, once, void, redeemed, created_at, created_by, operation FROM lots ORDER BY created_at, id
SELECT id, count, amount, expires_at, once, void, redeemed, created_at, created_by, operation FROM lots WHERE id = ?1
SELECT id, count, amount, expires_at, once, void, redeemed, created_at, created_by, operation FROM lots WHERE id IN (SELECT lot FROM vouchers WHERE code = ?1)
SELECT id, epoch, (SELECT count(*) FROM keys), (SELECT coalesce(max(position), 0) FROM entries), (SELECT coalesce(max(position), 0) FROM audit), (SELECT count(*) FROM epochs WHERE epoch > 0), (SELECT coalesce(max(epoch), 0) FROM epochs), (SELECT count(*) FROM holds WHERE epoch NOT BETWEEN 0 AND totals.epoch), (SELECT count(*) FROM holds h JOIN entries e ON e.operation = h.request) FROM totals
SELECT id, kind, at, customer, seq, data FROM events WHERE position > ?1 ORDER BY position LIMIT ?2
SELECT id, label, role, daily, expires_at, revoked, secret, created_at, created_by FROM tokens ORDER BY created_at, id
SELECT id, label, role, daily, expires_at, revoked, secret, created_at, created_by FROM tokens WHERE id = ?1
SELECT id, label, role, daily, expires_at, revoked, secret, created_at, created_by FROM tokens WHERE id IN (SELECT token FROM house_acts WHERE operation = ?1)
SELECT id, label, role, daily, expires_at, revoked, secret, created_at, created_by FROM tokens WHERE label = ?1
SELECT id, label, role, daily, expires_at, revoked, secret, created_at, created_by FROM tokens WHERE secret = ?1
SELECT id, token, at, operation, body, status, answer FROM answers ORDER BY id
SELECT id, token, at, operation, body, status, answer FROM answers WHERE id = ?1
SELECT id, token, customer, credit, until, at FROM reservations ORDER BY id
SELECT id, token, customer, credit, until, at FROM reservations WHERE token = ?1
SELECT k.id FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id IN (SELECT value FROM json_each(?1)) AND (k.status <> 1 OR a.status <> 1)
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by FROM keys k WHERE k.customer = ?1
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by FROM keys k WHERE k.id = ?1
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by FROM keys k WHERE k.id > ?1 ORDER BY k.id LIMIT ?2
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by, a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at FROM keys k JOIN accounts a ON a.id = k.customer WHERE (k.created_at, k.id) < (?1, ?2) AND (k.created_at, k.id) >= (?8, ?9) AND (?4 IS NULL OR instr(lower(k.label), ?4) > 0) AND CASE ?5 WHEN 0 THEN 1 WHEN 1 THEN k.status = 1 AND coalesce(k.expires_at > ?6, 1) WHEN 4 THEN k.status = 1 AND coalesce(k.expires_at <= ?6, 0) ELSE k.status = ?5 END AND (?7 IS NULL OR a.credit - a.spent < ?7) AND (?10 IS NULL OR k.customer = ?10) ORDER BY k.created_at DESC, k.id DESC LIMIT ?3
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by, a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at FROM keys k JOIN accounts a ON a.id = k.customer WHERE (k.created_at, k.id) > (?1, ?2) AND (k.created_at, k.id) <= (?8, ?9) AND (?4 IS NULL OR instr(lower(k.label), ?4) > 0) AND CASE ?5 WHEN 0 THEN 1 WHEN 1 THEN k.status = 1 AND coalesce(k.expires_at > ?6, 1) WHEN 4 THEN k.status = 1 AND coalesce(k.expires_at <= ?6, 0) ELSE k.status = ?5 END AND (?7 IS NULL OR a.credit - a.spent < ?7) AND (?10 IS NULL OR k.customer = ?10) ORDER BY k.created_at ASC, k.id ASC LIMIT ?3
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by, a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id = ?1
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by, a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id IN (SELECT k.id FROM keys k JOIN accounts a ON a.id = k.customer WHERE (a.credit - a.spent, k.id) < (?1, ?2) AND (?4 IS NULL OR instr(lower(k.label), ?4) > 0) AND CASE ?5 WHEN 0 THEN 1 WHEN 1 THEN k.status = 1 AND coalesce(k.expires_at > ?6, 1) WHEN 4 THEN k.status = 1 AND coalesce(k.expires_at <= ?6, 0) ELSE k.status = ?5 END AND (?7 IS NULL OR a.credit - a.spent < ?7) AND (?10 IS NULL OR k.customer = ?10) ORDER BY a.credit - a.spent DESC, k.id DESC LIMIT ?3) ORDER BY a.credit - a.spent DESC, k.id DESC
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by, a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id IN (SELECT k.id FROM keys k JOIN accounts a ON a.id = k.customer WHERE (a.credit - a.spent, k.id) < (?1, ?2) AND 1 ORDER BY a.credit - a.spent DESC, k.id DESC LIMIT ?3) ORDER BY a.credit - a.spent DESC, k.id DESC
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by, a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id IN (SELECT k.id FROM keys k JOIN accounts a ON a.id = k.customer WHERE (a.credit - a.spent, k.id) > (?1, ?2) AND (?4 IS NULL OR instr(lower(k.label), ?4) > 0) AND CASE ?5 WHEN 0 THEN 1 WHEN 1 THEN k.status = 1 AND coalesce(k.expires_at > ?6, 1) WHEN 4 THEN k.status = 1 AND coalesce(k.expires_at <= ?6, 0) ELSE k.status = ?5 END AND (?7 IS NULL OR a.credit - a.spent < ?7) AND (?10 IS NULL OR k.customer = ?10) ORDER BY a.credit - a.spent ASC, k.id ASC LIMIT ?3) ORDER BY a.credit - a.spent ASC, k.id ASC
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by, a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id IN (SELECT k.id FROM keys k JOIN accounts a ON a.id = k.customer WHERE (a.credit - a.spent, k.id) > (?1, ?2) AND 1 ORDER BY a.credit - a.spent ASC, k.id ASC LIMIT ?3) ORDER BY a.credit - a.spent ASC, k.id ASC
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by, a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id IN (SELECT k.id FROM keys k JOIN accounts a ON a.id = k.customer WHERE (a.held, k.id) < (?1, ?2) AND (?4 IS NULL OR instr(lower(k.label), ?4) > 0) AND CASE ?5 WHEN 0 THEN 1 WHEN 1 THEN k.status = 1 AND coalesce(k.expires_at > ?6, 1) WHEN 4 THEN k.status = 1 AND coalesce(k.expires_at <= ?6, 0) ELSE k.status = ?5 END AND (?7 IS NULL OR a.credit - a.spent < ?7) AND (?10 IS NULL OR k.customer = ?10) ORDER BY a.held DESC, k.id DESC LIMIT ?3) ORDER BY a.held DESC, k.id DESC
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by, a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id IN (SELECT k.id FROM keys k JOIN accounts a ON a.id = k.customer WHERE (a.held, k.id) < (?1, ?2) AND 1 ORDER BY a.held DESC, k.id DESC LIMIT ?3) ORDER BY a.held DESC, k.id DESC
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by, a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id IN (SELECT k.id FROM keys k JOIN accounts a ON a.id = k.customer WHERE (a.held, k.id) > (?1, ?2) AND (?4 IS NULL OR instr(lower(k.label), ?4) > 0) AND CASE ?5 WHEN 0 THEN 1 WHEN 1 THEN k.status = 1 AND coalesce(k.expires_at > ?6, 1) WHEN 4 THEN k.status = 1 AND coalesce(k.expires_at <= ?6, 0) ELSE k.status = ?5 END AND (?7 IS NULL OR a.credit - a.spent < ?7) AND (?10 IS NULL OR k.customer = ?10) ORDER BY a.held ASC, k.id ASC LIMIT ?3) ORDER BY a.held ASC, k.id ASC
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by, a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id IN (SELECT k.id FROM keys k JOIN accounts a ON a.id = k.customer WHERE (a.held, k.id) > (?1, ?2) AND 1 ORDER BY a.held ASC, k.id ASC LIMIT ?3) ORDER BY a.held ASC, k.id ASC
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by, a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id IN (SELECT k.id FROM keys k JOIN accounts a ON a.id = k.customer WHERE (coalesce(a.last_at, -9223372036854775808), k.id) < (?1, ?2) AND (?4 IS NULL OR instr(lower(k.label), ?4) > 0) AND CASE ?5 WHEN 0 THEN 1 WHEN 1 THEN k.status = 1 AND coalesce(k.expires_at > ?6, 1) WHEN 4 THEN k.status = 1 AND coalesce(k.expires_at <= ?6, 0) ELSE k.status = ?5 END AND (?7 IS NULL OR a.credit - a.spent < ?7) AND (?10 IS NULL OR k.customer = ?10) ORDER BY coalesce(a.last_at, -9223372036854775808) DESC, k.id DESC LIMIT ?3) ORDER BY coalesce(a.last_at, -9223372036854775808) DESC, k.id DESC
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by, a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id IN (SELECT k.id FROM keys k JOIN accounts a ON a.id = k.customer WHERE (coalesce(a.last_at, -9223372036854775808), k.id) < (?1, ?2) AND 1 ORDER BY coalesce(a.last_at, -9223372036854775808) DESC, k.id DESC LIMIT ?3) ORDER BY coalesce(a.last_at, -9223372036854775808) DESC, k.id DESC
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by, a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id IN (SELECT k.id FROM keys k JOIN accounts a ON a.id = k.customer WHERE (coalesce(a.last_at, -9223372036854775808), k.id) > (?1, ?2) AND (?4 IS NULL OR instr(lower(k.label), ?4) > 0) AND CASE ?5 WHEN 0 THEN 1 WHEN 1 THEN k.status = 1 AND coalesce(k.expires_at > ?6, 1) WHEN 4 THEN k.status = 1 AND coalesce(k.expires_at <= ?6, 0) ELSE k.status = ?5 END AND (?7 IS NULL OR a.credit - a.spent < ?7) AND (?10 IS NULL OR k.customer = ?10) ORDER BY coalesce(a.last_at, -9223372036854775808) ASC, k.id ASC LIMIT ?3) ORDER BY coalesce(a.last_at, -9223372036854775808) ASC, k.id ASC
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by, a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id IN (SELECT k.id FROM keys k JOIN accounts a ON a.id = k.customer WHERE (coalesce(a.last_at, -9223372036854775808), k.id) > (?1, ?2) AND 1 ORDER BY coalesce(a.last_at, -9223372036854775808) ASC, k.id ASC LIMIT ?3) ORDER BY coalesce(a.last_at, -9223372036854775808) ASC, k.id ASC
SELECT k.id, k.customer, k.owner, k.made_by, k.token, k.label, k.models, k.expires_at, k.rate, k.concurrency, k.status, k.secret, k.old_secret, k.old_until, k.caps, k.used_at, k.created_at, k.created_by, a.id, a.label, a.external_id, a.price_list, a.low_balance, a.rate, a.concurrency, a.status, a.credit, a.spent, a.held, a.claim, a.caps, a.auto_top_up, a.personal, a.created_at, a.created_by, a.token, a.last_at FROM keys k JOIN accounts a ON a.id = k.customer WHERE k.id IN (SELECT value FROM json_each(?1))
SELECT key FROM sessions WHERE token = ?1 AND expires > ?2
SELECT keys, entries, 0, credit, spent, '0', loss, exposure, cost, charges, audits, epoch, (SELECT user_version FROM pragma_user_version) FROM totals
SELECT last FROM accounts WHERE id = ?1
SELECT ledger FROM identity
SELECT ledger FROM identity WHERE id = 1
SELECT ledger, generation, made_at FROM identity
SELECT max(operation) FROM entries
SELECT max(request) FROM holds
SELECT operation, at, actor, details FROM files_acts ORDER BY operation
SELECT position FROM events WHERE id = ?1
SELECT position, customer, key, at, actor, act, operation, details, seq, state, prev, format, hash FROM audit WHERE operation = ?1
SELECT position, customer, key, at, actor, act, operation, details, seq, state, prev, format, hash FROM audit WHERE position < ?1 ORDER BY position DESC LIMIT ?2
SELECT position, customer, key, at, actor, act, operation, details, seq, state, prev, format, hash FROM audit WHERE position = ?1
SELECT position, customer, key, at, actor, act, operation, details, seq, state, prev, format, hash FROM audit WHERE position > ?1 ORDER BY position LIMIT ?2
SELECT prev FROM entries WHERE position = ?1 AND customer = ?2
SELECT prev, answer_id IS ?2 AND coalesce(key, customer) = ?3 FROM entries WHERE position = ?1
SELECT reference, customer, currency, gross, tax, credit, refunded, withdrawn, reinstated, waiting, status, why, actor, token, at FROM payments ORDER BY folded
SELECT reference, customer, currency, gross, tax, credit, refunded, withdrawn, reinstated, waiting, status, why, actor, token, at FROM payments WHERE customer = ?1 ORDER BY folded
SELECT reference, customer, currency, gross, tax, credit, refunded, withdrawn, reinstated, waiting, status, why, actor, token, at FROM payments WHERE folded = ?1
SELECT reference, customer, currency, gross, tax, credit, refunded, withdrawn, reinstated, waiting, status, why, actor, token, at FROM payments WHERE status = 2 OR waiting IS NOT NULL ORDER BY at, folded
SELECT s.slug AS name, u.key, u.requests FROM usage u JOIN slugs s ON s.id = u.slug WHERE u.hour = ?1
SELECT s.slug, requests, input, cache_read, cache_write, cache_write_1h, output, reasoning, images, charge, loss, exposure, cost, cache_write_12h, calls, iif(t.target = ?3, u.exposure, 0) FROM usage u JOIN slugs s ON s.id = u.slug JOIN targets t ON t.id = u.target WHERE u.hour = ?1 AND u.key = ?2 ORDER BY s.slug
SELECT s.slug, t.target, tier, place, context_band, account, u.key, requests, input, cache_read, cache_write, cache_write_1h, output, reasoning, images, charge, loss, exposure, cost, cache_write_12h, calls FROM usage u LEFT JOIN slugs s ON s.id = u.slug LEFT JOIN targets t ON t.id = u.target WHERE u.hour = ?1
SELECT s.slug, u.requests, u.charge, u.loss, u.exposure, u.cost FROM usage u JOIN slugs s ON s.id = u.slug WHERE u.hour = ?1
SELECT seq, at, actor, act, token, lot, operation, details, state, hash FROM house_acts ORDER BY seq
SELECT seq, at, actor, act, token, lot, operation, details, state, hash FROM house_acts WHERE operation = ?1
SELECT seq, at, actor, act, token, lot, operation, details, state, hash FROM house_acts WHERE seq = (SELECT max(seq) FROM house_acts)
SELECT slug, published_at FROM slugs WHERE published_at IS NOT NULL ORDER BY slug
SELECT target, class, tokens, millis, theirs, ours, facts FROM lessons ORDER BY target, class
SELECT target, customer, tokens, at FROM excesses ORDER BY target, customer
SELECT token FROM sessions UNION ALL SELECT token FROM links
SELECT token, day, booked, payments, customers, keys, reissues, reversed, reversed_payments, unapplied FROM token_days ORDER BY token, day
SELECT token, day, booked, payments, customers, keys, reissues, reversed, reversed_payments, unapplied FROM token_days WHERE day >= ?1 ORDER BY token, day
SELECT token, day, booked, payments, customers, keys, reissues, reversed, reversed_payments, unapplied FROM token_days WHERE token = ?1 AND day > {before}
SELECT token, key, at, expires FROM sessions ORDER BY token
SELECT token, key, at, expires FROM sessions WHERE key IN (SELECT id FROM keys WHERE customer = ?1)
SELECT token, key, at, expires FROM sessions WHERE token = ?1
SELECT token, key, expires FROM links ORDER BY token
SELECT token, key, expires FROM links WHERE key IN (SELECT id FROM keys WHERE customer = ?1)
SELECT token, key, expires FROM links WHERE token = ?1
SELECT type || ' ' || name, sql FROM sqlite_schema WHERE name NOT GLOB 'sqlite_*'
SELECT u.hour, s.slug, sum(u.charge) FROM usage u JOIN slugs s ON s.id = u.slug WHERE u.key = ?1 GROUP BY u.hour, u.slug
SELECT u.hour, s.slug, sum(u.charge) FROM usage u JOIN slugs s ON s.id = u.slug WHERE u.key IN (SELECT id FROM keys WHERE customer = ?1) GROUP BY u.hour, u.slug
SELECT u.key, CASE WHEN place = 'global' THEN tier WHEN tier = 'standard' THEN place ELSE tier || ',' || place END, u.requests, u.charge, u.loss, u.exposure, u.cost FROM usage u JOIN targets t ON t.id = u.target WHERE u.hour = ?1
SELECT u.key, s.slug, requests, input, cache_read, cache_write, cache_write_1h, output, reasoning, images, charge, loss, exposure, cost, cache_write_12h, calls, iif(t.target = ?3, u.exposure, 0) FROM keys k CROSS JOIN usage u ON u.hour = ?1 AND u.key = k.id JOIN slugs s ON s.id = u.slug JOIN targets t ON t.id = u.target WHERE k.customer = ?2 ORDER BY u.key, s.slug
SELECT u.key, t.target, u.requests, u.charge, u.loss, u.exposure, u.cost FROM usage u JOIN targets t ON t.id = u.target WHERE u.hour = ?1
SELECT u.key, u.charge FROM (SELECT DISTINCT value FROM json_each(?2)) j CROSS JOIN usage u ON u.hour = ?1 AND u.key = j.value
SELECT w.id, w.url, w.since, w.handed, w.disabled, w.why, (SELECT count(*) FROM (SELECT 1 FROM deliveries d WHERE d.webhook = w.id AND d.status = 1 LIMIT 100) n) FROM webhooks w ORDER BY w.url
UPDATE accounts SET audit_last = ?2, audit_hash = ?3, audit_seq = ?4 WHERE id = ?1
UPDATE accounts SET auto_top_up = ?2 WHERE id = ?1
UPDATE accounts SET caps = ?2 WHERE id = ?1
UPDATE accounts SET credit = ?2, spent = ?3, held = ?4, seq = ?5, last = ?6, last_at = ?7, hash = ?8, claim = ?9, opened = ?10 WHERE id = ?1 AND held = ?11 AND seq = ?12
UPDATE accounts SET event_seq = ?2, last_top_up = ?3, told = ?4 WHERE id = ?1
UPDATE accounts SET held = ?2, opened = ?3 WHERE id = ?1 AND credit = ?4 AND spent = ?5 AND held = ?6
UPDATE accounts SET label = ?2, external_id = ?3, price_list = ?4, low_balance = ?5, rate = ?6, concurrency = ?7, status = ?8, personal = ?9 WHERE id = ?1
UPDATE addressees SET customer = ?2 WHERE folded = ?1
UPDATE addressees SET data = NULL WHERE customer = ?1 AND data IS NOT NULL
UPDATE deliveries SET status = 1, tries = 0, due = ?2 WHERE webhook = ?1 AND status IN (1, 3)
UPDATE deliveries SET status = ?3, tries = ?4, due = coalesce(?5, due), why = ?6 WHERE event = ?1 AND webhook = ?2
UPDATE holds SET amount = ?2, used = ?3, checkpoint = ?4, moves = ?5 WHERE request = ?1
UPDATE identity SET generation = ?1
UPDATE keys SET caps = ?2 WHERE id = ?1
UPDATE keys SET label = ?2, models = ?3, expires_at = ?4, rate = ?5, concurrency = ?6, status = ?7, secret = ?8, old_secret = ?9, old_until = ?10, used_at = ?11 WHERE id = ?1
UPDATE keys SET used_at = (SELECT min(at) FROM sessions WHERE key = keys.id) WHERE token IS NOT NULL;
UPDATE lots SET void = ?2, redeemed = ?3 WHERE id = ?1
UPDATE payments SET reference = ?2, customer = ?3, currency = ?4, gross = ?5, tax = ?6, credit = ?7, refunded = ?8, withdrawn = ?9, reinstated = ?10, waiting = ?11, status = ?12, why = ?13, actor = ?14, token = ?15, at = ?16 WHERE folded = ?1
UPDATE reservations SET until = ?2 WHERE id = ?1
UPDATE tokens SET revoked = ?2 WHERE id = ?1
UPDATE totals SET keys = ?1, entries = ?2, audits = ?3, epoch = ?4, credit = ?5, spent = ?6, loss = ?7, charges = ?8, exposure = ?9, cost = ?10 WHERE id = 1
UPDATE usage SET exposure = min(exposure + ?5, 9223372036854775807), cost = min(cost + ?6, 9223372036854775807), cache_write_1h = cache_write_1h + ?7, cache_write_12h = cache_write_12h + ?8, calls = calls + ?9, images = images + ?10, loss = min(loss + ?11, 9223372036854775807) WHERE hour = ?1 AND key = ?2 AND slug = ?3 AND target = ?4
UPDATE usage SET requests = requests + ?5, input = input + ?6, cache_read = cache_read + ?7, cache_write = cache_write + ?8, output = output + ?9, reasoning = reasoning + ?10, charge = min(charge + ?11, 9223372036854775807) WHERE hour = ?1 AND key = ?2 AND slug = ?3 AND target = ?4
UPDATE vouchers SET customer = ?2, operation = ?3 WHERE code = ?1
UPDATE webhooks SET disabled = ?2, why = ?3 WHERE id = ?1 AND disabled IS NULL
UPDATE webhooks SET disabled = NULL, why = NULL WHERE id = ?1
UPDATE webhooks SET handed = ?2 WHERE id = ?1
