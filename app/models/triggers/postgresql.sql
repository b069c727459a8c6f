-- The triggers on PostgreSQL, as the latest migration leaves them (see CONTRIBUTING.md).

-- row_counts: the number of rows of a table, by status or role and by week, for X-Total. The week
-- begins on Monday in UTC. The triggers run once per statement, regardless of the number of rows.

-- A shard that another transaction has changed is left alone. A new shard has the number of this
-- transaction, so that no two transactions create the same one.
CREATE OR REPLACE FUNCTION count_rows(of_table text, of_partition text, of_week date, change bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE row_counts SET count = row_counts.count + change
    WHERE table_name = of_table AND partition = of_partition AND week = of_week AND shard = (
        SELECT shard FROM row_counts
        WHERE table_name = of_table AND partition = of_partition AND week = of_week
        LIMIT 1 FOR UPDATE SKIP LOCKED
    );
    IF NOT FOUND THEN
        INSERT INTO row_counts (table_name, partition, week, shard, count)
        VALUES (of_table, of_partition, of_week, txid_current(), change);
    END IF;
END $$;

CREATE OR REPLACE FUNCTION count_rows_{table}() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM count_rows('{table}', value, week, change) FROM (
            SELECT value, week, sum(change)::bigint AS change FROM (
                SELECT {partition} AS value, date_trunc('week', {time} AT TIME ZONE 'UTC')::date AS week,
                    1 AS change FROM added
            ) AS rows GROUP BY value, week HAVING sum(change) <> 0 ORDER BY value, week
        ) AS changes;
    ELSIF TG_OP = 'DELETE' THEN
        PERFORM count_rows('{table}', value, week, change) FROM (
            SELECT value, week, sum(change)::bigint AS change FROM (
                SELECT {partition} AS value, date_trunc('week', {time} AT TIME ZONE 'UTC')::date AS week,
                    -1 AS change FROM removed
            ) AS rows GROUP BY value, week HAVING sum(change) <> 0 ORDER BY value, week
        ) AS changes;
    ELSE
        PERFORM count_rows('{table}', value, week, change) FROM (
            SELECT value, week, sum(change)::bigint AS change FROM (
                SELECT {partition} AS value, date_trunc('week', {time} AT TIME ZONE 'UTC')::date AS week,
                    -1 AS change FROM removed
                UNION ALL
                SELECT {partition} AS value, date_trunc('week', {time} AT TIME ZONE 'UTC')::date AS week,
                    1 AS change FROM added
            ) AS rows GROUP BY value, week HAVING sum(change) <> 0 ORDER BY value, week
        ) AS changes;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER count_rows_{table}_insert AFTER INSERT ON {table} REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION count_rows_{table}();

CREATE TRIGGER count_rows_{table}_delete AFTER DELETE ON {table} REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION count_rows_{table}();

CREATE TRIGGER count_rows_{table}_update AFTER UPDATE ON {table}
REFERENCING OLD TABLE AS removed NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION count_rows_{table}();

CREATE OR REPLACE FUNCTION count_rows_redemptions() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM count_rows('redemptions', '', week, change) FROM (
            SELECT date_trunc('week', created_at AT TIME ZONE 'UTC')::date AS week,
                count(*) AS change FROM added GROUP BY 1 ORDER BY 1
        ) AS changes;
    ELSIF TG_OP = 'DELETE' THEN
        PERFORM count_rows('redemptions', '', week, change) FROM (
            SELECT date_trunc('week', created_at AT TIME ZONE 'UTC')::date AS week,
                -count(*) AS change FROM removed GROUP BY 1 ORDER BY 1
        ) AS changes;
    ELSE
        PERFORM count_rows(
            'redemptions', '', date_trunc('week', OLD.created_at AT TIME ZONE 'UTC')::date, -1
        );
        PERFORM count_rows(
            'redemptions', '', date_trunc('week', NEW.created_at AT TIME ZONE 'UTC')::date, 1
        );
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER count_rows_redemptions_insert AFTER INSERT ON redemptions
REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION count_rows_redemptions();

CREATE TRIGGER count_rows_redemptions_delete AFTER DELETE ON redemptions
REFERENCING OLD TABLE AS removed FOR EACH STATEMENT EXECUTE FUNCTION count_rows_redemptions();

CREATE TRIGGER count_rows_redemptions_update AFTER UPDATE OF created_at ON redemptions
FOR EACH ROW WHEN (OLD.created_at <> NEW.created_at) EXECUTE FUNCTION count_rows_redemptions();

-- order_sums: the number and total of the orders of each customer by status. Shards as above. Each
-- change makes the row of the customer in customer_totals stale.

CREATE OR REPLACE FUNCTION add_order_sum(
    of_customer bigint, of_status text, more_orders bigint, more_total numeric
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    changed order_sums;
BEGIN
    UPDATE order_sums SET orders = orders + more_orders, total = total + more_total
    WHERE customer_id = of_customer AND status = of_status AND shard = (
        SELECT shard FROM order_sums WHERE customer_id = of_customer AND status = of_status
        LIMIT 1 FOR UPDATE SKIP LOCKED
    ) RETURNING * INTO changed;
    IF NOT FOUND THEN
        INSERT INTO order_sums (customer_id, status, shard, orders, total)
        VALUES (of_customer, of_status, txid_current(), more_orders, more_total);
    ELSIF changed.orders = 0 AND changed.total = 0 THEN
        DELETE FROM order_sums
        WHERE customer_id = of_customer AND status = of_status AND shard = changed.shard;
    END IF;
    INSERT INTO stale_totals (customer_id, shard) VALUES (of_customer, txid_current())
    ON CONFLICT DO NOTHING;
END $$;

CREATE OR REPLACE FUNCTION order_sums() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        PERFORM add_order_sum(customer_id, status, orders, total) FROM (
            SELECT customer_id, status, count(*) AS orders, sum(total) AS total FROM added
            WHERE customer_id IS NOT NULL GROUP BY customer_id, status
        ) AS changes;
    ELSIF TG_OP = 'DELETE' THEN
        PERFORM add_order_sum(customer_id, status, orders, total) FROM (
            SELECT customer_id, status, -count(*) AS orders, -sum(total) AS total FROM removed
            WHERE customer_id IS NOT NULL GROUP BY customer_id, status
        ) AS changes;
    ELSE
        PERFORM add_order_sum(customer_id, status, orders, total) FROM (
            SELECT customer_id, status, sum(orders)::bigint AS orders, sum(total) AS total FROM (
                SELECT customer_id, status, -1 AS orders, -total AS total FROM removed
                UNION ALL
                SELECT customer_id, status, 1 AS orders, total FROM added
            ) AS rows WHERE customer_id IS NOT NULL GROUP BY customer_id, status
            HAVING sum(orders) <> 0 OR sum(total) <> 0
        ) AS changes;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER order_sums_insert AFTER INSERT ON orders REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION order_sums();

CREATE TRIGGER order_sums_delete AFTER DELETE ON orders REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION order_sums();

CREATE TRIGGER order_sums_update AFTER UPDATE ON orders
REFERENCING OLD TABLE AS removed NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION order_sums();

CREATE OR REPLACE FUNCTION customer_totals() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO customer_totals (customer_id, orders_count, total_spent)
    SELECT id, 0, 0 FROM added;
    RETURN NULL;
END $$;

CREATE TRIGGER customer_totals_insert AFTER INSERT ON users REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION customer_totals();

-- order_products: the products of the line items of each order.

CREATE OR REPLACE FUNCTION products_of(items json)
RETURNS TABLE (product_id bigint, quantity bigint) LANGUAGE sql AS $$
    SELECT (line ->> 'product_id')::bigint, sum(coalesce((line ->> 'quantity')::bigint, 0))::bigint
    FROM json_array_elements(items) AS line
    WHERE json_typeof(line -> 'product_id') = 'number' GROUP BY 1
$$;

CREATE OR REPLACE FUNCTION order_products() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO order_products (order_id, product_id, quantity)
        SELECT added.id, found.* FROM added, products_of(added.line_items) AS found;
    ELSE
        DELETE FROM order_products WHERE order_id = NEW.id;
        INSERT INTO order_products (order_id, product_id, quantity)
        SELECT NEW.id, found.* FROM products_of(NEW.line_items) AS found;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER order_products_insert AFTER INSERT ON orders REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION order_products();

CREATE TRIGGER order_products_update AFTER UPDATE OF line_items ON orders
FOR EACH ROW WHEN (OLD.line_items::text <> NEW.line_items::text)
EXECUTE FUNCTION order_products();

-- Search tables: narrow copies of the texts. EXECUTE plans the delete of many texts each time. The
-- plan of a first delete from an empty table would be slow for all later ones.

CREATE OR REPLACE FUNCTION {table}_search() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO {table}_search SELECT id, search_text FROM added;
    ELSIF TG_OP = 'DELETE' THEN
        EXECUTE 'DELETE FROM {table}_search USING taken WHERE rowid = taken.id';
    ELSE
        UPDATE {table}_search SET rowid = NEW.id, search_text = NEW.search_text
        WHERE rowid = OLD.id;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER {table}_search_insert AFTER INSERT ON {table} REFERENCING NEW TABLE AS added
FOR EACH STATEMENT EXECUTE FUNCTION {table}_search();

CREATE TRIGGER {table}_search_delete AFTER DELETE ON {table} REFERENCING OLD TABLE AS taken
FOR EACH STATEMENT EXECUTE FUNCTION {table}_search();

CREATE TRIGGER {table}_search_update AFTER UPDATE OF id, search_text ON {table}
FOR EACH ROW WHEN ((OLD.id, OLD.search_text) IS DISTINCT FROM (NEW.id, NEW.search_text))
EXECUTE FUNCTION {table}_search();

-- The orders and the uses of a deleted account become those of a guest. Those of an account in
-- erased_accounts stay until the worker has erased what they contain.

CREATE OR REPLACE FUNCTION unlink_account() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT 1 FROM erased_accounts WHERE customer_id = OLD.id) THEN
        UPDATE orders SET customer_id = NULL WHERE customer_id = OLD.id;
        UPDATE redemptions SET customer_id = NULL WHERE customer_id = OLD.id;
    END IF;
    RETURN NULL;
END $$;

CREATE TRIGGER unlink_account AFTER DELETE ON users
FOR EACH ROW EXECUTE FUNCTION unlink_account();

-- A permanently deleted coupon with uses, which keep its ID.

CREATE OR REPLACE FUNCTION note_deleted_coupon() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO deleted_coupons (id) SELECT id FROM removed
    WHERE EXISTS (SELECT 1 FROM redemptions WHERE coupon_id = removed.id)
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END $$;

CREATE TRIGGER note_deleted_coupon AFTER DELETE ON coupons REFERENCING OLD TABLE AS removed
FOR EACH STATEMENT EXECUTE FUNCTION note_deleted_coupon();
