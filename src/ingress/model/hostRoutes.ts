/**
 * The paths of one host (L3, pure): exact paths first, then the longest prefix, element by element. Looking up a path takes time in proportion to its length,
 * however many paths there are. Upstream's rules: the path types of networking.k8s.io/v1 (v1.36).
 */
import { Claims } from './claims.ts'

export interface PathPattern {
  readonly isExact: boolean
  /** In the form of comparablePath(); for a prefix without slashes at its end. */
  readonly path: string
}

interface Element<T> {
  readonly children: Map<string, Element<T>>
  readonly claims: Claims<T>
}

export class HostRoutes<T> {
  readonly #exact = new Map<string, Claims<T>>()
  readonly #root: Element<T> = newElement()
  /** For paths without a rule. */
  readonly fallback = new Claims<T>()
  /** The Ingresses that name the host. */
  readonly claimants = new Set<string>()

  /** @param path in the form of comparablePath() */
  match(path: string): T | undefined {
    return this.#exact.get(path)?.value ?? this.#longestPrefix(path) ?? this.fallback.value
  }

  #longestPrefix(path: string): T | undefined {
    let place = this.#root
    let found = place.claims.value
    let from = 1
    while (place.children.size > 0 && from < path.length) {
      const slash = path.indexOf('/', from)
      const next = place.children.get(slash < 0 ? path.slice(from) : path.slice(from, slash))
      if (!next) break
      found = next.claims.value ?? found
      place = next
      from = slash < 0 ? path.length : slash + 1
    }
    return found
  }

  at({ isExact, path }: PathPattern): Claims<T> | undefined {
    if (isExact) return this.#exact.get(path)
    let place: Element<T> | undefined = this.#root
    for (const element of elementsOf(path)) place = place?.children.get(element)
    return place?.claims
  }

  /** The claims of a path, made when there are none yet. */
  ensure({ isExact, path }: PathPattern): Claims<T> {
    if (isExact) return getOrMake(this.#exact, path, () => new Claims<T>())
    let place = this.#root
    for (const element of elementsOf(path)) place = getOrMake(place.children, element, newElement<T>)
    return place.claims
  }

  /** Removes the path's place when it is empty. */
  tidy({ isExact, path }: PathPattern): void {
    if (isExact) {
      if (this.#exact.get(path)?.isEmpty) this.#exact.delete(path)
      return
    }
    const elements = elementsOf(path)
    const places = [this.#root]
    for (const element of elements) {
      const next = places.at(-1)?.children.get(element)
      if (!next) return
      places.push(next)
    }
    for (let depth = elements.length; depth > 0; depth--) {
      const place = places[depth]
      if (!place?.claims.isEmpty || place.children.size > 0) return
      places[depth - 1]?.children.delete(elements[depth - 1] ?? '')
    }
  }
}

function newElement<T>(): Element<T> {
  return { children: new Map(), claims: new Claims() }
}

export function getOrMake<K, V>(map: Map<K, V>, key: K, make: () => V): V {
  const there = map.get(key)
  if (there !== undefined) return there
  const made = make()
  map.set(key, made)
  return made
}

function elementsOf(path: string): string[] {
  return path === '' ? [] : path.slice(1).split('/')
}
