/**
 * The Client over any Transport (L2): builds paths, queries and bodies, and gives list items the apiVersion and kind that the wire leaves out.
 * Knows nothing of connections or credentials. Upstream: client-go/rest/request.go and the typed clients (v1.36).
 */
import { type Frozen, groupVersion, type KubeList, type KubeObject, type ObjectRef } from '#api/machinery/meta'
import type { Client, DeleteOptions, ListOptions, PatchType, Resource, ResourceClient, WatchOptions, WriteOptions } from './client.ts'
import type { ApiRequest, Transport, WatchEvent } from './transport.ts'

type Query = Record<string, string | undefined>

const patchContentTypes: Readonly<Record<PatchType, string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
}

/** A Client whose calls travel through `transport`. Cheap: it holds no state. */
export function createClient(transport: Transport): Client {
  return { transport, of: (resource) => resourceClient(transport, resource) }
}

/**
 * The path of a resource, object or subresource: /apis/apps/v1/namespaces/default/deployments/web/scale.
 * @throws Error when a namespaced object is named without its namespace.
 */
export function resourcePath(
  resource: Pick<Resource<KubeObject>, 'group' | 'version' | 'resource' | 'namespaced'>,
  at: { readonly namespace?: string | undefined; readonly name?: string | undefined } = {},
  subresource?: string,
): string {
  let path = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`
  if (resource.namespaced && at.namespace) path += `/namespaces/${encodeURIComponent(at.namespace)}`
  else if (resource.namespaced && at.name !== undefined) throw new Error('an empty namespace may not be set when a resource name is provided')
  path += `/${resource.resource}`
  if (at.name !== undefined) {
    if (at.name === '') throw new Error('resource name may not be empty')
    path += `/${encodeURIComponent(at.name)}`
  }
  return subresource === undefined ? path : `${path}/${subresource}`
}

function resourceClient<T extends KubeObject>(transport: Transport, resource: Resource<T>): ResourceClient<T> {
  const send = async <R = T>(request: ApiRequest, signal: AbortSignal | undefined) => (await transport.request(request, signal)).body as Frozen<R>
  const write = (method: 'POST' | 'PUT', path: string, body: unknown, options: WriteOptions | undefined): ApiRequest => ({
    method,
    path,
    query: writeQuery(options),
    body,
  })
  const put = (object: T | Frozen<T>, subresource: string | undefined, options: WriteOptions | undefined) =>
    send(write('PUT', resourcePath(resource, refOf(object), subresource), withKind(resource, object), options), options?.signal)
  return {
    resource,
    get: (ref, options) => send({ method: 'GET', path: resourcePath(resource, ref), query: { resourceVersion: options?.resourceVersion } }, options?.signal),
    list: async (options) => completeList(resource, await send<KubeList<T>>(listRequest(resource, options), options?.signal)),
    watch: (options) => transport.watch(watchRequest(resource, options), options.signal) as AsyncIterable<readonly WatchEvent<Frozen<T>>[]>,
    create: (object, options) => {
      const { namespace } = object.metadata
      if (resource.namespaced && !namespace) throw new Error('an empty namespace may not be set during creation')
      return send(write('POST', resourcePath(resource, { namespace }), withKind(resource, object), options), options?.signal)
    },
    update: (object, options) => put(object, undefined, options),
    updateStatus: (object, options) => put(object, 'status', options),
    patch: (ref, type, body, options) =>
      send(
        {
          method: 'PATCH',
          path: resourcePath(resource, ref, options?.subresource),
          query: { ...writeQuery(options), force: options?.force === undefined ? undefined : String(options.force) },
          body,
          contentType: patchContentTypes[type],
        },
        options?.signal,
      ),
    delete: async (ref, options) => {
      await transport.request({ method: 'DELETE', path: resourcePath(resource, ref), body: deleteBody(options) }, options?.signal)
    },
    deleteCollection: async (options) => {
      await transport.request({ ...listRequest(resource, options), method: 'DELETE', body: deleteBody(options) }, options?.signal)
    },
    createSubresource: <B>(ref: ObjectRef, subresource: string, body: unknown, options?: WriteOptions) =>
      send<B>(write('POST', resourcePath(resource, ref, subresource), body, options), options?.signal),
    getSubresource: <B>(ref: ObjectRef, subresource: string, options?: { readonly signal?: AbortSignal | undefined }) =>
      send<B>({ method: 'GET', path: resourcePath(resource, ref, subresource) }, options?.signal),
    updateSubresource: <B>(ref: ObjectRef, subresource: string, body: unknown, options?: WriteOptions) =>
      send<B>(write('PUT', resourcePath(resource, ref, subresource), body, options), options?.signal),
  }
}

function refOf(object: { readonly metadata: { readonly namespace?: string | undefined; readonly name?: string | undefined } }): ObjectRef {
  return { namespace: object.metadata.namespace, name: object.metadata.name ?? '' }
}

function withKind(resource: Resource<KubeObject>, object: object): object {
  return { apiVersion: groupVersion(resource), kind: resource.kind, ...object }
}

function writeQuery(options: WriteOptions | undefined): Query {
  return {
    fieldManager: options?.fieldManager,
    dryRun: options?.dryRun ? 'All' : undefined,
    fieldValidation: options?.fieldValidation,
  }
}

function listRequest(resource: Resource<KubeObject>, options: ListOptions | undefined): ApiRequest {
  return {
    method: 'GET',
    path: resourcePath(resource, { namespace: options?.namespace }),
    query: {
      labelSelector: options?.labelSelector,
      fieldSelector: options?.fieldSelector,
      limit: options?.limit === undefined ? undefined : String(options.limit),
      continue: options?.continue,
      resourceVersion: options?.resourceVersion,
      resourceVersionMatch: options?.resourceVersionMatch,
    },
  }
}

function watchRequest(resource: Resource<KubeObject>, options: WatchOptions): ApiRequest {
  const flag = (value: boolean | undefined) => (value === undefined ? undefined : String(value))
  const { path, query } = listRequest(resource, options)
  return {
    method: 'GET',
    path,
    query: {
      ...query,
      allowWatchBookmarks: flag(options.allowWatchBookmarks),
      sendInitialEvents: flag(options.sendInitialEvents),
      timeoutSeconds: options.timeoutSeconds === undefined ? undefined : String(options.timeoutSeconds),
    },
  }
}

function deleteBody(options: DeleteOptions | undefined): object {
  return {
    apiVersion: 'v1',
    kind: 'DeleteOptions',
    ...(options?.gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds: options.gracePeriodSeconds }),
    ...(options?.propagationPolicy === undefined ? {} : { propagationPolicy: options.propagationPolicy }),
    ...(options?.preconditions === undefined ? {} : { preconditions: options.preconditions }),
    ...(options?.dryRun ? { dryRun: ['All'] } : {}),
  }
}

/** Go servers write `items: null` for none, and items without the kind that the list's own already tells. */
function completeList<T extends KubeObject>(resource: Resource<T>, list: Frozen<KubeList<T>>): Frozen<KubeList<T>> {
  const items = (list.items ?? []) as readonly Frozen<KubeObject>[]
  if (list.items && items.every((item) => item.kind !== undefined)) return list
  const apiVersion = groupVersion(resource)
  const complete = items.map((item) => (item.kind === undefined ? Object.freeze({ ...item, apiVersion, kind: resource.kind }) : item))
  return Object.freeze({ ...list, items: Object.freeze(complete) }) as Frozen<KubeList<T>>
}
