/**
 * Kubernetes' time formats (L0), without the platform's Date: pure arithmetic on milliseconds since the Unix epoch.
 * Upstream: apimachinery/pkg/apis/meta/v1 time.go, micro_time.go.
 */
const msPerDay = 86_400_000

/** RFC 3339 with seconds, as metav1.Time is written. */
export function formatTime(epochMs: number): string {
  return `${civil(epochMs)}Z`
}

/** RFC 3339 with microseconds, as metav1.MicroTime is written. */
export function formatMicroTime(epochMs: number): string {
  // Rounded: a double holds today's microseconds only to about a tenth of one.
  const micros = Math.min(999_999, Math.round((epochMs - Math.floor(epochMs / 1000) * 1000) * 1000))
  return `${civil(epochMs)}.${String(micros).padStart(6, '0')}Z`
}

const rfc3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)$/

/** Milliseconds since the epoch, fractions kept to the microsecond; undefined when the text is no RFC 3339 time. */
export function parseTime(text: string): number | undefined {
  const match = rfc3339.exec(text)
  if (!match) return undefined
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [number, number, number, number, number, number]
  if (month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month) || hour > 23 || minute > 59 || second > 59) return undefined
  const fractionMs = match[7] ? Number(`0.${match[7]}`) * 1000 : 0
  const zone = match[8] as string
  const offsetMinutes = /^[Zz]$/.test(zone) ? 0 : (zone[0] === '-' ? -1 : 1) * (Number(zone.slice(1, 3)) * 60 + Number(zone.slice(4, 6)))
  return daysFromCivil(year, month, day) * msPerDay + ((hour * 60 + minute - offsetMinutes) * 60 + second) * 1000 + fractionMs
}

function civil(epochMs: number): string {
  const days = Math.floor(epochMs / msPerDay)
  const seconds = Math.floor((epochMs - days * msPerDay) / 1000)
  const { year, month, day } = civilFromDays(days)
  const date = `${String(year).padStart(4, '0')}-${twoDigits[month]}-${twoDigits[day]}`
  return `${date}T${twoDigits[Math.floor(seconds / 3600)]}:${twoDigits[Math.floor(seconds / 60) % 60]}:${twoDigits[seconds % 60]}`
}

const twoDigits: readonly string[] = Array.from({ length: 60 }, (_, n) => String(n).padStart(2, '0'))

function daysInMonth(year: number, month: number): number {
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
  return month === 2 ? (leap ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31
}

/** Days since 1970-01-01 in the proleptic Gregorian calendar; month and day count from 1. The year is counted from March, so leap days come last. */
export function daysFromCivil(year: number, month: number, day: number): number {
  const y = month <= 2 ? year - 1 : year
  const era = Math.floor(y / 400)
  const yearOfEra = y - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}

/** The date of a day counted from 1970-01-01; month and day count from 1. */
export function civilFromDays(days: number): { year: number; month: number; day: number } {
  const shifted = days + 719_468
  const era = Math.floor(shifted / 146_097)
  const dayOfEra = shifted - era * 146_097
  const yearOfEra = Math.floor((dayOfEra - Math.floor(dayOfEra / 1460) + Math.floor(dayOfEra / 36_524) - Math.floor(dayOfEra / 146_096)) / 365)
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100))
  const monthFromMarch = Math.floor((5 * dayOfYear + 2) / 153)
  const day = dayOfYear - Math.floor((153 * monthFromMarch + 2) / 5) + 1
  const month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
  return { year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, day }
}
