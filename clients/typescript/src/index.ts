/** Client of the Shop Administration API: credentials, retries, pages and webhooks. */

import createClient, { type Client } from "openapi-fetch";
import { Webhook } from "standardwebhooks";
import type { components, paths } from "./schema.js";

export type { components, operations, paths } from "./schema.js";

/** An object of the API by its name: `Schema<"Coupon">`. */
export type Schema<Name extends keyof components["schemas"]> = components["schemas"][Name];

/** The body of a delivery. `type` determines the form of `data`. */
export type Delivery = {
  [Type in keyof Items]: Items[Type]["post"]["requestBody"]["content"]["application/json"];
}[keyof Items];

type Items = components["pathItems"];

export type ShopClient = Client<paths>;

export interface Options {
  baseUrl: string;
  consumerKey: string;
  consumerSecret: string;
  /** Whether the service rejects unknown and inexact input. Default: true. */
  strict?: boolean;
  /** How often a request is sent at most. Default: 4. */
  attempts?: number;
  /** Seconds for an attempt. The service itself responds within 30 seconds by default. */
  timeoutSeconds?: number;
  /** Sends the requests. Default: the fetch of the platform. */
  fetch?: (request: Request) => Promise<Response>;
}

/** The service has rejected a request. */
export class RejectedError extends Error {
  constructor(
    readonly status: number,
    readonly errors: Schema<"ApiError">[],
    /** The path of the page that describes the first error, from the header `Link`. */
    readonly docUrl?: string,
  ) {
    super(errors.map((error) => `${error.code}: ${error.message}`).join("; "));
    this.name = "RejectedError";
  }
}

const MAX_WAIT_MS = 60_000;

/** Return a client: `shop.GET("/coupons", { params: { query: { q: "summer" } } })`. */
export function connect(options: Options): ShopClient {
  const { consumerKey, consumerSecret, strict = true } = options;
  const headers: Record<string, string> = {
    Authorization: `Basic ${btoa(`${consumerKey}:${consumerSecret}`)}`,
  };
  if (strict) headers.Prefer = "handling=strict";
  const fetch = (request: Request) => send(request, options);
  return createClient<paths>({ baseUrl: options.baseUrl, headers, fetch });
}

/**
 * Send a request, again after a lost connection, 429 and 503, and a GET or POST after 504, when its
 * outcome is unknown. Each POST has an `Idempotency-Key`, so that a repeated request creates nothing
 * twice. PUT and DELETE are idempotent.
 */
async function send(request: Request, options: Options): Promise<Response> {
  const { attempts = 4, timeoutSeconds = 35, fetch = globalThis.fetch } = options;
  if (request.method === "POST" && !request.headers.has("Idempotency-Key"))
    request.headers.set("Idempotency-Key", crypto.randomUUID());
  for (let number = 1; ; number++) {
    const isLast = number >= attempts;
    let wait = Math.min(MAX_WAIT_MS, 500 * 2 ** (number - 1)) * (0.5 + Math.random() / 2);
    try {
      const signal = AbortSignal.timeout(timeoutSeconds * 1000);
      const response = await fetch(new Request(request.clone(), { signal }));
      const retried = ["GET", "POST"].includes(request.method) ? [429, 503, 504] : [429, 503];
      if (isLast || !retried.includes(response.status)) return response;
      const sent = response.headers.get("Retry-After") ?? "";
      if (/^[0-9]+$/.test(sent)) wait = Math.min(MAX_WAIT_MS, Number(sent) * 1000);
      await response.body?.cancel();
    } catch (error) {
      if (isLast) throw error;
    }
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

interface Result<Body> {
  data?: Body;
  error?: Schema<"ErrorResponse">;
  response: Response;
}

/**
 * Yield the pages of a list:
 * `pages((page) => shop.GET("/coupons", { params: { query: { page } } }))`.
 */
export async function* pages<Body>(
  list: (page: number) => Promise<Result<Body>>,
): AsyncGenerator<Body> {
  for (let page = 1; ; page++) {
    const result = await list(page);
    yield bodyOf(result);
    if (page >= Number(result.response.headers.get("X-TotalPages"))) return;
  }
}

/**
 * Yield the events of the feed after an ID, up to the present. Store the ID of each event that you
 * process.
 */
export async function* followEvents(
  shop: ShopClient,
  after: number,
): AsyncGenerator<Schema<"Event">> {
  for (;;) {
    const query = { after, limit: 1000 };
    const { events } = bodyOf(await shop.GET("/events", { params: { query } }));
    if (!events.length) return;
    yield* events;
    after = events[events.length - 1]!.id;
  }
}

/** Return the body of a response, or throw a RejectedError. */
export function bodyOf<Body>(result: Result<Body>): Body {
  const { data, error, response } = result;
  if (data === undefined)
    throw new RejectedError(response.status, error?.errors ?? [], docUrl(response));
  return data;
}

/** Return the path of the page that describes the error of a response. */
export function docUrl(response: Response): string | undefined {
  return /<([^>]*)>; rel="help"/.exec(response.headers.get("Link") ?? "")?.[1];
}

/**
 * Verify the signature of a delivery, and return its body.
 *
 * @throws WebhookVerificationError the signature is wrong, or the delivery is older than five
 * minutes.
 */
export function verifyWebhook(
  body: string,
  headers: Record<string, string>,
  secret: string,
): Delivery {
  return new Webhook(secret).verify(body, headers) as Delivery;
}
