/**
 * How far local time is from UTC in the time zones that schedules name (L3). Pure. Upstream: Go's time.LoadLocation and time.Date (v1.36).
 */

export interface Zone {
  /** Milliseconds that local time is ahead of UTC at a time. */
  offsetAt(ms: number): number
}

export const utc: Zone = { offsetAt: () => 0 }

/** More spellings than there are zones: upper and lower case do not matter. */
const maxZones = 1000

/** Keeps a formatter for each zone: to make one takes as long as to ask it a hundred times. */
export class TimeZones {
  readonly #zones = new Map<string, Zone>()

  /** @returns undefined when the platform does not know the zone */
  of(name: string): Zone | undefined {
    if (name === 'UTC') return utc
    const known = this.#zones.get(name)
    if (known) return known
    let zone: Zone
    try {
      zone = zoneOf(new Intl.DateTimeFormat('en-US', { timeZone: name, timeZoneName: 'longOffset', year: 'numeric' }))
    } catch {
      return undefined
    }
    if (this.#zones.size >= maxZones) this.#zones.clear()
    this.#zones.set(name, zone)
    return zone
  }
}

function zoneOf(format: Intl.DateTimeFormat): Zone {
  return {
    offsetAt(ms) {
      // `2026, GMT+05:45`; seconds in the 19th century only.
      const [, sign, hours, minutes, seconds = '0'] = /GMT([+-])(\d\d):(\d\d)(?::(\d\d))?/.exec(format.format(ms)) ?? []
      if (sign === undefined) return 0
      return (sign === '-' ? -1000 : 1000) * (Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds))
    },
  }
}

/** The time at which clocks of the zone show `localMs`, counted as if it was UTC. For a time that they skip it is the one that Go takes. */
export function fromLocal(localMs: number, zone: Zone): number {
  const offset = zone.offsetAt(localMs)
  return localMs - (offset === 0 ? 0 : zone.offsetAt(localMs - offset))
}
