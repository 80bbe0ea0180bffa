/** What the directive cache of a Corefile asks for (L3). Pure. */
import { type CacheKind, type CacheOptions, defaultCapacity, defaultMinTtl } from '../plugins/cache.ts'
import { CorefileError, type Directive } from './syntax.ts'
import { nameOf, wholeNumber } from './values.ts'

export function cacheOf(directive: Directive, zones: readonly string[]): CacheOptions {
  const { args, line, options } = directive
  const hasTtl = /^\d+$/.test(args[0] ?? '')
  const ttl = hasTtl ? wholeNumber(args[0], directive, 86_400) : undefined
  const ofDirective = args.slice(hasTtl ? 1 : 0).map((zone) => nameOf(zone, line))
  const own = ofDirective.length === 0 ? zones : ofDirective
  const kinds = { success: kindOf(ttl ?? 3600), denial: kindOf(ttl ?? 1800) }
  for (const option of options) {
    const [first, ...rest] = option.args
    if (option.name === 'disable' && isKind(first)) {
      const disabled = rest.length === 0 ? own : rest.map((zone) => nameOf(zone, option.line))
      kinds[first] = { ...kinds[first], disabled }
    } else if (isKind(option.name)) {
      const [maxTtl, minTtl] = rest
      kinds[option.name] = {
        ...kinds[option.name],
        capacity: Math.max(1, wholeNumber(first, option, 10_000_000)),
        ...(maxTtl === undefined ? {} : { maxTtl: wholeNumber(maxTtl, option, 86_400) }),
        ...(minTtl === undefined ? {} : { minTtl: wholeNumber(minTtl, option, 86_400) }),
      }
      // Both make answers come sooner or for longer, without changing them.
    } else if (option.name !== 'prefetch') throw new CorefileError(option.line, `cache: the option "${[option.name, ...option.args].join(' ')}" is not served`)
  }
  return { zones: own, ...kinds }
}

function kindOf(maxTtl: number): CacheKind {
  return { capacity: defaultCapacity, maxTtl, minTtl: Math.min(defaultMinTtl, maxTtl), disabled: [] }
}

function isKind(text: string | undefined): text is 'success' | 'denial' {
  return text === 'success' || text === 'denial'
}
