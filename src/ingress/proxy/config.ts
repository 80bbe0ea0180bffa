/** Limits and times of the proxy (L3). The times are those of ingress-nginx unless a reason is given. */

export interface ProxyLimits {
  /** Connections of clients, of each listener. */
  readonly maxConnections: number
  /** Requests and tunnels that one port of a Service has at the same time. */
  readonly maxInFlight: number
  /** The most bytes of a request's headers. */
  readonly maxHeaderBytes: number
  readonly maxBodyBytes: number
  /** Time to send the headers of a request, and for a TLS handshake. */
  readonly headersTimeoutMs: number
  /** A connection on which no byte moves for this long is closed. More than a backend's time, whose 504 would be lost otherwise. */
  readonly idleTimeoutMs: number
  readonly connectTimeoutMs: number
  /** Between two bytes of a backend. */
  readonly readTimeoutMs: number
  /** Between two bytes of a tunnel, in any direction. WebSockets are silent for long. */
  readonly tunnelIdleMs: number
  /** For requests in flight when the proxy stops. */
  readonly drainMs: number
}

export const defaultLimits: ProxyLimits = {
  maxConnections: 8192,
  maxInFlight: 2048,
  maxHeaderBytes: 32 * 1024,
  maxBodyBytes: 2 ** 30,
  headersTimeoutMs: 30_000,
  idleTimeoutMs: 75_000,
  connectTimeoutMs: 5000,
  readTimeoutMs: 60_000,
  tunnelIdleMs: 3_600_000,
  drainMs: 8000,
}
