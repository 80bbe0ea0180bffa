/**
 * Brings the path of a request into the one form that routes are compared with (L3, pure): escapes decoded, dot segments resolved, slashes merged. Without
 * it, `/public/../admin` would match the route of `/public` and reach what the backend serves as `/admin`. An escaped slash stays escaped, so that it ends no
 * path element. The backend gets the path as the client wrote it. nginx compares locations in the same way.
 */

/** No escapes, no dots behind slashes, no two slashes in a row: the form already. */
const plain = /^(?:\/[^/%.?#][^/%?#]*)*\/?$/

/** @param target path of the request, without its query @returns undefined for a path that names nothing: not absolute, badly escaped, or above the root */
export function comparablePath(target: string): string | undefined {
  if (!target.startsWith('/')) return undefined
  if (plain.test(target)) return target
  const decoded = decode(target)
  return decoded === undefined ? undefined : withoutDotSegments(decoded)
}

function decode(path: string): string | undefined {
  if (!path.includes('%')) return path
  if (/%(?![0-9a-f]{2})|%00/i.test(path)) return undefined
  // A slash that was written as an escape is not a separator.
  const escaped = path.replaceAll(/%2f/gi, '%252F')
  try {
    return decodeURIComponent(escaped)
  } catch {
    // Escaped bytes that are not UTF-8.
    return escaped.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  }
}

function withoutDotSegments(path: string): string | undefined {
  const kept: string[] = []
  const elements = path.split('/')
  const last = elements.at(-1)
  for (const element of elements) {
    if (element === '' || element === '.') continue
    if (element !== '..') kept.push(element)
    else if (kept.pop() === undefined) return undefined
  }
  const isFolder = kept.length > 0 && (last === '' || last === '.' || last === '..')
  return `/${kept.join('/')}${isFolder ? '/' : ''}`
}
