/**
 * What a StorageVersionMigration's conditions say, and which migration of a resource runs (L3, pure): one at a time, the oldest first.
 * Upstream: pkg/controller/storageversionmigrator/{util,migrationrunner}.go (v1.36).
 */
import type { StorageVersionMigration } from '#api/gen/types/storagemigration.v1beta1'
import { isConditionTrue, withoutCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { formatTime } from '#base/time'

export type Migration = Frozen<StorageVersionMigration>
type Conditions = NonNullable<StorageVersionMigration['status']['conditions']>

export const isRunning = ({ status }: Migration) => isConditionTrue(status?.conditions, 'Running')
export const hasSucceeded = ({ status }: Migration) => isConditionTrue(status?.conditions, 'Succeeded')
export const isFinished = (migration: Migration) => hasSucceeded(migration) || isConditionTrue(migration.status?.conditions, 'Failed')

export function isOfSameResource({ spec: { resource: a } }: Migration, { spec: { resource: b } }: Migration): boolean {
  return a.resource === b.resource && (a.group ?? '') === (b.group ?? '')
}

/** The migration of a resource that runs, or is next to run; undefined when all are finished. @param all of one resource */
export function activeMigration(all: readonly Migration[]): Migration | undefined {
  const left = all.filter((one) => !isFinished(one))
  const order = ({ metadata }: Migration) => `${metadata.creationTimestamp} ${metadata.name}`
  return left.find(isRunning) ?? left.sort((a, b) => (order(a) < order(b) ? -1 : 1))[0]
}

/** The conditions once the migration runs. */
export function startedConditions({ status }: Migration, nowMs: number): Conditions {
  return [...others(status?.conditions, 'Running'), condition('Running', 'MigrationRunning', 'The migration is running', nowMs)]
}

/** The conditions once it has ended: it runs no more. */
export function endedConditions({ status }: Migration, failure: string | undefined, nowMs: number): Conditions {
  const ending =
    failure === undefined
      ? condition('Succeeded', 'StorageVersionMigrationSucceeded', '', nowMs)
      : condition('Failed', 'StorageVersionMigrationFailed', failure, nowMs)
  return [...others(status?.conditions, ending.type).map((one) => (one.type === 'Running' ? { ...one, status: 'False' } : one)), ending]
}

/** The conditions once the definition of its resource says what the migration has come to. */
export function settledConditions({ status }: Migration): Conditions {
  return others(status?.conditions, 'Running')
}

function others(conditions: Migration['status']['conditions'], type: string): Conditions {
  return withoutCondition(conditions, type).map((one) => ({ ...one }))
}

function condition(type: string, reason: string, message: string, nowMs: number): Conditions[number] {
  return { type, status: 'True', reason, message, lastTransitionTime: formatTime(nowMs) }
}
