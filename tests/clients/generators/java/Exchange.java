// What a user of the Java client of openapi-generator does. Compiled and run by test_generators.py.
import java.nio.charset.StandardCharsets;
import java.time.LocalDate;
import java.util.Base64;
import java.util.List;
import org.openapitools.client.ApiClient;
import org.openapitools.client.ApiException;
import org.openapitools.client.api.CouponsApi;
import org.openapitools.client.api.CustomersApi;
import org.openapitools.client.api.OrdersApi;
import org.openapitools.client.model.*;

class Exchange {
    public static void main(String[] arguments) throws ApiException {
        String pair = System.getenv("SHOP_CONSUMER_KEY") + ":" + System.getenv("SHOP_CONSUMER_SECRET");
        String key = Base64.getEncoder().encodeToString(pair.getBytes(StandardCharsets.UTF_8));
        ApiClient client = new ApiClient();
        client.updateBaseUri(System.getenv("SHOP_URL"));
        client.setRequestInterceptor(request -> request.header("Authorization", "Basic " + key));
        CouponsApi coupons = new CouponsApi(client);

        CouponCreate coupon = new CouponCreate().code("Summer").amount("15").usageLimit(100L)
            .expiryDate(LocalDate.of(2030, 12, 31)).addProductIdsItem(7L);
        CouponCreateRequest request = new CouponCreateRequest().coupon(coupon);
        Coupon created = coupons.createCoupon(request, null, null).getCoupon();
        require(created.getAmount().equals("15.00") && created.getUsageLimit() == 100);

        try {
            coupons.createCoupon(request, null, null);
            require(false);
        } catch (ApiException error) {
            require(error.getCode() == 400);
            require(error.getResponseBody().contains("shop_api_coupon_code_already_exists"));
        }

        List<CouponBulkItem> items = List.of(
            new CouponBulkItem().code("summer"),
            new CouponBulkItem().id(created.getId()).usageLimit(5L));
        List<CouponBulkResult> results =
            coupons.bulkCoupons(new CouponBulkRequest().coupons(items), null, null).getCoupons();
        require(results.get(0).getBulkFailure().getError().getCode().startsWith("shop_api_coupon"));
        // The native library reads every result as the first alternative, which has no error then.
        require(results.get(1).getBulkFailure().getError() == null);
        require(coupons.getCoupon(created.getId(), null, null, null, null, null, null)
            .getCoupon().getUsageLimit() == 5);

        CustomerCreate person = new CustomerCreate().email("ada@example.com");
        Customer customer = new CustomersApi(client)
            .createCustomer(new CustomerCreateRequest().customer(person), null, null).getCustomer();
        for (long id : new long[] {customer.getId(), 0}) {
            OrderCreate order = new OrderCreate().customerId(id)
                .addLineItemsItem(new LineItemCreate().name("Mug").quantity(2).price("4.00"));
            OrderCreateRequest body = new OrderCreateRequest().order(order);
            Order placed = new OrdersApi(client).createOrder(body, null, null).getOrder();
            require(placed.getTotal().equals("8.00"));
        }
    }

    private static void require(boolean condition) {
        if (!condition) throw new AssertionError();
    }
}
