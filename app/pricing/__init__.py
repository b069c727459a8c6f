"""Pure computations of prices: carts, discounts and the evaluation of coupons."""
