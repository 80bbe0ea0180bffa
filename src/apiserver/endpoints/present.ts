/**
 * Puts results of the registry into the form that was negotiated (L3): cached bytes as they are, tables, metadata alone.
 * Upstream: apiserver/pkg/endpoints/handlers/response.go.
 */

import type { ResourceFacts } from '#api/discovery/resources'
import type { Column } from '#api/kinds/defineKind'
import { stringifyExactly } from '#api/machinery/exactIntegers'
import { type Frozen, groupVersion, type KubeList, type KubeObject } from '#api/machinery/meta'
import { badRequest } from '#api/machinery/status'
import { schemaFor } from '#api/schema/builtIn'
import { withNils } from '#api/schema/nils'
import type { Schema } from '#api/schema/schema'
import { type IncludeObject, partialObjectMetadata, tableRow, toTable } from '#api/tables/table'
import type { Answer, WatchForm } from '../core/answer.ts'
import { inSlices } from '../core/fairLoop.ts'
import { type AnswerForm, encodingOf, negotiate } from '../core/negotiate.ts'
import type { CachedObject, ServerRequest } from '../core/request.ts'
import type { ListResult } from '../registry/list.ts'
import type { ServedResource } from '../registry/storedResource.ts'
import { encodeLongList, type LongList, longListItems } from './longLists.ts'

export interface Presenter {
  object(object: CachedObject, status: number): Answer
  list(result: ListResult): Answer | Promise<Answer>
  watchForm(): WatchForm & { readonly first?: WatchForm }
  readonly form: AnswerForm
}

export function createPresenter(request: ServerRequest, served: ServedResource, nowMs: () => number): Presenter {
  const collection = request.info?.verb === 'list'
  // Custom resources have no protobuf form.
  const hasProtobuf = schemaFor(served.group, served.version, served.kind) !== undefined
  const form = negotiate(request, ['Table', collection ? 'PartialObjectMetadataList' : 'PartialObjectMetadata'], hasProtobuf)
  if (form.as === 'Table') return tablePresenter(request, served, form, nowMs)
  if (form.as) return metadataPresenter(served, form)
  return plainPresenter(served, form)
}

interface PresentedKind {
  readonly columns: readonly Column<KubeObject>[]
  /** For protobuf, if the kind is no part of Kubernetes' own API. */
  readonly schema?: Schema | undefined
}

/** An object that is computed for the request, in the negotiated form. */
export function presentOne(request: ServerRequest, form: AnswerForm, object: KubeObject, { columns, schema }: PresentedKind, nowMs: number): Answer {
  const apiVersion = `meta.k8s.io/${form.metaVersion ?? 'v1'}`
  const whole = object as Frozen<KubeObject>
  const value =
    form.as === 'Table'
      ? { ...toTable([whole], columns, nowMs, includeOf(request), { resourceVersion: object.metadata.resourceVersion ?? '' }), apiVersion }
      : form.as
        ? { ...partialObjectMetadata(whole), apiVersion }
        : object
  return { type: 'value', status: 200, value, ...(form.as ? {} : { schema }), ...encodingOf(form) }
}

/**
 * A list of computed objects, in the negotiated form. Their items do not repeat the kind that the list implies. Objects may be large, so that even a short list
 * is made in several turns of the event loop, by time.
 */
export async function presentComputedList(
  request: ServerRequest,
  form: AnswerForm,
  objects: readonly KubeObject[],
  kind: PresentedKind & { readonly facts: ResourceFacts; readonly listKind: string; readonly schema: Schema; readonly listSchema: Schema },
  nowMs: number,
): Promise<Answer> {
  const list = computedList(request, form, objects as readonly Frozen<KubeObject>[], kind, nowMs)
  // A caller in this process gets the value: it is not written at all.
  if (objects.length > 1 && !request.inProcessUser) return encodeLongList(form, list)
  const { head, name, items, element, schemas } = list
  const elements: unknown[] = []
  await inSlices(items, (item) => void elements.push(element(item)))
  return { type: 'value', status: 200, value: { ...head, [name]: elements }, schema: schemas?.list, ...encodingOf(form) }
}

function computedList(
  request: ServerRequest,
  form: AnswerForm,
  items: readonly Frozen<KubeObject>[],
  { facts, columns, listKind, schema, listSchema }: Parameters<typeof presentComputedList>[3],
  nowMs: number,
): LongList<Frozen<KubeObject>> {
  // Without a resourceVersion: the list is of no state of the store.
  const metadata = {}
  if (!form.as) {
    const head = { kind: listKind, apiVersion: groupVersion(facts), metadata }
    const element = ({ apiVersion: _, kind: __, ...rest }: Frozen<KubeObject>) => rest
    return { head, name: 'items', items, element, schemas: { list: listSchema, item: schema } }
  }
  const apiVersion = `meta.k8s.io/${form.metaVersion ?? 'v1'}`
  if (form.as === 'Table') {
    const include = includeOf(request)
    const { rows: _, ...head } = toTable([], columns, nowMs, include, metadata)
    return { head: { ...head, apiVersion }, name: 'rows', items, element: (object) => tableRow(object, columns, nowMs, include) }
  }
  const head = { kind: 'PartialObjectMetadataList', apiVersion, metadata }
  return { head, name: 'items', items, element: (object) => ({ ...partialObjectMetadata(object), apiVersion }) }
}

/** What kinds without columns of their own show. */
const defaultColumns: readonly Column<KubeObject>[] = [
  { name: 'Name', type: 'string', format: 'name', value: (object) => object.metadata.name },
  { name: 'Age', type: 'date', value: (object) => object.metadata.creationTimestamp },
]

function plainPresenter(served: ServedResource, form: AnswerForm): Presenter {
  // JSON and protobuf of each object are cached already.
  const isPlain = form.mediaType !== 'application/yaml' && !form.pretty
  return {
    form,
    object: (object, status) => ({ type: 'object', status, object, ...encodingOf(form) }),
    list: (result) => {
      const typedItems = served.custom !== undefined
      const head = { kind: served.custom?.listKind ?? `${served.kind}List`, apiVersion: served.apiVersion, metadata: listMeta(result) }
      if (!isPlain && result.items.length > longListItems) {
        const element = ({ object }: CachedObject) => (typedItems ? object : { ...withNils(object), apiVersion: undefined, kind: undefined })
        return encodeLongList(form, { head, name: 'items', items: result.items, element })
      }
      return { type: 'list', ...head, typedItems, items: result.items, ...encodingOf(form) }
    },
    watchForm: () => ({
      form: { key: formKey(served), view: served.view },
      bookmark: (revision, annotations) => bookmarkObject(served.kind, served.apiVersion, revision, annotations),
    }),
  }
}

function metadataPresenter(served: ServedResource, form: AnswerForm): Presenter {
  const apiVersion = `meta.k8s.io/${form.metaVersion ?? 'v1'}`
  const partial = (object: Frozen<KubeObject>) => ({ ...partialObjectMetadata(object), apiVersion })
  return {
    form,
    object: (object, status) => ({ type: 'value', status, value: partial(object.object), ...encodingOf(form) }),
    list: (result) => {
      const head = { kind: 'PartialObjectMetadataList', apiVersion, metadata: listMeta(result) }
      const element = ({ object }: CachedObject) => partial(object)
      if (result.items.length > longListItems) return encodeLongList(form, { head, name: 'items', items: result.items, element })
      return { type: 'value', status: 200, value: { ...head, items: result.items.map(element) }, ...encodingOf(form) }
    },
    watchForm: () => ({
      form: {
        key: `partial ${apiVersion} ${formKey(served)}`,
        view: served.view,
        encode: (object) => Buffer.from(stringifyExactly(partial(object.object))),
        value: (object) => partial(object.object),
      },
      bookmark: (revision, annotations) => bookmarkObject('PartialObjectMetadata', apiVersion, revision, annotations),
    }),
  }
}

function tablePresenter(request: ServerRequest, served: ServedResource, form: AnswerForm, nowMs: () => number): Presenter {
  const include = includeOf(request)
  const { columns = defaultColumns } = served.stored.strategy
  const apiVersion = `meta.k8s.io/${form.metaVersion ?? 'v1'}`
  const table = (objects: readonly Frozen<KubeObject>[], metadata: KubeList<unknown>['metadata'], withColumns = true) => {
    const made = toTable(objects, columns, nowMs(), include)
    return { ...made, apiVersion, metadata, ...(withColumns ? {} : { columnDefinitions: null }) }
  }
  const one = (object: CachedObject, withColumns = true) => table([object.object], { resourceVersion: String(object.resourceVersion) }, withColumns)
  const tableForm = (withColumns: boolean): WatchForm => ({
    form: {
      key: `table ${withColumns} ${include} ${apiVersion} ${formKey(served)}`,
      view: served.view,
      encode: (object) => Buffer.from(stringifyExactly(one(object, withColumns))),
      value: (object) => one(object, withColumns),
    },
    bookmark: (revision, annotations) => ({
      ...table([], { resourceVersion: String(revision) }, withColumns),
      ...(annotations ? { rows: [bookmarkRow(served, revision, annotations)] } : {}),
    }),
  })
  return {
    form,
    object: (object, status) => ({ type: 'value', status, value: one(object), ...encodingOf(form) }),
    list: (result) => {
      // The columns of a definition may search whole objects, so that a few rows take long.
      if (result.items.length > (served.custom ? 1 : longListItems)) {
        const { rows: _, ...head } = table([], listMeta(result))
        const now = nowMs()
        const element = ({ object }: CachedObject) => tableRow(object, columns, now, include)
        return encodeLongList(form, { head, name: 'rows', items: result.items, element })
      }
      const objects = result.items.map((item) => item.object)
      return { type: 'value', status: 200, value: table(objects, listMeta(result)), ...encodingOf(form) }
    },
    // The first table of a stream carries the columns, as upstream; what all others look like all watchers share.
    watchForm: () => ({ ...tableForm(false), first: tableForm(true) }),
  }
}

/** Names a form uniquely: what a custom resource's version shows may change over time. */
function formKey({ apiVersion, custom }: ServedResource): string {
  return custom ? `${apiVersion} ${custom.revision}` : apiVersion
}

function bookmarkRow(served: ServedResource, revision: number, annotations: Readonly<Record<string, string>>) {
  return { cells: [], object: bookmarkObject('PartialObjectMetadata', 'meta.k8s.io/v1', revision, annotations), kind: served.kind }
}

function includeOf(request: ServerRequest): IncludeObject {
  const text = request.query.get('includeObject') ?? ''
  if (text === '' || text === 'Metadata') return 'Metadata'
  if (text === 'None' || text === 'Object') return text
  throw badRequest(`unrecognized includeObject value: ${JSON.stringify(text)}`)
}

function bookmarkObject(kind: string, apiVersion: string, revision: number, annotations: Readonly<Record<string, string>> | undefined) {
  return { kind, apiVersion, metadata: { resourceVersion: String(revision), creationTimestamp: null, ...(annotations ? { annotations } : {}) } }
}

function listMeta(result: ListResult) {
  return {
    resourceVersion: String(result.resourceVersion),
    ...(result.continue === undefined ? {} : { continue: result.continue }),
    ...(result.remainingItemCount === undefined ? {} : { remainingItemCount: result.remainingItemCount }),
  }
}
