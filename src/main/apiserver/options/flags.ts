/**
 * Reads command line flags as upstream's components do (L5): each named, typed and explained once, in the option group that it belongs to.
 * Pure. Upstream: spf13/pflag's notation, k8s.io/component-base/cli/flag.
 */
import { formatDuration, parseDuration } from '#api/machinery/duration'
import { bareMap } from '#base/bareMap'

/** A flag's type, by what its text becomes. */
export interface Flag<T> {
  /** As --help names the type. */
  readonly type: string
  readonly usage: string
  readonly default: T
  /** The value as /flagz shows it. */
  format(value: T): string
  /** `before`: the value so far, when the flag is given more than once. @throws Error that says what is wrong with the text */
  parse(text: string, before: T | undefined): T
  /** The value of a flag that is given without one. */
  readonly bare?: string | undefined
}

export type Flags = Readonly<Record<string, Flag<unknown>>>
export type FlagValues<F extends Flags> = { readonly [name in keyof F]: F[name] extends Flag<infer T> ? T : never }

export function text(usage: string, byDefault = ''): Flag<string> {
  return { type: 'string', usage, default: byDefault, format: (value) => value, parse: (given) => given }
}

/** Given several times, or with commas, it grows. Upstream: pflag's StringSlice. */
export function list(usage: string, byDefault: readonly string[] = []): Flag<readonly string[]> {
  const parse = (given: string, before: readonly string[] = []) => [...before, ...given.split(',').filter((part) => part !== '')]
  return { type: 'strings', usage, default: byDefault, format: (value) => `[${value.join(',')}]`, parse }
}

/** Given several times it grows; commas are part of the value. Upstream: pflag's StringArray. */
export function texts(usage: string): Flag<readonly string[]> {
  return { type: 'stringArray', usage, default: [], format: (value) => `[${value.join(',')}]`, parse: (given, before = []) => [...before, given] }
}

/** key=value pairs with commas between them, or one a flag. */
export function pairs(usage: string): Flag<Readonly<Record<string, string>>> {
  return {
    type: 'mapStringString',
    usage,
    default: {},
    format: (value) =>
      Object.entries(value)
        .map(([key, one]) => `${key}=${one}`)
        .join(','),
    parse(given, before = {}) {
      const added = given.split(',').map((part): [string, string] => {
        const at = part.indexOf('=')
        if (at <= 0) throw new Error(`malformed pair, expect string=string`)
        return [part.slice(0, at).trim(), part.slice(at + 1).trim()]
      })
      return { ...before, ...Object.fromEntries(added) }
    },
  }
}

const truth: Readonly<Record<string, boolean>> = bareMap({ true: true, t: true, '1': true, false: false, f: false, '0': false })

export function flag(usage: string, byDefault = false): Flag<boolean> {
  const parse = (given: string) => {
    const value = truth[given.toLowerCase()]
    if (value === undefined) throw new Error('expected true or false')
    return value
  }
  return { type: 'bool', usage, default: byDefault, format: String, parse, bare: 'true' }
}

/** `name=true` or `name=false`, with commas between them, or one a flag. Upstream: component-base/cli/flag's MapStringBool. */
export function switches(usage: string): Flag<Readonly<Record<string, boolean>>> {
  const parse = (given: string, before: Readonly<Record<string, boolean>> = {}) => {
    const added = given.split(',').flatMap((part): [string, boolean][] => {
      if (part === '') return []
      const [name = '', value] = part.split(/=(.*)/s).map((one) => one.trim())
      if (value === undefined) throw new Error(`missing bool value for ${name}`)
      const on = truth[value.toLowerCase()]
      if (on === undefined) throw new Error(`invalid value of ${name}=${value}, expected true or false`)
      return [[name, on]]
    })
    return { ...before, ...Object.fromEntries(added) }
  }
  const format = (value: Readonly<Record<string, boolean>>) =>
    Object.entries(value)
      .map((pair) => pair.join('='))
      .join(',')
  return { type: 'mapStringBool', usage, default: {}, format, parse }
}

export function whole(usage: string, byDefault: number): Flag<number> {
  const parse = (given: string) => {
    const value = Number(given)
    if (!/^[+-]?\d+$/.test(given) || !Number.isSafeInteger(value)) throw new Error('expected a whole number')
    return value
  }
  return { type: 'int', usage, default: byDefault, format: String, parse }
}

export function decimal(usage: string, byDefault: number): Flag<number> {
  const parse = (given: string) => {
    const value = Number(given)
    if (given.trim() === '' || !Number.isFinite(value)) throw new Error('expected a number')
    return value
  }
  return { type: 'float', usage, default: byDefault, format: String, parse }
}

/** In milliseconds; written as Go does (`1m30s`). */
export function duration(usage: string, byDefaultMs: number): Flag<number> {
  const parse = (given: string) => {
    const value = parseDuration(given)
    if (value === undefined) throw new Error(`expected a duration such as 1m30s`)
    return value
  }
  return { type: 'duration', usage, default: byDefaultMs, format: formatDuration, parse }
}

/** A command line that cannot be read: every fault at once, one a line. */
export class UsageError extends Error {
  readonly faults: readonly string[]
  constructor(faults: readonly string[]) {
    super(faults.join('\n'))
    this.faults = faults
  }
}

/**
 * `--name=value`, `--name value`, and `--name` for those that need no value.
 * @throws UsageError with every unknown flag and every value that does not parse, in upstream's words
 */
export function parseFlags<F extends Flags>(flags: F, args: readonly string[]): FlagValues<F> {
  const given = givenFlags(flags, args)
  return Object.fromEntries(Object.entries(flags).map(([name, one]) => [name, given.has(name) ? given.get(name) : one.default])) as FlagValues<F>
}

/** The flags that stand in the arguments, with their values. @throws UsageError as parseFlags */
export function givenFlags(flags: Flags, args: readonly string[]): ReadonlyMap<string, unknown> {
  const given = new Map<string, unknown>()
  const faults: string[] = []
  for (let at = 0; at < args.length; at++) {
    const [name, inline] = split(args[at] as string)
    const known = name === undefined || !Object.hasOwn(flags, name) ? undefined : flags[name]
    if (!known || name === undefined) {
      faults.push(name === undefined ? `unknown argument: ${args[at]}` : `unknown flag: --${name}`)
      continue
    }
    const value = inline ?? known.bare ?? args[++at]
    if (value === undefined) faults.push(`flag needs an argument: --${name}`)
    else {
      try {
        given.set(name, known.parse(value, given.get(name)))
      } catch (error) {
        faults.push(`invalid argument "${value}" for "--${name}" flag: ${(error as Error).message}`)
      }
    }
  }
  if (faults.length > 0) throw new UsageError(faults)
  return given
}

function split(argument: string): [name: string | undefined, value: string | undefined] {
  if (!argument.startsWith('--') || argument === '--') return [undefined, undefined]
  const at = argument.indexOf('=')
  // As upstream's word separator normalisation: underscores are dashes.
  const name = argument.slice(2, at < 0 ? undefined : at).replaceAll('_', '-')
  return [name, at < 0 ? undefined : argument.slice(at + 1)]
}
