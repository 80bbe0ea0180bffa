/**
 * What a migration writes into the status of the CustomResourceDefinition (L3): that it runs, and at its end which versions are still stored.
 * Upstream: pkg/controller/storageversionmigrator/migrationrunner.go (v1.36).
 */
import type { CustomResourceDefinition } from '#api/gen/types/apiextensions.v1'
import { findCondition } from '#api/machinery/conditions'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { formatTime } from '#base/time'
import { customResourceDefinitions } from '#client/builtIn'
import type { ControllerContext } from '../framework/controller.ts'
import { hasSucceeded, type Migration } from './migrationStatus.ts'

const fieldManager = 'migration-runner-controller'

type Definition = Frozen<CustomResourceDefinition>

export async function markStarted(context: ControllerContext, migration: Migration, signal: AbortSignal): Promise<void> {
  const definition = await definitionOf(context, migration, signal)
  if (definition)
    await apply(context, definition, { status: 'True', reason: 'MigrationRunning', message: `Migration ${migration.metadata.name} is running` }, signal)
}

export async function markEnded(context: ControllerContext, migration: Migration, signal: AbortSignal): Promise<void> {
  const definition = await definitionOf(context, migration, signal)
  if (!definition) return
  const [isSuccess, isSame] = [hasSucceeded(migration), isUnchangedSince(definition)]
  // Upstream drops the other versions also when the migration has failed, though objects may still have them.
  const storedVersions = isSuccess && isSame ? definition.spec.versions.filter(({ storage }) => storage).map(({ name }) => name) : undefined
  await apply(context, definition, { ...ending(isSuccess, isSame), storedVersions }, signal)
}

/** Whether the definition is the one that the migration began with: then no object has been stored in another version meanwhile. */
function isUnchangedSince({ metadata, status }: Definition): boolean {
  return findCondition(status?.conditions, 'StorageMigrating')?.observedGeneration === metadata.generation
}

function ending(isSuccess: boolean, isSame: boolean) {
  if (!isSuccess) return { status: 'False', reason: 'MigrationFailed', message: 'The migration has failed' }
  const versions = isSame ? 'and the stored versions have been updated' : 'but the stored versions have not been updated due to a generation mismatch'
  return { status: 'False', reason: 'MigrationSucceeded', message: `The migration has succeeded ${versions}` }
}

async function definitionOf({ client }: ControllerContext, { spec: { resource } }: Migration, signal: AbortSignal): Promise<Definition | undefined> {
  if (!resource.group) return undefined
  try {
    return await client.of(customResourceDefinitions).get({ name: `${resource.resource}.${resource.group}` }, { signal })
  } catch (error) {
    if (isStatus(error, 'NotFound')) return undefined
    throw error
  }
}

interface Change {
  readonly status: string
  readonly reason: string
  readonly message: string
  /** Absent: they stay as they are. */
  readonly storedVersions?: readonly string[] | undefined
}

/** @throws Status Conflict when the definition has changed since it was read */
async function apply(
  { client, clock }: ControllerContext,
  { metadata }: Definition,
  { storedVersions, ...change }: Change,
  signal: AbortSignal,
): Promise<void> {
  const { name = '', generation: observedGeneration, resourceVersion } = metadata
  const condition = { type: 'StorageMigrating', ...change, lastTransitionTime: formatTime(clock.now()), observedGeneration }
  const body = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name, resourceVersion },
    status: { conditions: [condition], ...(storedVersions ? { storedVersions } : {}) },
  }
  await client.of(customResourceDefinitions).patch({ name }, 'apply', body, { subresource: 'status', fieldManager, force: true, signal })
}
