/** Reads host names of requests and of Ingresses (L3, pure): lower case, without a port and without the final dot. */

const maxLength = 253
const name = /^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*$/
const literal = /^\[[0-9a-f:.]+\]$/

/** @param authority value of a Host header or of `:authority` @returns undefined when it is none */
export function hostOf(authority: string): string | undefined {
  const lower = authority.toLowerCase()
  const colon = lower.startsWith('[') ? lower.indexOf(':', lower.indexOf(']')) : lower.indexOf(':')
  if (colon >= 0 && !/^\d{1,5}$/.test(lower.slice(colon + 1))) return undefined
  const host = (colon < 0 ? lower : lower.slice(0, colon)).replace(/\.$/, '')
  return host.length <= maxLength && (name.test(host) || literal.test(host)) ? host : undefined
}

/** `*.example.com` for `foo.example.com`: the wildcard that covers exactly one more label. Undefined for a name of one label. */
export function wildcardOf(host: string): string | undefined {
  const dot = host.indexOf('.')
  return dot > 0 ? `*${host.slice(dot)}` : undefined
}

/** The names that cover a host, the most specific first: itself, wildcards of one or more labels, and the empty one of all hosts. */
export function* coveringNames(host: string): Generator<string> {
  yield host
  for (let dot = host.indexOf('.'); dot > 0; dot = host.indexOf('.', dot + 1)) yield `*${host.slice(dot)}`
  if (host !== '') yield ''
}

/** There is a host that both cover. Wildcards cover one or more labels; the empty name covers all hosts. */
export function namesIntersect(a: string, b: string): boolean {
  return covers(a, b) || covers(b, a)
}

function covers(general: string, name: string): boolean {
  return general === '' || general === name || (general.startsWith('*') && name.endsWith(general.slice(1)))
}
