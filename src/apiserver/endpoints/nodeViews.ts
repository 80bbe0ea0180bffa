/**
 * node.skiff.dev (L3): what the kubelets compute about themselves, as resources with one object per node. Each request asks the kubelets, below /views/ and
 * with the API server's credentials. A kubelet is not trusted: its answer is bounded, alone and together with those of other nodes, and keeps only what the
 * schema of the view has.
 */
import type { ResourceFacts } from '#api/discovery/resources'
import type { Node } from '#api/gen/types/core.v1'
import type { Column } from '#api/kinds/defineKind'
import type { Frozen, KubeObject } from '#api/machinery/meta'
import { notFound } from '#api/machinery/status'
import { schemaOfDefinition } from '#api/schema/builtIn'
import { decode } from '#api/schema/decode'
import type { Schema } from '#api/schema/schema'
import { deadlineScope } from '#base/abortScope'
import type { Clock } from '#base/clock'
import { messageOf } from '#base/messageOf'
import { orAborted } from '#base/orAborted'
import { printable } from '#base/printable'
import { formatTime } from '#base/time'
import type { ComputedGroup, DescribedKind } from '../core/computedResource.ts'
import { turn, withWorkers } from '../core/fairLoop.ts'
import type { ObjectReader } from '../core/objectReader.ts'
import type { KubeletClient } from './kubeletClient.ts'

export interface NodeView extends Pick<DescribedKind, 'schema' | 'texts' | 'parts'> {
  /** Plural; also the page's name below /views/. */
  readonly resource: string
  readonly kind: string
  /** Its objects have a member `error` with the reason why a kubelet did not answer. */
  readonly columns: readonly unknown[]
  /** Query parameters of a GET that the kubelet is given. */
  readonly parameters?: readonly string[] | undefined
}

export interface NodeViewDeps {
  readonly reader: ObjectReader
  readonly kubelets: KubeletClient
  readonly clock: Clock
}

const group = 'node.skiff.dev'
const version = 'v1alpha1'
const nodes = { group: '', resource: 'nodes' }
const workers = 16
const timeoutMs = 5_000
/** Limit for a whole list, shorter than that of the request: nodes that were not asked by then are listed with that reason. */
const listTimeoutMs = 20_000
const limitBytes = 1024 * 1024
/** All answers of one list together; each worker may exceed it by one answer. */
const listBytes = 64 * 1024 * 1024
/**
 * Objects, members and elements in an answer, which has nine for each pod. They bound the time to decode it; in memory, the smallest ones take far more than
 * their text.
 */
const maxValues = 20_000
const bytesOfValue = 100
const maxReasonLength = 256

export function nodeViewGroup(views: readonly NodeView[], deps: NodeViewDeps): ComputedGroup {
  return { group, version, priorities: { groupPriorityMinimum: 100, versionPriority: 10 }, resources: views.map((view) => resourceOf(view, deps)) }
}

interface Answered {
  readonly object: KubeObject
  readonly bytes: number
}

function resourceOf(view: NodeView, deps: NodeViewDeps): ComputedGroup['resources'][number] {
  const nodeOf = (name: string) => deps.reader.get<Node & KubeObject>(nodes, '', name)
  return {
    facts: factsOf(view),
    ...view,
    // Each view's functions are given objects of its own kind alone.
    columns: view.columns as readonly Column<KubeObject>[],
    listKind: `${view.kind}List`,
    listSchema: listSchemaOf(view),
    async get({ name, query, signal }) {
      const node = nodeOf(name)
      if (!node) throw notFound({ group, resource: view.resource }, name)
      const { object } = await ask(view, node, { ...deps, query: queryFor(view, query) }, limitBytes, signal)
      signal.throwIfAborted()
      return object
    },
    async list({ selects, signal }) {
      using whole = deadlineScope({ clock: deps.clock, ms: listTimeoutMs }, signal)
      const selected = deps.reader.list<Node & KubeObject>(nodes).filter(({ metadata }) => selects(metadata))
      const found: KubeObject[] = []
      let left = listBytes
      await withWorkers(selected, workers, async (node, index) => {
        const { object, bytes } = await ask(view, node, deps, Math.min(limitBytes, left), whole.signal)
        signal.throwIfAborted()
        left = Math.max(0, left - bytes)
        found[index] = object
      })
      return found
    },
  }
}

interface AskDeps extends NodeViewDeps {
  /** With its question mark; absent: none. */
  readonly query?: string | undefined
}

function queryFor({ parameters = [] }: NodeView, given: URLSearchParams | undefined): string {
  const pairs = parameters.flatMap((name) => (given?.getAll(name) ?? []).map((value): [string, string] => [name, value]))
  return pairs.length === 0 ? '' : `?${new URLSearchParams(pairs)}`
}

/** The view of a node, or the reason why there is none. */
async function ask(view: NodeView, { metadata }: Frozen<Node & KubeObject>, deps: AskDeps, limit: number, signal: AbortSignal): Promise<Answered> {
  const { name = '', labels } = metadata
  const head = {
    kind: view.kind,
    apiVersion: `${group}/${version}`,
    metadata: { name, creationTimestamp: formatTime(deps.clock.now()), ...(labels ? { labels } : {}) },
  }
  try {
    if (limit === 0) throw new Error('the kubelet was not asked: the answers of other nodes are too large together')
    if (signal.aborted) throw new Error('the kubelet was not asked: other kubelets took too long to answer')
    const { told, bytes } = await read(view, name, deps, limit, signal)
    return { object: { ...head, ...told }, bytes }
  } catch (error) {
    const object: KubeObject & { error: string } = { ...head, error: reasonOf(error) }
    return { object, bytes: 0 }
  }
}

/** @throws Error when the kubelet does not answer in time, or with what is not the view */
async function read(view: NodeView, name: string, { kubelets, clock, query = '' }: AskDeps, limit: number, signal: AbortSignal) {
  using scope = deadlineScope({ clock, ms: timeoutMs }, signal)
  const page = kubelets.get(name, `/views/${view.resource}${query}`, { limitBytes: limit, signal: scope.signal })
  const { status, body } = await orAborted(page, scope.signal)
  if (status !== 200) throw new Error(`the kubelet answered ${status}`)
  // Answers that arrive together are decoded in several turns of the event loop.
  await turn()
  const values = valuesIn(body)
  if (values > maxValues) throw new Error(`the answer has more than ${maxValues} values`)
  // The API server says why there is no view, not the kubelet.
  const { metadata: _, apiVersion: __, kind: ___, error: ____, ...told } = decode(JSON.parse(body.toString()), view.schema, asKnown).object
  return { told, bytes: body.length + values * bytesOfValue }
}

const asKnown = { unknown: 'drop', absent: 'keep' } as const

/** An upper bound of the number of values in a JSON text: each but the first follows one of these characters. */
function valuesIn(json: Uint8Array): number {
  let values = 1
  for (let at = 0; at < json.length; at++) {
    const byte = json[at]
    if (byte === comma || byte === brace || byte === bracket) values++
  }
  return values
}

const [comma, brace, bracket] = [',', '{', '['].map((character) => character.charCodeAt(0))

/** The error as one short line: its text may quote the kubelet's answer. */
function reasonOf(error: unknown): string {
  const text = messageOf(error)
  return printable(text.length > maxReasonLength ? `${text.slice(0, maxReasonLength)}...` : text)
}

function factsOf({ resource, kind }: NodeView): ResourceFacts {
  const names = { resource, singular: kind.toLowerCase(), shortNames: [], categories: [] }
  return { group, version, kind, ...names, namespaced: false, verbs: ['get', 'list'], subresources: [] }
}

function listSchemaOf({ schema }: NodeView): Schema {
  const metadata = schemaOfDefinition('io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta')
  const fields = [
    { name: 'apiVersion', schema: { type: 'string' }, required: false },
    { name: 'kind', schema: { type: 'string' }, required: false },
    { name: 'metadata', schema: metadata, required: false, protobuf: { number: 1, type: '' } },
    { name: 'items', schema: { type: 'array', element: schema }, required: true, protobuf: { number: 2, type: '' } },
  ] as const
  return { type: 'object', definition: `${schema.definition}List`, fields: new Map(fields.map((one) => [one.name, one])) }
}
