/**
 * The parts of timestamps and durations (L1, pure). Without a zone timestamps are read in UTC.
 * Upstream: cel-go common/stdlib/standard.go, common/types/timestamp.go, duration.go (v0.26).
 */
import type { FunctionDeclaration, Overload } from '../declarations.ts'
import { declare, member, prepared } from '../declarations.ts'
import type { CivilTime } from '../time.ts'
import { civilTime, zoneReader } from '../time.ts'
import type { Duration, Timestamp } from '../values.ts'
import { int } from '../values.ts'

function ofTimestamp(id: string, part: (time: CivilTime) => number): Overload[] {
  return [
    member(`timestamp_to_${id}`, '(timestamp) -> int', (moment: Timestamp) => part(civilTime(moment))),
    prepared(member, `timestamp_to_${id}_with_tz`, '(timestamp, string) -> int', () => {
      const read = zoneReader()
      return (moment: Timestamp, zone: string) => part(read(moment, zone))
    }),
  ]
}

/** The whole duration in a unit; bigint division truncates, as upstream converts. */
const ofDuration = (id: string, unit: bigint): Overload => member(`duration_to_${id}`, '(duration) -> int', ({ nanos }: Duration) => int(nanos / unit))

export const times: readonly FunctionDeclaration[] = [
  declare('getFullYear', ...ofTimestamp('year', (time) => time.year)),
  declare('getMonth', ...ofTimestamp('month', (time) => time.month)),
  declare('getDayOfYear', ...ofTimestamp('day_of_year', (time) => time.dayOfYear)),
  declare('getDayOfMonth', ...ofTimestamp('day_of_month', (time) => time.dayOfMonth)),
  declare('getDate', ...ofTimestamp('day_of_month_1_based', (time) => time.dayOfMonth + 1)),
  declare('getDayOfWeek', ...ofTimestamp('day_of_week', (time) => time.dayOfWeek)),
  declare('getHours', ...ofTimestamp('hours', (time) => time.hours), ofDuration('hours', 3_600_000_000_000n)),
  declare('getMinutes', ...ofTimestamp('minutes', (time) => time.minutes), ofDuration('minutes', 60_000_000_000n)),
  declare('getSeconds', ...ofTimestamp('seconds', (time) => time.seconds), ofDuration('seconds', 1_000_000_000n)),
  declare('getMilliseconds', ...ofTimestamp('milliseconds', (time) => time.millis), ofDuration('milliseconds', 1_000_000n)),
]
