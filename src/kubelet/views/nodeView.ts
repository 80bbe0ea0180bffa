/** The parts of a view of node.skiff.dev (L3): its kind for the API server, its computation for the kubelet, and helpers to write its schema. */
import { schemaOfDefinition } from '#api/schema/builtIn'
import type { Field, Schema } from '#api/schema/schema'
import { messageOf } from '#base/messageOf'
import type { KubeletView } from '../core/kubeletView.ts'

export interface NodeView {
  /** Plural; also the page's name below /views/ of the kubelet's port. */
  readonly resource: string
  readonly kind: string
  /** With field numbers for protobuf. Its fields are `metadata`, `error` and the members that `compute` returns. */
  readonly schema: Schema
  /** The columns of tables, as in api/kinds/defineKind.ts. Their functions are given objects of this kind. */
  readonly columns: readonly unknown[]
  /** What the OpenAPI documents say: about the kind under '', about its fields under their names. */
  readonly texts: Readonly<Record<string, string>>
  readonly parts: readonly { readonly schema: Schema; readonly texts: Readonly<Record<string, string>> }[]
  /** Query parameters that the API server passes on. */
  readonly parameters?: readonly string[] | undefined
  /** The members of the object. Bounded by what the node may hold. */
  compute(view: KubeletView, query: URLSearchParams): object | Promise<object>
}

export const text: Schema = { type: 'string' }

export function field(name: string, number: number, schema: Schema, isRequired = true): Field {
  return { name, schema, required: isRequired, protobuf: { number, type: '' } }
}

export function struct(name: string, fields: readonly Field[]): Schema {
  return { type: 'object', definition: `dev.skiff.node.v1alpha1.${name}`, fields: new Map(fields.map((one) => [one.name, one])) }
}

const objectMeta = schemaOfDefinition('io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta')

/** The schema of a view's kind. @param fields with the numbers from 2 */
export function viewSchema(kind: string, fields: readonly Field[]): Schema {
  return struct(kind, [
    { name: 'apiVersion', schema: text, required: false },
    { name: 'kind', schema: text, required: false },
    field('metadata', 1, objectMeta, false),
    ...fields,
    field('error', fields.length + 2, text, false),
  ])
}

export function listOf(element: Schema): Schema {
  return { type: 'array', element }
}

export const nameColumn = {
  name: 'Name',
  type: 'string',
  format: 'name',
  value: ({ metadata }: { readonly metadata: { readonly name?: string } }) => metadata.name,
}
export const errorColumn = { name: 'Error', type: 'string', value: ({ error = '' }: { readonly error?: string }) => error }
export const errorText = 'Why the kubelet did not answer.'

/** As long as a reason of the API server's. */
const mostNote = 256

/** For views with a note: what fails on the node is a reason, and no failure of the kubelet. */
export function withNote(compute: NodeView['compute']): NodeView['compute'] {
  return async (view, query) => {
    try {
      return await compute(view, query)
    } catch (error) {
      return { note: messageOf(error).slice(0, mostNote) }
    }
  }
}

/** Why a part of the network is not shown. @param missing what does not run in this node's agent */
export function networkNote(view: KubeletView, missing: string): string {
  return view.runtime.usesHost ? `${missing} runs in the agent of this node` : 'a simulated node has no network'
}
