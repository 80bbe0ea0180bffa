/**
 * When cron schedules are due, in any time zone (L3). Pure; api/helpers/cronSchedule reads them.
 * Upstream: github.com/robfig/cron/v3 as pkg/controller/cronjob uses it (v1.36).
 */
import type { CronSchedule } from '#api/helpers/cronSchedule'
import { civilFromDays, parseTime } from '#base/time'

const weekdayNames = 'sun mon tue wed thu fri sat'.split(' ')
const minuteMs = 60_000
const horizonMs = 5 * 366 * 24 * 60 * minuteMs

/** The first time after `afterMs`; undefined when there is none within five years. @throws RangeError for an unknown time zone. */
export function nextTime(schedule: CronSchedule, afterMs: number, timeZone?: string): number | undefined {
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
export function mostRecentTime(schedule: CronSchedule, afterMs: number, nowMs: number, timeZone?: string): number | undefined {
  if (schedule.everyMs) {
    const firstMs = nextTime(schedule, afterMs) ?? nowMs
    return firstMs > nowMs ? undefined : firstMs + Math.floor((nowMs - firstMs) / schedule.everyMs) * schedule.everyMs
  }
  // From now back in growing steps: after a long pause nobody wants to count every minute since.
  for (let windowMs = 2 * minuteMs; ; windowMs *= 4) {
    const fromMs = Math.max(afterMs, nowMs - windowMs)
    let found: number | undefined
    for (let next = nextTime(schedule, fromMs, timeZone); next !== undefined && next <= nowMs; next = nextTime(schedule, next, timeZone)) found = next
    if (found !== undefined || fromMs === afterMs) return found
  }
}

const manyMissed = 100

/** More than a hundred times have passed in (afterMs, nowMs], by an estimate from the first two, as upstream. */
export function hasMissedMany(schedule: CronSchedule, afterMs: number, nowMs: number, timeZone?: string): boolean {
  const firstMs = nextTime(schedule, afterMs, timeZone)
  if (firstMs === undefined || firstMs > nowMs) return false
  const secondMs = nextTime(schedule, firstMs, timeZone)
  return secondMs !== undefined && secondMs <= nowMs && Math.floor((nowMs - firstMs) / (secondMs - firstMs)) + 1 > manyMissed
}

/** The platform knows the zone. */
export function isTimeZone(name: string): boolean {
  try {
    return Boolean(new Intl.DateTimeFormat('en-US', { timeZone: name }))
  } catch {
    return false
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
  if (zone === 'UTC') return utcFields
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

/** The same by arithmetic: the platform's formatter is slow, and most schedules name no zone. */
function utcFields(ms: number): LocalFields {
  const minutes = Math.floor(ms / minuteMs)
  const days = Math.floor(minutes / (24 * 60))
  const { day, month } = civilFromDays(days)
  // 1970-01-01 was a Thursday.
  return { minute: minutes % 60, hour: Math.floor(minutes / 60) % 24, day, month, weekday: (days + 4) % 7 }
}

/** Milliseconds of an API time, for callers that have optional ones. */
export const timeOf = (text: string | undefined): number | undefined => (text === undefined ? undefined : parseTime(text))
