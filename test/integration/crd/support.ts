import type { CustomResourceDefinition, CustomResourceDefinitionSpec, CustomResourceDefinitionVersion, JSONSchemaProps } from '#api/gen/types/apiextensions.v1'
import type { Unstructured } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Client } from '#client/client'
import type { ApiRequest } from '#client/transport'

export const crdPath = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
export const group = 'example.com'

/** Any object, reached by name. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into free-form objects
export type Any = any

export interface PlainOptions {
  readonly contentType?: string
  readonly accept?: string
}

export interface Plain {
  /** `path` may have a query. */
  request(method: ApiRequest['method'], path: string, body?: unknown, options?: PlainOptions): Promise<Any>
  /** True when there is nothing at the path. */
  isGone(path: string): Promise<boolean>
}

export function plain(client: Client): Plain {
  const request: Plain['request'] = async (method, address, body, options = {}) => {
    const [path = '', search = ''] = address.split('?')
    const query = Object.fromEntries(new URLSearchParams(search))
    return (await client.transport.request({ method, path, query, body, ...options })).body
  }
  return {
    request,
    isGone: (path) =>
      request('GET', path).then(
        () => false,
        (error) => isStatus(error, 'NotFound') || error.code === 404,
      ),
  }
}

/** Waits for a condition, not for a time. */
export async function until<T>(what: string, get: () => Promise<T | undefined | false>, deadlineMs = 5_000): Promise<T> {
  const end = Date.now() + deadlineMs
  for (;;) {
    const value = await get()
    if (value) return value as T
    if (Date.now() > end) throw new Error(`${what} did not happen`)
    await new Promise((resolve) => setImmediate(resolve))
  }
}

export const version = (name: string, schema: JSONSchemaProps, more: Partial<CustomResourceDefinitionVersion> = {}): CustomResourceDefinitionVersion => ({
  name,
  served: true,
  storage: true,
  schema: { openAPIV3Schema: schema },
  ...more,
})

export function definition(
  plural: string,
  kind: string,
  versions: readonly CustomResourceDefinitionVersion[],
  more: Partial<CustomResourceDefinitionSpec> = {},
): Pick<CustomResourceDefinition, 'metadata' | 'spec'> {
  return {
    metadata: { name: `${plural}.${group}` },
    spec: { group, scope: 'Namespaced', names: { plural, kind }, versions: [...versions], ...more },
  }
}

/** Creates a definition and waits until it is established. */
export async function establish(client: Client, body: Pick<CustomResourceDefinition, 'metadata' | 'spec'>): Promise<CustomResourceDefinition> {
  const api = plain(client)
  await api.request('POST', crdPath, body)
  return until('Established', async () => {
    const found: CustomResourceDefinition = await api.request('GET', `${crdPath}/${body.metadata.name}`)
    return found.status.conditions?.some(({ type, status }) => type === 'Established' && status === 'True') && found
  })
}

export const object = (kind: string, name: string, spec: unknown, more: object = {}, apiVersion = `${group}/v1`): Unstructured =>
  ({ apiVersion, kind, metadata: { name }, spec, ...more }) as unknown as Unstructured
