/** Headers that are for one connection (L1, pure): a proxy passes them on in neither direction. RFC 9110 section 7.6.1. Upstream: net/http/httputil.ReverseProxy. */

/** In lower case. */
export const ofOneHop: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
])

/** The names, in lower case, that Connection headers add to these. */
export function namedByConnection(values: readonly string[]): Set<string> {
  return new Set(values.flatMap((value) => value.split(',')).map((name) => name.trim().toLowerCase()))
}
