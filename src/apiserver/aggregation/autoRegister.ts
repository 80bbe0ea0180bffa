/**
 * Keeps one APIService per group-version that this server answers itself (L3), so that `kubectl get apiservices` shows them all with
 * their priorities: built-in ones are restored once per start, those of custom resources always.
 * Upstream: kube-aggregator/pkg/controllers/autoregister, pkg/controlplane/controller/crdregistration.
 */
import { allGroupVersions, groupVersionKey } from '#api/discovery/resources'
import type { APIService } from '#api/gen/types/apiregistration.v1'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import type { Transport } from '#client/transport'
import { createWorkQueue } from '#client/workqueue/workQueue'
import type { ObjectReader } from '../core/objectReader.ts'
import { deepEqual } from '../core/sameObject.ts'
import type { Catalog } from '../registry/catalog.ts'
import { apiServices } from './extensionServer.ts'

export interface AutoRegisterDeps {
  readonly reader: ObjectReader
  readonly catalog: Catalog
  readonly transport: Transport
  readonly clock: Clock
  readonly log: Logger
}

export interface AutoRegister {
  /** Syncs every APIService once; resolves when those of built-in group-versions exist. @throws the error of a failed write of one of these */
  register(signal: AbortSignal): Promise<void>
  /** Follows the served APIs until the signal aborts. */
  run(signal: AbortSignal): Promise<void>
}

const path = '/apis/apiregistration.k8s.io/v1/apiservices'
/** The label of APIServices that this file creates, changes and deletes. */
export const managedLabel = 'kube-aggregator.kubernetes.io/automanaged'
const onStart = 'onstart'
const always = 'true'
/** The aggregator's own group needs no APIService to be served. */
const ownGroup = 'apiregistration.k8s.io'
/** Upstream's priorities of every group-version of custom resources. */
const customPriorities = { groupPriorityMinimum: 1000, versionPriority: 100 }

export function createAutoRegister(deps: AutoRegisterDeps): AutoRegister {
  const { reader, catalog, clock, log } = deps
  const synced = new Set<string>()
  const atStart = new Set<string>()
  /** APIServices whose write failed during the start. */
  const failed = new Set<string>()
  let wanted = { changes: -1, all: new Map<string, APIService>() }
  const desired = (): ReadonlyMap<string, APIService> => {
    if (wanted.changes !== catalog.changes) wanted = { changes: catalog.changes, all: desiredOf(catalog) }
    return wanted.all
  }
  const sync = async (name: string, signal: AbortSignal): Promise<void> => {
    const current = reader.get<KubeObject>(apiServices, '', name) as Frozen<APIService> | undefined
    const step = planOf(current, desired().get(name), { synced: synced.has(name), atStart: atStart.has(name) })
    await carryOut(deps.transport, step, signal)
    synced.add(name)
  }
  /** Readiness waits for built-in group-versions alone, as upstream's check autoregister-completion; `run` tries the others again. */
  const failedAtStart = (name: string, error: unknown) => {
    if (desired().get(name)?.metadata.labels?.[managedLabel] === onStart) throw error
    log.error(error, 'Registering an APIService failed; trying again', { apiService: name })
    failed.add(name)
  }
  return {
    async register(signal) {
      const present = reader.list<KubeObject>(apiServices).map(({ metadata }) => metadata.name ?? '')
      for (const name of present) atStart.add(name)
      // Together, so that they share flushes of the disk.
      await Promise.all([...new Set([...present, ...desired().keys()])].map((name) => sync(name, signal).catch((error: unknown) => failedAtStart(name, error))))
    },
    async run(signal) {
      const queue = createWorkQueue<string>({ clock, name: 'autoregister' })
      let before = desired()
      const stops = [
        reader.onChange<KubeObject>(apiServices, ({ object }) => queue.add(object.metadata.name ?? '')),
        catalog.onChange(() => {
          const now = desired()
          for (const name of new Set([...before.keys(), ...now.keys()])) if (!deepEqual(before.get(name), now.get(name))) queue.add(name)
          before = now
        }),
      ]
      // Changes between the first pass and now.
      for (const name of [...before.keys(), ...failed]) queue.add(name)
      signal.addEventListener('abort', () => queue.shutDown(), { once: true })
      if (signal.aborted) queue.shutDown()
      for (let name = await queue.get(); name !== undefined; name = await queue.get()) {
        try {
          await sync(name, signal)
          queue.forget(name)
        } catch (error) {
          if (!signal.aborted) log.error(error, 'Registering an APIService failed; trying again', { apiService: name })
          queue.addRateLimited(name)
        } finally {
          queue.done(name)
        }
      }
      for (const stop of stops) stop()
    },
  }
}

/** The APIServices of the group-versions that this server answers from its store, by name; the first source of a group-version decides. */
export function desiredOf(catalog: Pick<Catalog, 'sources'>): Map<string, APIService> {
  const builtIn = new Map(allGroupVersions().map((one) => [groupVersionKey(one.group, one.version), one]))
  const all = new Map<string, APIService>()
  for (const source of catalog.sources()) {
    // Computed group-versions have an APIService that belongs to the user.
    if (source.foreign || source.computed) continue
    for (const { group, version } of source.groupVersions) {
      const name = `${version}.${group}`
      if (group === ownGroup || all.has(name)) continue
      const known = builtIn.get(groupVersionKey(group, version))
      const priorities = known ? { groupPriorityMinimum: known.groupPriority, versionPriority: known.versionPriority } : customPriorities
      all.set(name, {
        apiVersion: 'apiregistration.k8s.io/v1',
        kind: 'APIService',
        metadata: { name, labels: { [managedLabel]: known ? onStart : always } },
        spec: { ...(group === '' ? {} : { group }), version, ...priorities },
        status: {},
      })
    }
  }
  return all
}

export type Step =
  | { readonly type: 'nothing' }
  | { readonly type: 'create'; readonly object: APIService }
  | { readonly type: 'update'; readonly object: Frozen<APIService>; readonly spec: APIService['spec'] }
  | { readonly type: 'delete'; readonly object: Frozen<APIService> }

const nothing: Step = { type: 'nothing' }

/** Upstream's table of checkAPIService. `synced`: once before since the start; `atStart`: the object was there when we started. */
export function planOf(
  current: Frozen<APIService> | undefined,
  desired: APIService | undefined,
  { synced, atStart }: { readonly synced: boolean; readonly atStart: boolean },
): Step {
  const managed = current?.metadata.labels?.[managedLabel]
  if (desired?.metadata.labels?.[managedLabel] === onStart && synced) return nothing
  if (!current) return desired ? { type: 'create', object: desired } : nothing
  if (managed !== onStart && managed !== always) return nothing
  if (managed === onStart && (!atStart || synced)) return nothing
  if (!desired) return { type: 'delete', object: current }
  return deepEqual(current.spec, desired.spec) ? nothing : { type: 'update', object: current, spec: desired.spec }
}

async function carryOut(transport: Transport, step: Step, signal: AbortSignal): Promise<void> {
  if (step.type === 'nothing') return
  try {
    if (step.type === 'create') await transport.request({ method: 'POST', path, body: step.object }, signal)
    else {
      const at = `${path}/${step.object.metadata.name}`
      const preconditions = { uid: step.object.metadata.uid }
      if (step.type === 'delete')
        await transport.request({ method: 'DELETE', path: at, body: { kind: 'DeleteOptions', apiVersion: 'v1', preconditions } }, signal)
      else await transport.request({ method: 'PUT', path: at, body: { ...step.object, spec: step.spec } }, signal)
    }
  } catch (error) {
    // Changed meanwhile: the change's event queues it again.
    if (!isStatus(error, 'AlreadyExists') && !isStatus(error, 'NotFound') && !isStatus(error, 'Conflict')) throw error
  }
}
