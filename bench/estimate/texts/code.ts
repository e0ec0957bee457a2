import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";

export interface CacheEntry<T> {
  readonly value: T;
  readonly expiresAt: number;
  etag?: string;
}

export class TimedCache<K extends string, V> {
  #entries = new Map<K, CacheEntry<V>>();

  constructor(private readonly ttlMs: number = 60_000, private readonly now: () => number = Date.now) {}

  async getOrLoad(key: K, load: (key: K) => Promise<V>): Promise<V> {
    const found = this.#entries.get(key);
    if (found !== undefined && found.expiresAt > this.now()) {
      return found.value;
    }
    const value = await load(key);
    this.#entries.set(key, { value, expiresAt: this.now() + this.ttlMs, etag: hashOf(JSON.stringify(value)) });
    return value;
  }

  invalidate(predicate: (key: K) => boolean): number {
    let removed = 0;
    for (const key of this.#entries.keys()) {
      if (predicate(key)) {
        this.#entries.delete(key);
        removed += 1;
      }
    }
    return removed;
  }
}

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("base64url").slice(0, 16);
}

export const withErrors =
  (handler: (req: IncomingMessage, res: ServerResponse) => Promise<void>) =>
  async (req: IncomingMessage, res: ServerResponse): Promise<void> => {
    try {
      await handler(req, res);
    } catch (error) {
      res.statusCode = error instanceof RangeError ? 400 : 500;
      res.setHeader("content-type", "application/json; charset=utf-8");
      res.end(JSON.stringify({ error: { message: String(error), path: req.url ?? null } }));
    }
  };
