/** The kinds that random histories are made of: how to make, change and spoil an object of each, and what selectors can see of it. */
import type { KubeObject } from '#api/machinery/meta'
import type { Chance } from '../fuzz/chance.ts'

// biome-ignore lint/suspicious/noExplicitAny: tests look into free-form objects
export type Any = any

export interface FieldChoice {
  readonly text: string
  matches(object: Any): boolean
}

export interface HistoryKind {
  readonly resource: string
  readonly apiVersion: string
  readonly kind: string
  /** Prefix of its keys in the store. */
  readonly prefix: string
  readonly path: string
  /** Whether metadata.generation counts the changes of its spec. */
  readonly counts: boolean
  /** Whether an update may leave its resourceVersion out. */
  readonly unconditional: boolean
  /** Whether it knows strategic merge. */
  readonly strategic: boolean
  /** The name of the field that `change` sets, as in managedFields. */
  readonly changed: string
  /** What an object has beyond its metadata. */
  make(mark: number, chance: Chance): object
  /** Changes the desired state, to something that was never there before. */
  change(object: Any, mark: number): void
  /** The same as a merge patch or an apply configuration. */
  patch(mark: number): object
  /** Changes the status likewise; absent: it has none. */
  readonly changeStatus?: ((object: Any, mark: number, chance: Chance) => void) | undefined
  /** Makes it invalid. */
  spoil(object: Any): void
  readonly fields: readonly FieldChoice[]
}

const names: readonly FieldChoice[] = [
  { text: 'metadata.name=n1', matches: ({ metadata }) => metadata.name === 'n1' },
  { text: 'metadata.name!=n1', matches: ({ metadata }) => metadata.name !== 'n1' },
  { text: 'metadata.namespace=b', matches: ({ metadata }) => metadata.namespace === 'b' },
]
const image = (mark: number) => `image:${mark}`
const podSpec = (mark: number) => ({ containers: [{ name: 'c', image: image(mark) }] })

const configMap: HistoryKind = {
  resource: 'configmaps',
  apiVersion: 'v1',
  kind: 'ConfigMap',
  prefix: '/registry/configmaps/',
  path: '/api/v1',
  counts: false,
  unconditional: true,
  strategic: true,
  changed: 'f:mark',
  make: (mark) => ({ data: { mark: String(mark) } }),
  change: (object, mark) => {
    object.data = { mark: String(mark) }
  },
  patch: (mark) => ({ data: { mark: String(mark) } }),
  spoil: (object) => {
    object.data = { 'no key!': 'x' }
  },
  fields: names,
}

const pod: HistoryKind = {
  resource: 'pods',
  apiVersion: 'v1',
  kind: 'Pod',
  prefix: '/registry/pods/',
  path: '/api/v1',
  counts: true,
  unconditional: true,
  strategic: true,
  changed: 'f:image',
  make: (mark, chance) => ({ spec: { ...podSpec(mark), ...(chance.once(3) ? {} : { nodeName: chance.pick(['node-1', 'node-2']) }) } }),
  change: (object, mark) => {
    object.spec.containers[0].image = image(mark)
  },
  patch: (mark) => ({ spec: podSpec(mark) }),
  changeStatus: (object, mark, chance) => {
    object.status = { ...object.status, message: String(mark), phase: chance.pick(['Pending', 'Running', 'Succeeded', 'Failed']) }
  },
  spoil: (object) => {
    object.spec.containers[0].image = ''
  },
  fields: [
    ...names,
    { text: 'spec.nodeName=node-1', matches: ({ spec }) => spec.nodeName === 'node-1' },
    { text: 'spec.nodeName=', matches: ({ spec }) => !spec.nodeName },
    { text: 'status.phase=Running', matches: ({ status }) => status.phase === 'Running' },
    { text: 'status.phase!=Running,spec.nodeName=node-2', matches: ({ spec, status }) => status.phase !== 'Running' && spec.nodeName === 'node-2' },
  ],
}

const deployment: HistoryKind = {
  resource: 'deployments',
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  prefix: '/registry/deployments/',
  path: '/apis/apps/v1',
  counts: true,
  unconditional: true,
  strategic: true,
  changed: 'f:replicas',
  make: (mark) => ({
    spec: { replicas: mark, selector: { matchLabels: { app: 'x' } }, template: { metadata: { labels: { app: 'x' } }, spec: podSpec(0) } },
  }),
  change: (object, mark) => {
    object.spec.replicas = mark
  },
  patch: (mark) => ({ spec: { replicas: mark } }),
  changeStatus: (object, mark) => {
    object.status = { replicas: mark }
  },
  spoil: (object) => {
    object.spec.replicas = -1
  },
  fields: names,
}

const colors = ['red', 'green', 'blue']

const widget: HistoryKind = {
  resource: 'widgets',
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  prefix: '/registry/example.com/widgets/',
  path: '/apis/example.com/v1',
  counts: true,
  unconditional: false,
  strategic: false,
  changed: 'f:size',
  make: (mark, chance) => ({ spec: { size: mark, color: chance.pick(colors) } }),
  change: (object, mark) => {
    object.spec = { size: mark, color: colors[mark % colors.length] }
  },
  patch: (mark) => ({ spec: { size: mark, color: colors[mark % colors.length] } }),
  changeStatus: (object, mark) => {
    object.status = { mark }
  },
  spoil: (object) => {
    object.spec.size = -1
  },
  fields: [...names, { text: 'spec.color=red', matches: ({ spec }) => spec?.color === 'red' }],
}

export const kinds: readonly HistoryKind[] = [configMap, pod, deployment, widget]

/** The definition behind `widget`. */
export const widgets = {
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced' as const,
    names: { plural: 'widgets', kind: 'Widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        selectableFields: [{ jsonPath: '.spec.color' }],
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties: { size: { type: 'integer', minimum: 0 }, color: { type: 'string' } } },
              status: { type: 'object', properties: { mark: { type: 'integer' } } },
            },
          },
        },
      },
    ],
  },
}

export const namespaces = ['a', 'b']
const labels: readonly (readonly [text: string, matches: (label: string | undefined) => boolean])[] = [
  ['team=x', (label) => label === 'x'],
  ['team!=x', (label) => label !== 'x'],
  ['team in (x,y)', (label) => label === 'x' || label === 'y'],
  ['!team', (label) => label === undefined],
]

/** What a list or a watch asks for. */
export interface Selected {
  readonly kind: HistoryKind
  readonly namespace: string | undefined
  readonly query: Readonly<Record<string, string>>
  matches(object: Any): boolean
}

export function randomSelection(chance: Chance): Selected {
  const kind = chance.pick(kinds)
  const namespace = chance.once(3) ? chance.pick(namespaces) : undefined
  const label = chance.once(3) ? chance.pick(labels) : undefined
  const field = chance.once(3) ? chance.pick(kind.fields) : undefined
  return {
    kind,
    namespace,
    query: { ...(label ? { labelSelector: label[0] } : {}), ...(field ? { fieldSelector: field.text } : {}) },
    matches: (object) =>
      (namespace === undefined || object.metadata.namespace === namespace) &&
      (label === undefined || label[1](object.metadata.labels?.team)) &&
      (field === undefined || field.matches(object)),
  }
}

export function collectionPath(kind: HistoryKind, namespace?: string): string {
  return namespace === undefined ? `${kind.path}/${kind.resource}` : `${kind.path}/namespaces/${namespace}/${kind.resource}`
}

export function keyOf({ metadata }: Pick<KubeObject, 'metadata'>): string {
  return `${metadata.namespace}/${metadata.name}`
}
