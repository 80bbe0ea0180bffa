/**
 * Keeps the status of CustomResourceDefinitions (L3): accepts names, sets Established and NonStructuralSchema, and finishes deletions.
 * Decisions are ./conditions.ts; this file writes them, through the API like any other client.
 * Upstream: the controllers of apiextensions-apiserver; the five seconds before Established are for several servers at once and left out.
 */
import type { CustomResourceDefinition } from '#api/gen/types/apiextensions.v1'
import type { KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import { deepCopy } from '#base/frozen'
import type { Logger } from '#base/log'
import type { Transport } from '#client/transport'
import type { ObjectReader } from '../core/objectReader.ts'
import { plannedStatus } from './conditions.ts'
import { cleanupFinalizer, type Definition, definitions } from './definitions.ts'

export interface DefinitionControllerDeps {
  readonly reader: ObjectReader
  readonly transport: Transport
  readonly clock: Clock
  readonly log: Logger
  /** Deletes all instances of a definition. @returns the definition's status after it */
  cleanUp(definition: Definition, signal: AbortSignal): Promise<CustomResourceDefinition['status']>
}

const path = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const retryMs = 1_000

/** Runs until the signal aborts. */
export async function keepDefinitions(deps: DefinitionControllerDeps, signal: AbortSignal): Promise<void> {
  const { reader } = deps
  let wake = () => {}
  const dirty = new Set<string>()
  const add = (name: string) => {
    dirty.add(name)
    wake()
  }
  const groupMates = ({ spec, metadata }: Definition) =>
    (reader.list<KubeObject>(definitions) as unknown as Definition[]).filter(
      (other) => other.spec.group === spec.group && other.metadata.name !== metadata.name,
    )
  const stop = reader.onChange<KubeObject>(definitions, ({ type, object }) => {
    const definition = object as unknown as Definition
    add(definition.metadata.name ?? '')
    // A name may have become free.
    if (type !== 'ADDED') for (const other of groupMates(definition)) if (awaitsNames(other)) add(other.metadata.name ?? '')
  })
  signal.addEventListener('abort', () => wake(), { once: true })
  for (const { metadata } of reader.list<KubeObject>(definitions)) add(metadata.name ?? '')
  const cleanings = new Cleanings(deps, signal)
  while (!signal.aborted) {
    const [name] = dirty
    if (name === undefined) {
      await new Promise<void>((resolve) => {
        wake = resolve
      })
      continue
    }
    dirty.delete(name)
    const definition = reader.get<KubeObject>(definitions, '', name) as Definition | undefined
    if (!definition) continue
    if (definition.metadata.deletionTimestamp) cleanings.start(definition)
    else {
      const status = plannedStatus(definition, groupMates(definition), deps.clock.now())
      if (status) await writeStatus(deps, definition, { status }, signal).catch((error) => retryLater(deps, () => add(name), error, name, signal))
    }
  }
  stop()
  await cleanings.finished()
}

function awaitsNames({ status }: Definition): boolean {
  return status.conditions?.some(({ type, status: value }) => type === 'NamesAccepted' && value === 'False') ?? false
}

function retryLater({ clock, log }: DefinitionControllerDeps, retry: () => void, error: unknown, name: string, signal: AbortSignal): void {
  if (signal.aborted) return
  log.error(error, 'Keeping a custom resource definition failed', { customResourceDefinition: name })
  clock.sleep(retryMs, signal).then(retry, () => undefined)
}

interface Change {
  readonly status: CustomResourceDefinition['status']
  readonly finalizers?: readonly string[] | undefined
}

/** A newer write by another client wins: its change calls this function again. */
async function writeStatus({ transport }: DefinitionControllerDeps, definition: Definition, change: Change, signal: AbortSignal): Promise<void> {
  const body = deepCopy<CustomResourceDefinition>(definition)
  body.status = change.status
  if (change.finalizers) body.metadata.finalizers = [...change.finalizers]
  try {
    await transport.request({ method: 'PUT', path: `${path}/${definition.metadata.name}/status`, body }, signal)
  } catch (error) {
    if (!isStatus(error, 'Conflict') && !isStatus(error, 'NotFound')) throw error
  }
}

/** Pending deletions: each waits for its instances, without delaying other definitions. */
class Cleanings {
  readonly #deps: DefinitionControllerDeps
  readonly #signal: AbortSignal
  readonly #running = new Map<string, Promise<void>>()

  constructor(deps: DefinitionControllerDeps, signal: AbortSignal) {
    this.#deps = deps
    this.#signal = signal
  }

  start(definition: Definition): void {
    const { uid = '' } = definition.metadata
    if (!definition.metadata.finalizers?.includes(cleanupFinalizer) || this.#running.has(uid)) return
    this.#running.set(
      uid,
      this.#clean(definition.metadata.name ?? '', uid).finally(() => this.#running.delete(uid)),
    )
  }

  async finished(): Promise<void> {
    await Promise.all(this.#running.values())
  }

  async #clean(name: string, uid: string): Promise<void> {
    const { reader, clock, log } = this.#deps
    while (!this.#signal.aborted) {
      const definition = reader.get<KubeObject>(definitions, '', name) as Definition | undefined
      if (definition?.metadata.uid !== uid || !definition.metadata.finalizers?.includes(cleanupFinalizer)) return
      try {
        const status = await this.#deps.cleanUp(definition, this.#signal)
        const current = reader.get<KubeObject>(definitions, '', name) as Definition | undefined
        if (current?.metadata.uid !== uid) return
        const finalizers = current.metadata.finalizers?.filter((one) => one !== cleanupFinalizer) ?? []
        await writeStatus(this.#deps, current, { status, finalizers }, this.#signal)
      } catch (error) {
        if (this.#signal.aborted) return
        log.error(error, 'Deleting the instances of a custom resource definition failed', { customResourceDefinition: name })
        await clock.sleep(retryMs, this.#signal).catch(() => undefined)
      }
    }
  }
}
