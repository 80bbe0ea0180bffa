/**
 * Reads cron schedules (L1): five fields of numbers, names, lists, ranges and steps, or an @descriptor. The CronJob controller
 * computes when they are due. Faults are worded as upstream's, which the API server passes on. Upstream: github.com/robfig/cron/v3 ParseStandard.
 */
import { bareMap, ownValue } from '#base/bareMap'
import { parseDuration } from '../machinery/duration.ts'

export interface CronSchedule {
  readonly minutes: ReadonlySet<number>
  readonly hours: ReadonlySet<number>
  readonly days: ReadonlySet<number>
  readonly months: ReadonlySet<number>
  readonly weekdays: ReadonlySet<number>
  /** True when the field is `*`. If neither field is, a day matches when either field does. */
  readonly anyDay: boolean
  readonly anyWeekday: boolean
  /** `@every`: an interval in place of fields. */
  readonly everyMs?: number | undefined
}

interface Bounds {
  readonly min: number
  readonly max: number
  readonly names?: Readonly<Record<string, number>>
}

const numbered = (words: string, first: number) => Object.fromEntries(words.split(' ').map((word, i) => [word, i + first]))
const fieldBounds: readonly Bounds[] = [
  { min: 0, max: 59 },
  { min: 0, max: 23 },
  { min: 1, max: 31 },
  { min: 1, max: 12, names: numbered('jan feb mar apr may jun jul aug sep oct nov dec', 1) },
  { min: 0, max: 6, names: numbered('sun mon tue wed thu fri sat', 0) },
]
const descriptors: Readonly<Record<string, string>> = bareMap({
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
})
/** 2^63 nanoseconds: what Go holds. */
const longestDurationMs = 9_223_372_036_854

class CronFault extends Error {}

/** The schedule, or what is wrong with the text. */
export function parseCronSchedule(text: string): CronSchedule | { readonly fault: string } {
  try {
    return text.startsWith('@') ? parseDescriptor(text) : parseFields(text)
  } catch (error) {
    if (error instanceof CronFault) return { fault: error.message }
    throw error
  }
}

function parseDescriptor(text: string): CronSchedule {
  const fields = descriptors[text]
  if (fields !== undefined) return parseFields(fields)
  const every = '@every '
  if (!text.startsWith(every)) throw new CronFault(`unrecognized descriptor: ${text}`)
  const duration = text.slice(every.length)
  const everyMs = parseDuration(duration)
  if (everyMs === undefined || Math.abs(everyMs) > longestDurationMs)
    throw new CronFault(`failed to parse duration ${text}: time: invalid duration ${JSON.stringify(duration)}`)
  return { ...parseFields('* * * * *'), everyMs: Math.max(1000, Math.floor(everyMs / 1000) * 1000) }
}

function parseFields(text: string): CronSchedule {
  if (text === '') throw new CronFault('empty spec string')
  const fields = text.trim().split(/\s+/).filter(Boolean)
  if (fields.length !== 5) throw new CronFault(`expected exactly 5 fields, found ${fields.length}: [${fields.join(' ')}]`)
  const values = (i: number) => parseField(fields[i] ?? '', fieldBounds[i] ?? { min: 0, max: 0 })
  return {
    minutes: values(0),
    hours: values(1),
    days: values(2),
    months: values(3),
    weekdays: values(4),
    anyDay: isAny(fields[2] ?? ''),
    anyWeekday: isAny(fields[4] ?? ''),
  }
}

// True for `*`, also with a step of 1; a larger step restricts the days.
const isAny = (field: string): boolean => field.split(',').some((part) => /^[*?](\/1)?$/.test(part))

function parseField(text: string, bounds: Bounds): Set<number> {
  const values = new Set<number>()
  // A list may be as long as a request; most of it repeats.
  for (const part of new Set(text.split(',').filter(Boolean))) {
    const { start, end, step } = parseRange(part, bounds)
    for (let value = start; value <= end; value += step) values.add(value)
  }
  return values
}

function parseRange(text: string, bounds: Bounds) {
  const [range = '', stepText, ...slashes] = text.split('/')
  const [low = '', high, ...hyphens] = range.split('-')
  const any = low === '*' || low === '?'
  const start = any ? bounds.min : numberOf(low, bounds)
  if (!any && hyphens.length > 0) throw new CronFault(`too many hyphens: ${text}`)
  let end = any ? bounds.max : high === undefined ? start : numberOf(high, bounds)
  if (slashes.length > 0) throw new CronFault(`too many slashes: ${text}`)
  const step = stepText === undefined ? 1 : wholeNumber(stepText)
  // `5/15` means from 5 to the end.
  if (stepText !== undefined && high === undefined) end = bounds.max
  if (start < bounds.min) throw new CronFault(`beginning of range (${start}) below minimum (${bounds.min}): ${text}`)
  if (end > bounds.max) throw new CronFault(`end of range (${end}) above maximum (${bounds.max}): ${text}`)
  if (start > end) throw new CronFault(`beginning of range (${start}) beyond end of range (${end}): ${text}`)
  if (step === 0) throw new CronFault(`step of range should be a positive number: ${text}`)
  return { start, end, step }
}

function numberOf(text: string, { names }: Bounds): number {
  return ownValue(names, text.toLowerCase()) ?? wholeNumber(text)
}

function wholeNumber(text: string): number {
  if (!/^[+-]?\d+$/.test(text)) throw new CronFault(`failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`)
  const value = Number(text)
  if (value < 0) throw new CronFault(`negative number (${value}) not allowed: ${text}`)
  return value
}
