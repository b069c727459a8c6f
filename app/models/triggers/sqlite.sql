-- The triggers on SQLite, as the latest migration leaves them (see CONTRIBUTING.md).

-- row_counts: the number of rows of a table, by status or role and by week, for X-Total. The week
-- begins on Monday in UTC.

CREATE TRIGGER count_rows_{table}_insert AFTER INSERT ON {table} BEGIN
    INSERT INTO row_counts (table_name, partition, week, shard, count)
    VALUES ('{table}', {new}, date(NEW.{time}, 'weekday 0', '-6 days'), 0, 1)
    ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;

CREATE TRIGGER count_rows_{table}_delete AFTER DELETE ON {table} BEGIN
    INSERT INTO row_counts (table_name, partition, week, shard, count)
    VALUES ('{table}', {old}, date(OLD.{time}, 'weekday 0', '-6 days'), 0, -1)
    ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;

CREATE TRIGGER count_rows_{table}_update AFTER UPDATE OF {columns} ON {table}
WHEN {changed} BEGIN
    INSERT INTO row_counts (table_name, partition, week, shard, count)
    VALUES ('{table}', {old}, date(OLD.{time}, 'weekday 0', '-6 days'), 0, -1)
    ON CONFLICT DO UPDATE SET count = count + excluded.count;
    INSERT INTO row_counts (table_name, partition, week, shard, count)
    VALUES ('{table}', {new}, date(NEW.{time}, 'weekday 0', '-6 days'), 0, 1)
    ON CONFLICT DO UPDATE SET count = count + excluded.count;
END;

-- order_sums: the number and total of the orders of each customer by status. Each change makes the
-- row of the customer in customer_totals stale.

CREATE TRIGGER order_sums_insert AFTER INSERT ON orders WHEN NEW.customer_id IS NOT NULL BEGIN
    INSERT INTO order_sums (customer_id, status, shard, orders, total)
    VALUES (NEW.customer_id, NEW.status, 0, 1, NEW.total)
    ON CONFLICT DO UPDATE SET orders = orders + 1, total = total + excluded.total;
    INSERT INTO stale_totals (customer_id, shard) VALUES (NEW.customer_id, 0) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER order_sums_delete AFTER DELETE ON orders WHEN OLD.customer_id IS NOT NULL BEGIN
    UPDATE order_sums SET orders = orders - 1, total = total - OLD.total
    WHERE customer_id = OLD.customer_id AND status = OLD.status;
    DELETE FROM order_sums
    WHERE customer_id = OLD.customer_id AND status = OLD.status AND orders = 0;
    INSERT INTO stale_totals (customer_id, shard) VALUES (OLD.customer_id, 0) ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER order_sums_update AFTER UPDATE OF customer_id, status, total ON orders
WHEN OLD.customer_id IS NOT NEW.customer_id OR OLD.status <> NEW.status OR OLD.total <> NEW.total
BEGIN
    UPDATE order_sums SET orders = orders - 1, total = total - OLD.total
    WHERE customer_id = OLD.customer_id AND status = OLD.status;
    DELETE FROM order_sums
    WHERE customer_id = OLD.customer_id AND status = OLD.status AND orders = 0;
    INSERT INTO order_sums (customer_id, status, shard, orders, total)
    SELECT NEW.customer_id, NEW.status, 0, 1, NEW.total WHERE NEW.customer_id IS NOT NULL
    ON CONFLICT DO UPDATE SET orders = orders + 1, total = total + excluded.total;
    INSERT INTO stale_totals (customer_id, shard)
    SELECT OLD.customer_id, 0 WHERE OLD.customer_id IS NOT NULL
    UNION SELECT NEW.customer_id, 0 WHERE NEW.customer_id IS NOT NULL
    ON CONFLICT DO NOTHING;
END;

CREATE TRIGGER customer_totals_insert AFTER INSERT ON users BEGIN
    INSERT INTO customer_totals (customer_id, orders_count, total_spent) VALUES (NEW.id, 0, 0);
END;

-- order_products: the products of the line items of each order.

CREATE TRIGGER order_products_insert AFTER INSERT ON orders BEGIN
    INSERT INTO order_products (order_id, product_id, quantity)
    SELECT NEW.id, value ->> 'product_id', sum(coalesce(value ->> 'quantity', 0))
    FROM json_each(NEW.line_items) WHERE json_type(value, '$.product_id') = 'integer' GROUP BY 2;
END;

CREATE TRIGGER order_products_update AFTER UPDATE OF line_items ON orders
WHEN OLD.line_items <> NEW.line_items BEGIN
    DELETE FROM order_products WHERE order_id = NEW.id;
    INSERT INTO order_products (order_id, product_id, quantity)
    SELECT NEW.id, value ->> 'product_id', sum(coalesce(value ->> 'quantity', 0))
    FROM json_each(NEW.line_items) WHERE json_type(value, '$.product_id') = 'integer' GROUP BY 2;
END;

-- The orders and the uses of a deleted account become those of a guest. Those of an account in
-- erased_accounts stay until the worker has erased what they contain.

CREATE TRIGGER unlink_account AFTER DELETE ON users
WHEN NOT EXISTS (SELECT 1 FROM erased_accounts WHERE customer_id = OLD.id) BEGIN
    UPDATE orders SET customer_id = NULL WHERE customer_id = OLD.id;
    UPDATE redemptions SET customer_id = NULL WHERE customer_id = OLD.id;
END;

-- A permanently deleted coupon with uses, which keep its ID.

CREATE TRIGGER note_deleted_coupon AFTER DELETE ON coupons
WHEN EXISTS (SELECT 1 FROM redemptions WHERE coupon_id = OLD.id) BEGIN
    INSERT INTO deleted_coupons (id) VALUES (OLD.id) ON CONFLICT DO NOTHING;
END;
