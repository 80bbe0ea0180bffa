/**
 * Deletes the instances of a CustomResourceDefinition that is being deleted (L3), and waits until the last is gone.
 * Upstream: apiextensions-apiserver/pkg/controller/finalizer/crd_finalizer.go.
 */
import { setMaxListeners } from 'node:events'
import type { CustomResourceDefinition } from '#api/gen/types/apiextensions.v1'
import { isStatus } from '#api/machinery/status'
import { deepCopy } from '#base/frozen'
import { noAdmission } from '../admission/chain.ts'
import { withWorkers } from '../core/fairLoop.ts'
import type { UserInfo } from '../core/request.ts'
import { deleteObject } from '../registry/deletion.ts'
import type { WatchCache } from '../registry/watchCache.ts'
import type { WriterDeps } from '../registry/writer.ts'
import { setDefinitionCondition } from './conditions.ts'
import { type Definition, hasCondition, overlapsBuiltIn } from './definitions.ts'
import type { CustomResources } from './serving.ts'

/** Concurrent deletions, which share flushes of the disk. */
const workers = 32

type Status = CustomResourceDefinition['status']

export interface CleanUpDeps {
  readonly served: CustomResources
  readonly writer: WriterDeps
  readonly user: UserInfo
}

/** The status after all instances are gone. @throws the error of an instance that cannot be deleted */
export async function cleanUp(deps: CleanUpDeps, definition: Definition, signal: AbortSignal): Promise<Status> {
  const done = (reason: string, message: string) => {
    const status = deepCopy<Status>(definition.status)
    setDefinitionCondition(status, { type: 'Terminating', status: 'False', reason, message }, deps.writer.clock.now())
    return status
  }
  if (overlapsBuiltIn(definition)) return done('OverlappingBuiltInResource', 'instances overlap with built-in resources in storage')
  const name = definition.metadata.name ?? ''
  await deps.served.settle(name)
  const served = deps.served.get(name)
  if (!served || !hasCondition(definition, 'Established')) return done('NeverEstablished', 'resource was never established')
  const { resource, cache } = served
  const context = { served: resource.storage, subresource: '', user: deps.user, fieldManager: 'kube-apiserver', dryRun: false, warn: () => {} }
  // The definition's deletion has been admitted, so its instances are deleted without admission.
  const writer = { ...deps.writer, admission: noAdmission }
  await withWorkers([...cache.select({ key: '', namespace: '', exactFields: {} })], workers, async (entry) => {
    const { name: instance = '', namespace = '' } = entry.object.metadata
    try {
      await deleteObject(writer, { ...context, namespace }, { name: instance })
    } catch (error) {
      if (!isStatus(error, 'NotFound')) throw error
    }
  })
  await untilEmpty(cache, signal)
  return done('InstanceDeletionCompleted', 'removed all instances')
}

/** No time limit: finalizers of instances may take long. */
function untilEmpty(cache: WatchCache, signal: AbortSignal): Promise<void> {
  if (cache.size === 0) return Promise.resolve()
  return new Promise((resolve, reject) => {
    const finish = (end: () => void) => {
      stop()
      signal.removeEventListener('abort', onAbort)
      end()
    }
    const onAbort = () => finish(() => reject(signal.reason))
    const stop = cache.onChange(() => {
      if (cache.size === 0) finish(resolve)
    })
    // Every definition that is being deleted waits on the same signal; Node warns from the eleventh listener on.
    setMaxListeners(0, signal)
    signal.addEventListener('abort', onAbort, { once: true })
  })
}
