/** Alarms of the store (L2), as etcd's. */
export type AlarmType = 'NOSPACE' | 'CORRUPT'

/** Alarms stay until a client disarms them, or the server ends. */
export interface Alarms {
  raise(alarm: AlarmType): void
  disarm(alarm: AlarmType): void
  active(): readonly AlarmType[]
}

export function createAlarms(): Alarms {
  const active = new Set<AlarmType>()
  return { raise: (alarm) => void active.add(alarm), disarm: (alarm) => void active.delete(alarm), active: () => [...active] }
}
