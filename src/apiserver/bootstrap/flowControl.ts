/**
 * Keeps the built-in priority levels and flow schemas (L3): creates missing ones, restores those that are mandatory or marked for automatic updates,
 * and deletes those of older versions. It reads the watch cache and writes only differences.
 * Upstream: pkg/registry/flowcontrol/{rest,ensurer} (v1.36).
 */
import type { FlowSchema, PriorityLevelConfiguration } from '#api/gen/types/flowcontrol.v1'
import {
  autoUpdateAnnotation,
  mandatoryFlowSchemas,
  mandatoryPriorityLevels,
  suggestedFlowSchemas,
  suggestedPriorityLevels,
} from '#api/kinds/flowcontrol/bootstrapObjects'
import { semanticEqual } from '#api/machinery/equality'
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { ApiRequest, Transport } from '#client/transport'
import type { ObjectReader } from '../core/objectReader.ts'

type Configuration = FlowSchema | PriorityLevelConfiguration

interface Resource {
  readonly resource: string
  readonly mandatory: readonly Configuration[]
  readonly suggested: readonly Configuration[]
}

const group = 'flowcontrol.apiserver.k8s.io'
const query = { fieldManager: 'api-priority-and-fairness-config-producer-v1' }
const resources: readonly Resource[] = [
  { resource: 'flowschemas', mandatory: mandatoryFlowSchemas, suggested: suggestedFlowSchemas },
  { resource: 'prioritylevelconfigurations', mandatory: mandatoryPriorityLevels, suggested: suggestedPriorityLevels },
]

/** Objects that were found right: they are the cache's own and never change, so that looking once is enough. */
export type FoundRight = WeakSet<Frozen<Configuration>>

/** Creates or corrects all of them once. @throws Status of a failed write, unless another writer was faster. */
export async function ensureFlowControl(reader: ObjectReader, transport: Transport, right: FoundRight, signal: AbortSignal): Promise<void> {
  await Promise.all(
    resources.flatMap(({ resource, mandatory, suggested }) => {
      const stored = new Map(reader.list<Configuration>({ group, resource }).map((object) => [object.metadata.name ?? '', object]))
      const path = `/apis/${group}/v1/${resource}`
      return plan({ mandatory, suggested, stored, path, right }).map((request) => transport.request(request, signal).catch(lostRace))
    }),
  )
}

interface Wanted {
  readonly mandatory: readonly Configuration[]
  readonly suggested: readonly Configuration[]
  readonly stored: ReadonlyMap<string, Frozen<Configuration>>
  readonly path: string
  readonly right: FoundRight
}

function plan({ mandatory, suggested, stored, path, right }: Wanted): ApiRequest[] {
  const ensureOne = (object: Configuration, isMandatory: boolean): ApiRequest[] => {
    const found = stored.get(object.metadata.name ?? '')
    if (found && right.has(found)) return []
    const requests = ensure(object, found, isMandatory, path)
    if (found && requests.length === 0) right.add(found)
    return requests
  }
  const wanted = new Set([...mandatory, ...suggested].map(({ metadata }) => metadata.name))
  return [
    ...suggested.flatMap((object) => ensureOne(object, false)),
    ...mandatory.flatMap((object) => ensureOne(object, true)),
    ...[...stored.values()].filter((object) => !wanted.has(object.metadata.name) && markOf(object) === true).map((object) => removal(object, path)),
  ]
}

function ensure(wanted: Configuration, found: Frozen<Configuration> | undefined, isMandatory: boolean, path: string): ApiRequest[] {
  if (!found) return [{ method: 'POST', path, query, body: wanted }]
  // Without the annotation, generation 1 means that the object is unchanged since its creation.
  const updates = isMandatory || (markOf(found) ?? found.metadata.generation === 1)
  const spec = updates ? specFor(wanted, found) : found.spec
  if (markOf(found) === updates && semanticEqual(spec, found.spec)) return []
  const metadata = { ...found.metadata, annotations: { ...found.metadata.annotations, [autoUpdateAnnotation]: String(updates) } }
  return [{ method: 'PUT', path: `${path}/${found.metadata.name}`, query, body: { ...found, metadata, spec } }]
}

/** The spec to write; an operator may change what the exempt level lends. */
function specFor(wanted: Configuration, found: Frozen<Configuration>): unknown {
  const exempt = wanted.kind === 'PriorityLevelConfiguration' && (found as Frozen<PriorityLevelConfiguration>).spec?.exempt
  return exempt && wanted.metadata.name === 'exempt' ? { ...wanted.spec, exempt } : wanted.spec
}

function markOf({ metadata }: Frozen<Configuration>): boolean | undefined {
  const mark = metadata.annotations?.[autoUpdateAnnotation]
  if (mark === undefined) return undefined
  return /^(1|t|T|true|TRUE|True)$/.test(mark) ? true : /^(0|f|F|false|FALSE|False)$/.test(mark) ? false : undefined
}

function removal({ metadata }: Frozen<Configuration>, path: string): ApiRequest {
  const { uid, resourceVersion } = metadata
  return { method: 'DELETE', path: `${path}/${metadata.name}`, body: { preconditions: { uid, resourceVersion } } }
}

function lostRace(error: unknown): void {
  if (!isStatus(error, 'AlreadyExists') && !isStatus(error, 'Conflict') && !isStatus(error, 'NotFound')) throw error
}
