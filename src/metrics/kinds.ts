/**
 * The kinds of metrics.k8s.io/v1beta1 (L3): NodeMetrics and PodMetrics, their schemas with protobuf's numbers, and what tables show of them.
 * Upstream: k8s.io/metrics/pkg/apis/metrics/v1beta1 (v0.36), metrics-server pkg/api/table.go.
 */
import type { ResourceFacts } from '#api/discovery/resources'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { addQuantities, formatQuantity, quantityOf } from '#api/machinery/quantity'
import { schemaOfDefinition } from '#api/schema/builtIn'
import type { Field, Schema } from '#api/schema/schema'
import { bareMap } from '#base/bareMap'

export const group = 'metrics.k8s.io'
export const version = 'v1beta1'
export const apiVersion = `${group}/${version}`

/** Resource names → quantities. */
export interface ResourceUsage {
  readonly cpu: string
  readonly memory: string
}

export interface ContainerMetrics {
  readonly name: string
  readonly usage: ResourceUsage
}

interface Measured extends KubeObject {
  /** The window ends here. Null: no container has usage. */
  readonly timestamp: string | null
  /** Go's notation of a duration. */
  readonly window: string
}

export interface NodeMetrics extends Measured {
  readonly usage: ResourceUsage
}

export interface PodMetrics extends Measured {
  readonly containers: readonly ContainerMetrics[]
}

const metaV1 = 'io.k8s.apimachinery.pkg.apis.meta.v1'
const own = (kind: string) => `io.k8s.metrics.pkg.apis.${group.split('.')[0]}.${version}.${kind}`

const field = (name: string, number: number, schema: Schema, isRequired = true): Field => ({
  name,
  schema,
  required: isRequired,
  protobuf: { number, type: '' },
})

/** apiVersion and kind travel in the envelope of protobuf, hence without a number. */
const typeMeta: readonly Field[] = ['apiVersion', 'kind'].map((name) => ({ name, schema: { type: 'string' }, required: false }))

function structOf(kind: string, fields: readonly Field[]): Schema {
  return { type: 'object', definition: own(kind), fields: new Map(fields.map((one) => [one.name, one])) }
}

const usageSchema: Schema = { type: 'map', element: schemaOfDefinition('io.k8s.apimachinery.pkg.api.resource.Quantity') }
const containerSchema = structOf('ContainerMetrics', [field('name', 1, { type: 'string' }), field('usage', 2, usageSchema)])

function objectSchema(kind: string, fields: readonly Field[]): Schema {
  const common = [
    field('metadata', 1, schemaOfDefinition(`${metaV1}.ObjectMeta`), false),
    field('timestamp', 2, schemaOfDefinition(`${metaV1}.Time`)),
    field('window', 3, schemaOfDefinition(`${metaV1}.Duration`)),
  ]
  return structOf(kind, [...typeMeta, ...common, ...fields])
}

function listSchema(kind: string, element: Schema): Schema {
  const metadata = field('metadata', 1, schemaOfDefinition(`${metaV1}.ListMeta`), false)
  return structOf(`${kind}List`, [...typeMeta, metadata, field('items', 2, { type: 'array', element })])
}

function facts(kind: string, resource: string, isNamespaced: boolean): ResourceFacts {
  const names = { resource, singular: '', shortNames: [], categories: [] }
  return { group, version, kind, ...names, namespaced: isNamespaced, verbs: ['get', 'list'], subresources: [] }
}

const windowTexts = { timestamp: 'End of the window in which the usage was measured.', window: 'Length of the window in which the usage was measured.' }
const usageText = 'CPU: average over the window, in cores. Memory: the working set at the end of the window, in bytes.'

const nodeSchema = objectSchema('NodeMetrics', [field('usage', 4, usageSchema)])
const podSchema = objectSchema('PodMetrics', [field('containers', 4, { type: 'array', element: containerSchema, listType: 'atomic' })])

/** How a kind's table is laid out: the name, what is used of each resource, the window. */
function columns<T extends Measured>(usageOf: (object: Frozen<T>) => ResourceUsage) {
  const used = (name: 'cpu' | 'memory') => ({ name, type: 'string', format: 'quantity', value: (object: Frozen<T>) => usageOf(object)[name] }) as const
  const all = [
    { name: 'Name', type: 'string', format: 'name', description: 'Name of the resource', value: (object: Frozen<T>) => object.metadata.name },
    used('cpu'),
    used('memory'),
    { name: 'Window', type: 'string', format: 'duration', value: (object: Frozen<T>) => object.window },
  ] as const
  // The table's functions are given objects of this kind alone.
  return all as unknown as readonly { name: string; type: 'string'; format: string; description?: string; value: (object: Frozen<KubeObject>) => string }[]
}

function sumOf(containers: PodMetrics['containers'] | Frozen<PodMetrics>['containers']): ResourceUsage {
  const [first] = containers
  if (first && containers.length === 1) return first.usage
  const sum = (name: 'cpu' | 'memory') =>
    formatQuantity(containers.reduce((total, { usage }) => addQuantities(total, usage[name]), quantityOf(0, name === 'cpu' ? 'DecimalSI' : 'BinarySI')))
  return { cpu: sum('cpu'), memory: sum('memory') }
}

export const nodeMetricsKind = {
  facts: facts('NodeMetrics', 'nodes', false),
  schema: nodeSchema,
  listKind: 'NodeMetricsList',
  listSchema: listSchema('NodeMetrics', nodeSchema),
  columns: columns<NodeMetrics>(({ usage }) => usage),
  texts: bareMap({ '': 'NodeMetrics is what a node uses.', ...windowTexts, usage: usageText }),
} as const

export const podMetricsKind = {
  facts: facts('PodMetrics', 'pods', true),
  schema: podSchema,
  listKind: 'PodMetricsList',
  listSchema: listSchema('PodMetrics', podSchema),
  columns: columns<PodMetrics>(({ containers }) => sumOf(containers)),
  texts: bareMap({ '': 'PodMetrics is what the containers of a pod use.', ...windowTexts, containers: 'All were measured within the window.' }),
  parts: [
    { schema: containerSchema, texts: bareMap({ '': 'ContainerMetrics is what a container uses.', name: 'Name in the spec of the pod.', usage: usageText }) },
  ],
} as const
