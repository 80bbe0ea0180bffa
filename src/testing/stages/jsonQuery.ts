/**
 * The part of jq that Stage files select by (testing): paths (`.a.b`, `.["x/y"]`, `.[]`, `.[0]`), pipes, select() with ==, !=, and, or, literals.
 * Everything else of jq is refused when the file is read. As jq does, a field of null is null; a query that fails has no result at all.
 * Upstream: kwok pkg/utils/expression/query.go, which takes all of jq.
 */

export class JsonQueryError extends Error {}

/** The results that are not null; undefined when the query fails on this value. */
export type JsonQuery = (value: unknown) => readonly unknown[] | undefined

type Filter = (value: unknown) => unknown[]

class Failed extends Error {}

/** @throws JsonQueryError for what is not of this part of jq */
export function compileJsonQuery(source: string): JsonQuery {
  const reader = new Reader(source)
  const filter = reader.pipe()
  reader.end()
  return (value) => {
    try {
      return filter(value).filter((result) => result !== null && result !== undefined)
    } catch (error) {
      if (error instanceof Failed) return undefined
      throw error
    }
  }
}

const tokenPattern = /\s*(?:("(?:[^"\\]|\\.)*")|(-?\d+(?:\.\d+)?)|(\.[A-Za-z_]\w*)|([A-Za-z_]\w*)|(==|!=|[.[\]()|?]))/y

function field(name: string): Filter {
  return (value) => {
    if (value === null || value === undefined) return [null]
    if (typeof value !== 'object' || Array.isArray(value)) throw new Failed()
    return [Object.hasOwn(value, name) ? (value as Record<string, unknown>)[name] : null]
  }
}

function item(at: number): Filter {
  return (value) => {
    if (value === null || value === undefined) return [null]
    if (!Array.isArray(value)) throw new Failed()
    return [value.at(at) ?? null]
  }
}

const all: Filter = (value) => {
  if (Array.isArray(value)) return value
  if (typeof value !== 'object' || value === null) throw new Failed()
  return Object.values(value)
}

const both =
  (first: Filter, second: Filter): Filter =>
  (value) =>
    first(value).flatMap(second)

const isTrue = (value: unknown) => value !== null && value !== undefined && value !== false

const combined =
  (left: Filter, right: Filter, combine: (a: unknown, b: unknown) => unknown): Filter =>
  (value) =>
    right(value).flatMap((b) => left(value).map((a) => combine(a, b)))

const equal = (a: unknown, b: unknown) => JSON.stringify(a ?? null) === JSON.stringify(b ?? null)

class Reader {
  readonly #source: string
  readonly #tokens: string[] = []
  #at = 0

  constructor(source: string) {
    this.#source = source
    const end = source.trimEnd().length
    for (tokenPattern.lastIndex = 0; tokenPattern.lastIndex < end; ) {
      const from = tokenPattern.lastIndex
      const match = tokenPattern.exec(source)
      if (!match) throw new JsonQueryError(`${source}: not supported from ${JSON.stringify(source.slice(from, from + 20))}`)
      this.#tokens.push(match[0].trim())
    }
  }

  pipe(): Filter {
    let filter = this.#either()
    while (this.#take('|')) filter = both(filter, this.#either())
    return filter
  }

  end(): void {
    if (this.#at < this.#tokens.length) throw this.#fault()
  }

  #either(): Filter {
    let filter = this.#every()
    while (this.#take('or')) filter = combined(filter, this.#every(), (a, b) => isTrue(a) || isTrue(b))
    return filter
  }

  #every(): Filter {
    let filter = this.#comparison()
    while (this.#take('and')) filter = combined(filter, this.#comparison(), (a, b) => isTrue(a) && isTrue(b))
    return filter
  }

  #comparison(): Filter {
    const left = this.#term()
    if (this.#take('==')) return combined(left, this.#term(), equal)
    if (this.#take('!=')) return combined(left, this.#term(), (a, b) => !equal(a, b))
    return left
  }

  #term(): Filter {
    const token = this.#tokens[this.#at]
    if (token === undefined) throw this.#fault()
    if (token.startsWith('.')) return this.#path()
    this.#at++
    if (token === '(') {
      const filter = this.pipe()
      this.#expect(')')
      return filter
    }
    if (token === 'select') {
      this.#expect('(')
      const condition = this.pipe()
      this.#expect(')')
      return (value) => condition(value).flatMap((result) => (isTrue(result) ? [value] : []))
    }
    if (/^(["\d-]|true$|false$|null$)/.test(token)) {
      const literal: unknown = JSON.parse(token)
      return () => [literal]
    }
    this.#at--
    throw this.#fault()
  }

  #path(): Filter {
    let filter: Filter = (value) => [value]
    // A dot alone is the value itself; `.a.[]` and `.a."b"` mean what `.a[]` and `.a["b"]` mean.
    for (let isFirst = true; ; isFirst = false) {
      const token = this.#tokens[this.#at] ?? ''
      const next = this.#tokens[this.#at + 1] ?? ''
      if (/^\.\w/.test(token)) filter = both(filter, field(token.slice(1)))
      else if (token === '?') filter = forgiving(filter)
      else if (token === '[') filter = both(filter, this.#brackets())
      else if (token === '.' && next.startsWith('"')) {
        filter = both(filter, field(JSON.parse(next) as string))
        this.#at++
      } else if (token !== '.' || (!isFirst && next !== '[')) return filter
      this.#at++
    }
  }

  /** Ends at the closing bracket, not after it. */
  #brackets(): Filter {
    const token = this.#tokens[this.#at + 1] ?? ''
    if (token === ']') {
      this.#at++
      return all
    }
    this.#at += 2
    if (this.#tokens[this.#at] !== ']') throw this.#fault()
    if (token.startsWith('"')) return field(JSON.parse(token) as string)
    if (/^-?\d+$/.test(token)) return item(Number(token))
    throw this.#fault()
  }

  #take(token: string): boolean {
    if (this.#tokens[this.#at] !== token) return false
    this.#at++
    return true
  }

  #expect(token: string): void {
    if (!this.#take(token)) throw this.#fault()
  }

  #fault(): JsonQueryError {
    const found = this.#tokens[this.#at]
    const what = found === undefined ? 'the end comes too early' : `${JSON.stringify(found)} is not supported here`
    return new JsonQueryError(`${this.#source}: ${what}; there are paths, |, select(), ==, !=, and, or`)
  }
}

/** `?`: what fails has no result. */
function forgiving(filter: Filter): Filter {
  return (value) => {
    try {
      return filter(value)
    } catch (error) {
      if (error instanceof Failed) return []
      throw error
    }
  }
}
