/**
 * LimitRanger (L3): gives containers a namespace's default requests and limits, and refuses pods and claims outside its minimum, maximum and ratio.
 * Upstream: plugin/pkg/admission/limitranger (v1.36).
 */
import type { Container, LimitRange, PersistentVolumeClaim, Pod } from '#api/gen/types/core.v1'
import type { Frozen } from '#api/machinery/meta'
import { addQuantities, canonicalQuantity, compareQuantities, formatQuantity, maxQuantity, quantityAsNumber } from '#api/machinery/quantity'
import { bareMap, emptyMap } from '#base/bareMap'
import type { ObjectReader } from '../../core/objectReader.ts'
import { aggregateReasons } from '../../core/reasons.ts'
import type { AdmissionAttributes, AdmissionPlugin } from '../admission.ts'
import { isResource, isSubresource, objectOf, refuse } from '../attributes.ts'

type Amounts = Readonly<Record<string, string>>
type Item = Frozen<LimitRange>['spec']['limits'][number]

const annotation = 'kubernetes.io/limit-ranger'
const podLevel: ReadonlySet<string> = new Set(['cpu', 'memory'])

export function limitRanger(reader: ObjectReader): AdmissionPlugin {
  const rangesFor = ({ namespace }: AdmissionAttributes) => reader.list<LimitRange>({ group: '', resource: 'limitranges' }, namespace)
  return {
    name: 'LimitRanger',
    handles: (operation) => operation === 'CREATE' || operation === 'UPDATE',
    admit(attributes) {
      if (!settlesResources(attributes)) return
      for (const range of rangesFor(attributes)) setDefaults(objectOf<Pod>(attributes), itemsOf(range, 'Container'))
    },
    validate(attributes) {
      const isPod = settlesResources(attributes)
      if (!isPod && (!isResource(attributes, '', 'persistentvolumeclaims') || isGoing(attributes))) return
      for (const range of rangesFor(attributes)) {
        const errors = isPod ? podViolations(objectOf<Pod>(attributes), range) : claimViolations(objectOf<PersistentVolumeClaim>(attributes), range)
        if (errors.length > 0) throw refuse(attributes, aggregateReasons(errors))
      }
    },
  }
}

/** True for a pod's creation and resize: other requests do not change its resources. */
function settlesResources(attributes: AdmissionAttributes): boolean {
  if (attributes.operation === 'CREATE') return isResource(attributes, '', 'pods')
  return isSubresource(attributes, '', 'pods', 'resize') && !isGoing(attributes)
}

function isGoing({ oldObject }: AdmissionAttributes): boolean {
  return oldObject?.metadata.deletionTimestamp !== undefined
}

function itemsOf({ spec }: Frozen<LimitRange>, type: string): readonly Item[] {
  return (spec?.limits ?? []).filter((item) => item.type === type)
}

function podViolations(pod: Pod, { spec }: Frozen<LimitRange>): string[] {
  const all = [...pod.spec.containers, ...(pod.spec.initContainers ?? [])]
  return (spec?.limits ?? []).flatMap((item) => {
    if (item.type === 'Container') return all.flatMap(({ resources }) => violations(item, resources?.requests ?? {}, resources?.limits ?? {}))
    return item.type === 'Pod' ? violations(item, podTotal(pod, 'requests'), podTotal(pod, 'limits')) : []
  })
}

function claimViolations({ spec }: PersistentVolumeClaim, range: Frozen<LimitRange>): string[] {
  const requests = spec?.resources?.requests ?? {}
  return itemsOf(range, 'PersistentVolumeClaim').flatMap(({ type, min = {}, max = {} }) => [
    ...Object.entries(min).flatMap(([name, least]) => belowMinimum(name, type, least, requests[name], undefined)),
    ...Object.entries(max).flatMap(([name, most]) => aboveMaximumRequest(name, type, most, requests[name])),
  ])
}

/** Sets defaults and annotates them on the pod, with upstream's text; with several ranges, those of the last one. */
function setDefaults(pod: Pod, items: readonly Item[]): void {
  const notes: string[] = []
  const apply = (container: Container, what: string) => {
    for (const item of items) {
      const requests = fillIn(container, 'requests', item.defaultRequest)
      const limits = fillIn(container, 'limits', item.default)
      if (requests.length > 0) notes.push(`${requests.join(', ')} request for ${what} ${container.name}`)
      if (limits.length > 0) notes.push(`${limits.join(', ')} limit for ${what} ${container.name}`)
    }
  }
  for (const container of pod.spec.containers) apply(container, 'container')
  for (const container of pod.spec.initContainers ?? []) apply(container, 'init container')
  if (notes.length > 0) pod.metadata.annotations = { ...pod.metadata.annotations, [annotation]: `LimitRanger plugin set: ${notes.join('; ')}` }
}

/** Adds the missing amounts; returns their names in order. */
function fillIn(container: Container, kind: 'requests' | 'limits', defaults: Amounts | undefined): string[] {
  const present = container.resources?.[kind] ?? {}
  const missing = Object.keys(defaults ?? {})
    .filter((name) => present[name] === undefined)
    .sort()
  if (missing.length === 0) return missing
  const added = Object.fromEntries(missing.map((name) => [name, defaults?.[name] ?? '0']))
  container.resources = { ...container.resources, [kind]: { ...present, ...added } }
  return missing
}

function violations({ type, min = {}, max = {}, maxLimitRequestRatio = {} }: Item, requests: Amounts, limits: Amounts): string[] {
  return [
    ...Object.entries(min).flatMap(([name, least]) => belowMinimum(name, type, least, requests[name], limits[name])),
    ...Object.entries(max).flatMap(([name, most]) => aboveMaximum(name, type, most, requests[name], limits[name])),
    ...Object.entries(maxLimitRequestRatio).flatMap(([name, ratio]) => aboveRatio(name, type, ratio, requests[name], limits[name])),
  ]
}

function belowMinimum(name: string, type: string, least: string, request: string | undefined, limit: string | undefined): string[] {
  const head = `minimum ${name} usage per ${type} is ${canonicalQuantity(least)}`
  if (request === undefined) return [`${head}.  No request is specified`]
  if (compareQuantities(request, least) < 0) return [`${head}, but request is ${canonicalQuantity(request)}`]
  if (limit !== undefined && compareQuantities(limit, least) < 0) return [`${head}, but limit is ${canonicalQuantity(limit)}`]
  return []
}

function aboveMaximum(name: string, type: string, most: string, request: string | undefined, limit: string | undefined): string[] {
  const head = `maximum ${name} usage per ${type} is ${canonicalQuantity(most)}`
  if (limit === undefined) return [`${head}.  No limit is specified`]
  if (compareQuantities(limit, most) > 0) return [`${head}, but limit is ${canonicalQuantity(limit)}`]
  if (request !== undefined && compareQuantities(request, most) > 0) return [`${head}, but request is ${canonicalQuantity(request)}`]
  return []
}

function aboveMaximumRequest(name: string, type: string, most: string, request: string | undefined): string[] {
  const head = `maximum ${name} usage per ${type} is ${canonicalQuantity(most)}`
  if (request === undefined) return [`${head}.  No request is specified`]
  return compareQuantities(request, most) > 0 ? [`${head}, but request is ${canonicalQuantity(request)}`] : []
}

function aboveRatio(name: string, type: string, ratio: string, request: string | undefined, limit: string | undefined): string[] {
  const head = `${name} max limit to request ratio per ${type} is ${canonicalQuantity(ratio)}`
  const requested = quantityAsNumber(request ?? '0')
  const limited = quantityAsNumber(limit ?? '0')
  if (requested === 0) return [`${head}, but no request is specified or request is 0`]
  if (limited === 0) return [`${head}, but no limit is specified or limit is 0`]
  const actual = limited / requested
  return actual > quantityAsNumber(ratio) ? [`${head}, but provided ratio is ${actual.toFixed(6)}`] : []
}

/**
 * The larger of all containers and sidecars together, and the largest step of the start (an init container plus the sidecars before it). The
 * pod's own resources replace these.
 */
function podTotal(pod: Pod, kind: 'requests' | 'limits'): Record<string, string> {
  const sidecars: Record<string, string> = emptyMap()
  const steps: Record<string, string> = emptyMap()
  for (const { resources, restartPolicy } of pod.spec.initContainers ?? []) {
    for (const [name, amount] of Object.entries(resources?.[kind] ?? {})) {
      const together = formatQuantity(addQuantities(sidecars[name] ?? '0', amount))
      if (restartPolicy === 'Always') sidecars[name] = together
      else steps[name] = formatQuantity(maxQuantity(steps[name] ?? '0', together))
    }
  }
  const total = bareMap({ ...sidecars })
  for (const { resources } of pod.spec.containers) {
    for (const [name, amount] of Object.entries(resources?.[kind] ?? {})) total[name] = formatQuantity(addQuantities(total[name] ?? '0', amount))
  }
  for (const [name, amount] of Object.entries(steps)) total[name] = formatQuantity(maxQuantity(total[name] ?? '0', amount))
  for (const [name, amount] of Object.entries(pod.spec.resources?.[kind] ?? {})) if (podLevel.has(name)) total[name] = amount
  return total
}
