/**
 * Cron schedules (L3): five fields, names, lists, ranges, steps, @descriptors, in any time zone. Pure.
 * Upstream: github.com/robfig/cron/v3 as pkg/controller/cronjob uses it (v1.36).
 */
import { parseTime } from '#base/time'

export interface Schedule {
  readonly minutes: ReadonlySet<number>
  readonly hours: ReadonlySet<number>
  readonly days: ReadonlySet<number>
  readonly months: ReadonlySet<number>
  readonly weekdays: ReadonlySet<number>
  /** Of day and weekday, one that is `*` leaves the choice to the other; otherwise either will do. */
  readonly anyDay: boolean
  readonly anyWeekday: boolean
  /** `@every`: an interval in place of fields. */
  readonly everyMs?: number | undefined
}

const descriptors: Readonly<Record<string, string>> = {
  '@yearly': '0 0 1 1 *',
  '@annually': '0 0 1 1 *',
  '@monthly': '0 0 1 * *',
  '@weekly': '0 0 * * 0',
  '@daily': '0 0 * * *',
  '@midnight': '0 0 * * *',
  '@hourly': '0 * * * *',
}
const monthNames = 'jan feb mar apr may jun jul aug sep oct nov dec'.split(' ')
const weekdayNames = 'sun mon tue wed thu fri sat'.split(' ')
const units: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000 }

/** Undefined when the text is no schedule. */
export function parseSchedule(text: string): Schedule | undefined {
  const every = /^@every\s+((?:\d+(?:\.\d+)?[hms])+)$/.exec(text.trim())
  const fields = (descriptors[text.trim()] ?? text.trim()).split(/\s+/)
  const everyMs = every?.[1] ? [...every[1].matchAll(/([\d.]+)([hms])/g)].reduce((sum, [, n, unit = '']) => sum + Number(n) * (units[unit] ?? 0), 0) : undefined
  const [minutes, hours, days, months, weekdays] = everyMs ? Array(5).fill('*') : fields
  if (!everyMs && fields.length !== 5) return undefined
  const parsed = {
    minutes: parseField(minutes, 0, 59),
    hours: parseField(hours, 0, 23),
    days: parseField(days, 1, 31),
    months: parseField(months, 1, 12, monthNames, 1),
    weekdays: parseField(weekdays, 0, 6, weekdayNames),
  }
  if (Object.values(parsed).some((field) => field === undefined)) return undefined
  const isAny = (field: string) => field.startsWith('*') || field === '?'
  return {
    ...(parsed as Record<keyof typeof parsed, Set<number>>),
    anyDay: isAny(days),
    anyWeekday: isAny(weekdays),
    everyMs: everyMs && Math.max(1000, everyMs),
  }
}

function parseField(text: string, min: number, max: number, names: readonly string[] = [], firstName = 0): Set<number> | undefined {
  const values = new Set<number>()
  const numberOf = (part: string) => {
    const named = names.indexOf(part.toLowerCase())
    return named >= 0 ? named + firstName : /^\d+$/.test(part) ? Number(part) : Number.NaN
  }
  for (const part of text.split(',')) {
    const [range = '', step, ...more] = part.split('/')
    const [first = '', last, ...rest] = range.split('-')
    if (more.length > 0 || rest.length > 0) return undefined
    const any = range === '*' || range === '?'
    const from = any ? min : numberOf(first)
    // `5/15` means from 5 to the end.
    const to = any || (last === undefined && step !== undefined) ? max : last === undefined ? from : numberOf(last)
    const by = step === undefined ? 1 : /^\d+$/.test(step) ? Number(step) : 0
    if (!(from >= min && to <= max && from <= to && by > 0)) return undefined
    for (let value = from; value <= to; value += by) values.add(value)
  }
  return values
}

const minuteMs = 60_000
const horizonMs = 5 * 366 * 24 * 60 * minuteMs

/** The first time after `afterMs`; undefined when there is none within five years. @throws RangeError for an unknown time zone. */
export function nextTime(schedule: Schedule, afterMs: number, timeZone?: string): number | undefined {
  if (schedule.everyMs) return Math.floor((afterMs + schedule.everyMs) / 1000) * 1000
  const local = localFields(timeZone)
  const untilMs = afterMs + horizonMs
  for (let ms = (Math.floor(afterMs / minuteMs) + 1) * minuteMs; ms < untilMs; ) {
    const { minute, hour, day, month, weekday } = local(ms)
    const matchesDay = schedule.days.has(day)
    const matchesWeekday = schedule.weekdays.has(weekday)
    const dayFits = schedule.anyDay || schedule.anyWeekday ? matchesDay && matchesWeekday : matchesDay || matchesWeekday
    if (!dayFits || !schedule.months.has(month) || !schedule.hours.has(hour)) ms += (60 - minute) * minuteMs
    else if (!schedule.minutes.has(minute)) ms += minuteMs
    else return ms
  }
  return undefined
}

/** The last time in (afterMs, nowMs]; undefined when there is none. */
export function mostRecentTime(schedule: Schedule, afterMs: number, nowMs: number, timeZone?: string): number | undefined {
  // From now back in growing steps: after a long pause nobody wants to count every minute since.
  for (let windowMs = 2 * minuteMs; ; windowMs *= 4) {
    const fromMs = schedule.everyMs ? afterMs : Math.max(afterMs, nowMs - windowMs)
    let found: number | undefined
    for (let next = nextTime(schedule, fromMs, timeZone); next !== undefined && next <= nowMs; next = nextTime(schedule, next, timeZone)) found = next
    if (found !== undefined || fromMs === afterMs) return found
  }
}

interface LocalFields {
  readonly minute: number
  readonly hour: number
  readonly day: number
  readonly month: number
  readonly weekday: number
}

function localFields(timeZone: string | undefined): (ms: number) => LocalFields {
  const zone = timeZone || 'UTC'
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: zone,
    hourCycle: 'h23',
    weekday: 'short',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  })
  return (ms) => {
    const parts: Record<string, string> = {}
    for (const { type, value } of format.formatToParts(ms)) parts[type] = value
    return {
      minute: Number(parts.minute),
      hour: Number(parts.hour),
      day: Number(parts.day),
      month: Number(parts.month),
      weekday: weekdayNames.indexOf((parts.weekday ?? '').toLowerCase()),
    }
  }
}

/** Milliseconds of an API time, for callers that have optional ones. */
export const timeOf = (text: string | undefined): number | undefined => (text === undefined ? undefined : parseTime(text))
