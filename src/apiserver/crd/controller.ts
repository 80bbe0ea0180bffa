/**
 * Keeps the status of CustomResourceDefinitions (L3): accepts names, sets Established and NonStructuralSchema, and finishes deletions.
 * Decisions are ./conditions.ts; this file writes them, through the API like any other client.
 * Upstream: the controllers of apiextensions-apiserver; the five seconds before Established are for several servers at once and left out.
 */
import type { CustomResourceDefinition } from '#api/gen/types/apiextensions.v1'
import { schemaViolations } from '#api/kinds/apiextensions/structuralRules'
import type { KubeObject } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Clock } from '#base/clock'
import type { Logger } from '#base/log'
import { compilingInSteps } from '#cel/compilingInSteps'
import type { Transport } from '#client/transport'
import { inFewSteps } from '../core/fairLoop.ts'
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
  const violations = keptViolations()
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
    if (!definition) {
      violations.forget(name)
      continue
    }
    if (definition.metadata.deletionTimestamp) cleanings.start(definition)
    else {
      const found = await violations.of(definition)
      const status = plannedStatus(definition, groupMates(definition), deps.clock.now(), found)
      if (status) await writeStatus(deps, definition, { status }, signal).catch((error) => retryLater(deps, () => add(name), error, name, signal))
    }
  }
  stop()
  await cleanings.finished()
}

/** Each change of a status brings its definition back, with the same schemas: they are looked through once per generation, as upstream does. */
function keptViolations(): { of(definition: Definition): Promise<string | undefined>; forget(name: string): void } {
  const known = new Map<string, { readonly of: string; readonly violations: string | undefined }>()
  return {
    async of({ metadata, spec }) {
      const { name = '', uid, generation } = metadata
      const of = `${uid}/${generation}`
      const there = known.get(name)
      if (there?.of === of) return there.violations
      const violations = await inFewSteps(compilingInSteps(() => schemaViolations(spec)))
      known.set(name, { of, violations })
      return violations
    },
    forget: (name) => void known.delete(name),
  }
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
  const { finalizers } = change
  const metadata = finalizers ? { ...definition.metadata, finalizers } : definition.metadata
  const body = { ...definition, metadata, status: change.status }
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
