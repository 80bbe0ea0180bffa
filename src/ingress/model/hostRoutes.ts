/**
 * The paths of one host (L3, pure): exact paths first, then the longest prefix, element by element. Looking up a path takes at most as many steps as a prefix
 * may have elements, however many paths there are; what is kept grows with the number of paths, not with their elements. Upstream's rules: the path types of
 * networking.k8s.io/v1 (v1.36).
 */
import { Claims } from './claims.ts'

export interface PathPattern {
  readonly isExact: boolean
  /** In the form of comparablePath(); for a prefix without slashes at its end. */
  readonly path: string
}

/** The most elements of a prefix. */
export const maxElements = 64

const acceptsAll = () => true

export class HostRoutes<T> {
  // Many hosts have no paths of one kind, or of any.
  #exact: Map<string, Claims<T>> | undefined
  #prefixes: Map<string, Claims<T>> | undefined
  /** Characters of the longest prefix so far. */
  #longest = 0
  /** For paths without a rule. */
  readonly fallback = new Claims<T>()
  /** The Ingresses that name the host. */
  readonly claimants = new Set<string>()

  /** @param path in the form of comparablePath() @param accepts default: every value */
  match(path: string, accepts: (value: T) => boolean = acceptsAll): T | undefined {
    return this.#exact?.get(path)?.find(accepts) ?? this.#longestPrefix(path, accepts) ?? this.fallback.value
  }

  #longestPrefix(path: string, accepts: (value: T) => boolean): T | undefined {
    const prefixes = this.#prefixes
    if (!prefixes) return undefined
    let found = prefixes.get('')?.find(accepts)
    let end = 0
    for (let elements = 1; elements <= maxElements && end < path.length; elements++) {
      const slash = path.indexOf('/', end + 1)
      end = slash < 0 ? path.length : slash
      if (end > this.#longest) break
      found = prefixes.get(path.slice(0, end))?.find(accepts) ?? found
    }
    return found
  }

  at({ isExact, path }: PathPattern): Claims<T> | undefined {
    return (isExact ? this.#exact : this.#prefixes)?.get(path)
  }

  /** The claims of a path, made when there are none yet. */
  ensure({ isExact, path }: PathPattern): Claims<T> {
    if (isExact) this.#exact ??= new Map()
    else {
      this.#prefixes ??= new Map()
      this.#longest = Math.max(this.#longest, path.length)
    }
    return getOrMake((isExact ? this.#exact : this.#prefixes) as Map<string, Claims<T>>, path, () => new Claims<T>())
  }

  /** Removes the path's place when it is empty. */
  tidy({ isExact, path }: PathPattern): void {
    const paths = isExact ? this.#exact : this.#prefixes
    if (paths?.get(path)?.isEmpty) paths.delete(path)
  }
}

export function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const there = map.get(key)
  if (there !== undefined) return there
  const made = make()
  map.set(key, made)
  return made
}
