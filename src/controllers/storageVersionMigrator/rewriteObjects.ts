/**
 * Has the API server rewrite every object of a resource (L3): by an apply that names no field, which changes nothing but the stored form where that is an
 * older one. Upstream: pkg/controller/storageversionmigrator/storageversionmigrator.go, runMigration (v1.36).
 */
import { type Frozen, groupVersion, type KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import { messageOf } from '#base/messageOf'
import type { Client, Resource } from '#client/client'
import { listPages } from '#client/listAll'
import { createMetadataClient } from '#client/metadataClient'
import { compareResourceVersion } from '#client/resourceVersion'

/** An error after which another try makes no sense; its message is for the migration's status. */
export class MigrationError extends Error {}

/**
 * @param asOf the resource's version when the migration was first seen: later writes are in the new form already
 * @throws MigrationError; any other error means: try again
 */
export async function rewriteObjects(client: Client, resource: Resource<KubeObject>, asOf: string, fieldManager: string, signal: AbortSignal): Promise<void> {
  const ofResource = client.of(resource)
  const rewrite = async ({ metadata }: Frozen<KubeObject>) => {
    const { namespace, name = '', uid, resourceVersion = '' } = metadata
    if (isNewer(resourceVersion, asOf)) return
    // With both, an object that has changed, gone, or come again is a conflict, and no object is created.
    const body = { apiVersion: groupVersion(resource), kind: resource.kind, metadata: { name, ...(namespace ? { namespace } : {}), uid, resourceVersion } }
    try {
      await ofResource.patch({ namespace, name }, 'apply', body, { fieldManager, signal })
    } catch (error) {
      if (!isSkipped(error)) throw isWorthRetry(error) ? error : new MigrationError(messageOf(error), { cause: error })
    }
  }
  // A version that is forgotten between two pages ends the try; the next one passes over what is written already.
  for await (const { items } of listPages(createMetadataClient(client.transport).of(resource), { signal })) for (const item of items) await rewrite(item)
}

/** @throws MigrationError for versions of a server that are no numbers */
function isNewer(version: string, than: string): boolean {
  try {
    return compareResourceVersion(version, than) > 0
  } catch (error) {
    throw new MigrationError(messageOf(error), { cause: error })
  }
}

/** Another writer has changed or deleted the object: the write has the new form, or there is nothing to write. */
const isSkipped = (error: unknown) => isStatus(error, 'Conflict') || isStatus(error, 'NotFound')

/** Upstream's isRetriableError: what the server could not do now, and what never reached it. */
function isWorthRetry(error: unknown): boolean {
  if (!isStatus(error)) return true
  return ['ServerTimeout', 'TooManyRequests', 'ServiceUnavailable', 'InternalError', 'Timeout'].includes(error.reason)
}
