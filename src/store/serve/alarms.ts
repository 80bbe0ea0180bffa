/** Alarms of the store (L2), as etcd's, and what they forbid. Upstream: etcd server/etcdserver/apply/apply.go applierV3Capped, corrupt.go (v3.6). */
import { refusal } from './refusals.ts'

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

/** @throws GrpcRefusal while NOSPACE is raised, for a request that `stores` something, and while CORRUPT is, for every request */
export function refuseUnderAlarm(alarms: Alarms, stores: boolean): void {
  const active = alarms.active()
  if (active.includes('CORRUPT')) throw refusal('corrupt')
  if (stores && active.includes('NOSPACE')) throw refusal('noSpace')
}
