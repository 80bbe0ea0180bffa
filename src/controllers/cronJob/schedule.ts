/**
 * When cron schedules are due, in any time zone (L3). Pure; api/helpers/cronSchedule reads them. Days are found by the calendar alone, hours and
 * minutes within a day by the clock. Upstream: SpecSchedule.Next of github.com/robfig/cron/v3, and mostRecentScheduleTime in
 * pkg/controller/cronjob/utils.go (v1.36).
 */
import type { CronSchedule } from '#api/helpers/cronSchedule'
import { civilFromDays, daysFromCivil, parseTime } from '#base/time'
import { fromLocal, utc, type Zone } from './timeZones.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
/** A time that is further away than the end of this year from now is none. */
const yearsAhead = 5

/** The first time after `afterMs`; undefined when there is none until the end of the fifth year from then. */
export function nextTime(schedule: CronSchedule, afterMs: number, zone: Zone = utc): number | undefined {
  if (schedule.everyMs) return Math.floor((afterMs + schedule.everyMs) / 1000) * 1000
  if (schedule.minutes.size === 0 || schedule.hours.size === 0) return undefined
  let ms = (Math.floor(afterMs / minuteMs) + 1) * minuteMs
  let isWhole = false
  const first = dayOf(ms, zone)
  const last = daysFromCivil(civilFromDays(first).year + yearsAhead + 1, 1, 1) - 1
  for (let day = first; ; ) {
    const due = nextDay(schedule, day, last)
    if (due === undefined) return undefined
    if (due > day) {
      const begin = beginOf(due, zone)
      if (begin === undefined) {
        day = due + 1
        continue
      }
      ms = begin
      isWhole = true
    }
    const found = timeInDay(schedule, ms, isWhole, zone)
    if (found.isDue) return found.ms
    ms = found.ms
    isWhole = true
    day = dayOf(ms, zone)
  }
}

const dayOf = (ms: number, zone: Zone) => Math.floor((ms + zone.offsetAt(ms)) / dayMs)

/** The first day from `day` to `last`, counted from 1970-01-01, whose date fits. */
function nextDay({ days, months, weekdays, anyDay, anyWeekday }: CronSchedule, day: number, last: number): number | undefined {
  while (day <= last) {
    const date = civilFromDays(day)
    if (!months.has(date.month)) {
      day = date.month === 12 ? daysFromCivil(date.year + 1, 1, 1) : daysFromCivil(date.year, date.month + 1, 1)
      continue
    }
    // 1970-01-01 was a Thursday.
    const matchesWeekday = weekdays.has((day + 4) % 7)
    const matchesDay = days.has(date.day)
    if (anyDay || anyWeekday ? matchesDay && matchesWeekday : matchesDay || matchesWeekday) return day
    day++
  }
  return undefined
}

/**
 * The time at which a day begins. Where clocks skip midnight it begins at 1:00; in zones east of Greenwich upstream then takes the day before
 * for it, and goes past it: undefined.
 */
function beginOf(day: number, zone: Zone): number | undefined {
  const midnight = fromLocal(day * dayMs, zone)
  const sinceMidnight = midnight + zone.offsetAt(midnight) - day * dayMs
  if (sinceMidnight > 0 && civilFromDays(day).day !== 1) return undefined
  return sinceMidnight < 0 ? midnight - sinceMidnight : midnight
}

/**
 * The first time from `ms` on whose hour and minute fit, in the same day; otherwise when to look at the date again.
 * @param isWhole `ms` is a step of this search: upstream cuts minutes off only before the first one
 */
function timeInDay({ hours, minutes }: CronSchedule, ms: number, isWhole: boolean, zone: Zone): { readonly isDue: boolean; readonly ms: number } {
  const hourAt = (time: number) => Math.floor((time + zone.offsetAt(time)) / hourMs) % 24
  const minuteAt = (time: number) => Math.floor((time + zone.offsetAt(time)) / minuteMs) % 60
  if (!hours.has(hourAt(ms)) && !isWhole) ms = fromLocal(Math.floor((ms + zone.offsetAt(ms)) / hourMs) * hourMs, zone)
  while (!hours.has(hourAt(ms))) {
    ms += hourMs
    if (hourAt(ms) === 0) return { isDue: false, ms }
  }
  while (!minutes.has(minuteAt(ms))) {
    ms += minuteMs
    if (minuteAt(ms) === 0) return { isDue: false, ms }
  }
  return { isDue: true, ms }
}

/** The last time in (afterMs, nowMs]; undefined when there is none. */
export function mostRecentTime(schedule: CronSchedule, afterMs: number, nowMs: number, zone: Zone = utc): number | undefined {
  const firstMs = nextTime(schedule, afterMs, zone)
  if (firstMs === undefined || firstMs > nowMs) return undefined
  if (schedule.everyMs) return firstMs + Math.floor((nowMs - firstMs) / schedule.everyMs) * schedule.everyMs
  // Halves the span that it lies in: after a long pause there may be millions in between.
  let [foundMs, low, high] = [firstMs, firstMs, nowMs]
  while (high - low >= minuteMs) {
    const middle = low + Math.floor((high - low) / 2)
    const next = nextTime(schedule, middle, zone)
    if (next === undefined || next > nowMs) high = middle
    else [foundMs, low] = [next, next]
  }
  return foundMs
}

const manyMissed = 100

/** More than a hundred times have passed in (afterMs, nowMs], by an estimate from the first two, as upstream. */
export function hasMissedMany(schedule: CronSchedule, afterMs: number, nowMs: number, zone: Zone = utc): boolean {
  const firstMs = nextTime(schedule, afterMs, zone)
  if (firstMs === undefined || firstMs > nowMs) return false
  const secondMs = nextTime(schedule, firstMs, zone)
  return secondMs !== undefined && secondMs <= nowMs && Math.floor((nowMs - firstMs) / (secondMs - firstMs)) + 1 > manyMissed
}

/** Milliseconds of an API time, for callers that have optional ones. */
export const timeOf = (text: string | undefined): number | undefined => (text === undefined ? undefined : parseTime(text))
