/** The functions of a profile by what they used themselves, without what they called (L4, pure), as `go tool pprof -top` lists them. */
import type { Profile, ProfileFunction } from './readProfile.ts'

export interface FunctionUse {
  readonly name: string
  /** File and line; empty: not known. */
  readonly place: string
  /** In the unit of the summary. */
  readonly self: number
  /** From 0 to 1. */
  readonly share: number
}

export interface ProfileSummary {
  readonly type: string
  readonly unit: string
  readonly total: number
  readonly durationSeconds: number
  readonly functions: readonly FunctionUse[]
}

/** Counts the last value of each sample, which is pprof's default: CPU time, or bytes in use. @param count how many functions at most */
export function topFunctions({ types, samples, durationNs }: Profile, count: number): ProfileSummary {
  const { type, unit } = types.at(-1) ?? { type: 'samples', unit: 'count' }
  const uses = new Map<string, { readonly leaf: ProfileFunction; self: number }>()
  let total = 0
  for (const { leaf = unknown, values } of samples) {
    const value = values.at(-1) ?? 0
    total += value
    // V8 gives the line where a function begins, Go that of the work: only functions without a name are distinguished by it.
    const key = `${leaf.name}\n${leaf.file}${leaf.name === anonymous ? `:${leaf.line}` : ''}`
    const use = uses.get(key) ?? { leaf, self: 0 }
    use.self += value
    uses.set(key, use)
  }
  const functions = [...uses.values()]
    .sort((a, b) => b.self - a.self)
    .slice(0, count)
    .map(({ leaf, self }) => ({ name: leaf.name, place: placeOf(leaf), self, share: total === 0 ? 0 : self / total }))
  return { type, unit, total, durationSeconds: durationNs / 1e9, functions }
}

/** V8 has no name for such a function. */
const anonymous = '(anonymous)'
const unknown: ProfileFunction = { name: '(unknown)', file: '', line: 0 }

function placeOf({ file, line }: ProfileFunction): string {
  const short = file.replace(/^.*\/(?=[^/]+\/[^/]+$)/, '')
  return line > 0 && short !== '' ? `${short}:${line}` : short
}

/** A line for the whole profile and one for each function. */
export function describeSummary({ type, unit, total, durationSeconds, functions }: ProfileSummary): string {
  const during = durationSeconds > 0 ? ` in ${durationSeconds.toFixed(1)} s` : ''
  const head = `${type}: ${amountText(total, unit)}${during}\n`
  if (functions.length === 0) return `${head}no samples: nothing ran in that time\n`
  const rows = functions.map(({ name, place, self, share }) => {
    const columns = [amountText(self, unit).padStart(10), `${(share * 100).toFixed(1)}%`.padStart(7)]
    return `${columns.join('')}  ${name}${place === '' ? '' : `  ${place}`}\n`
  })
  return `${head}${'self'.padStart(10)}${'share'.padStart(7)}  function\n${rows.join('')}`
}

function amountText(value: number, unit: string): string {
  if (unit === 'nanoseconds') return value >= 1e9 ? `${(value / 1e9).toFixed(2)} s` : `${(value / 1e6).toFixed(1)} ms`
  if (unit === 'bytes') return value >= 2 ** 20 ? `${(value / 2 ** 20).toFixed(1)} MiB` : `${(value / 1024).toFixed(1)} KiB`
  return unit === 'count' ? String(value) : `${value} ${unit}`
}
