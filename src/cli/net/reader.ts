/** Reads what the commands of `skiff net` show, with the rights of the caller (L4): what the caller may not read is left out with the reason, and the rest is shown. */
import type { Frozen } from '#api/machinery/meta'
import { isStatus } from '#api/machinery/status'
import type { Transport } from '#client/transport'
import type { ObjectReader, Query, Seen } from '#why/reader'
import { CommandError } from '../exitCodes.ts'
import type { Ask } from '../why/questions.ts'

export type { Seen }

export interface Reader extends ObjectReader {
  /** For questions that need every answer. */
  readonly ask: Ask
}

export function createReader(transport: Transport): Reader {
  const get = async <T>(path: string, query: Query = {}): Promise<Seen<T>> => {
    try {
      return { found: (await transport.request({ method: 'GET', path, query })).body as Frozen<T> }
    } catch (error) {
      if (!isStatus(error)) throw error
      return error.code === 404 ? {} : { notShown: error.code === 403 ? missingRight(error.message) : error.message }
    }
  }
  return {
    get,
    list: async <T>(path: string, query?: Query) => {
      const { found, ...rest } = await get<{ items: readonly T[] }>(path, query)
      return found ? { found: found.items } : rest
    },
    ask: async (path) => {
      const [plain = '', query] = path.split('?')
      const { found, notShown } = await get(plain, query === undefined ? {} : Object.fromEntries(new URLSearchParams(query)))
      if (found) return { status: 200, body: JSON.stringify(found) }
      return notShown === undefined ? { status: 404, body: '{}' } : { status: 403, body: JSON.stringify({ message: notShown }) }
    },
  }
}

/** From the server's message, in fewer words. */
export function missingRight(message: string): string {
  const [, verb, resource = '', group = '', namespace] =
    /cannot (\S+) resource "([^"]+)"(?: in API group "([^"]*)")?(?: in the namespace "([^"]+)")?/.exec(message) ?? []
  if (verb === undefined) return message
  return `you may not ${verb} ${group === '' ? resource : `${resource}.${group}`}${namespace === undefined ? '' : ` in the namespace ${namespace}`}`
}

/** What must be there. @throws CommandError */
export function required<T>({ found, notShown }: Seen<T>, what: string): Frozen<T> {
  if (found) return found
  if (notShown !== undefined) throw new CommandError('internal', `${what} is not shown: ${notShown}`)
  throw new CommandError('notFound', `there is no ${what}`)
}

/** NAME or NAMESPACE/NAME, with the kind before it or not. */
export function namedObject(text: string, kinds: RegExp, namespace: string): { readonly namespace: string; readonly name: string } {
  const [first = '', second, ...more] = text.replace(kinds, '').split('/')
  if (first === '' || second === '' || more.length > 0) throw new CommandError('usage', `${text}: expected NAME or NAMESPACE/NAME`)
  return second === undefined ? { namespace, name: first } : { namespace: first, name: second }
}

const segment = encodeURIComponent

export const paths = {
  pods: (namespace: string) => `/api/v1/namespaces/${segment(namespace)}/pods`,
  pod: (namespace: string, name: string) => `/api/v1/namespaces/${segment(namespace)}/pods/${segment(name)}`,
  claim: (namespace: string, name: string) => `/api/v1/namespaces/${segment(namespace)}/persistentvolumeclaims/${segment(name)}`,
  volume: (name: string) => `/api/v1/persistentvolumes/${segment(name)}`,
  service: (namespace: string, name: string) => `/api/v1/namespaces/${segment(namespace)}/services/${segment(name)}`,
  slices: (namespace: string) => `/apis/discovery.k8s.io/v1/namespaces/${segment(namespace)}/endpointslices`,
  nodes: '/api/v1/nodes',
  node: (name: string) => `/api/v1/nodes/${segment(name)}`,
  view: (resource: 'servicerules' | 'noderoutes' | 'networkprobes' | 'nodecalls', node?: string) =>
    `/apis/node.skiff.dev/v1alpha1/${resource}${node === undefined ? '' : `/${segment(node)}`}`,
  ingress: (namespace: string, name: string) => `/apis/networking.k8s.io/v1/namespaces/${segment(namespace)}/ingresses/${segment(name)}`,
  ingresses: '/apis/networking.k8s.io/v1/ingresses',
  ingressClasses: '/apis/networking.k8s.io/v1/ingressclasses',
}

/** The slices of a Service. */
export function slicesOf<T>(reader: Reader, namespace: string, service: string): Promise<Seen<readonly T[]>> {
  return reader.list<T>(paths.slices(namespace), { labelSelector: `kubernetes.io/service-name=${service}` })
}

/** A view of a node. A failure of the API server or of the kubelet is a reason, too. */
export async function viewOf<T extends { readonly note?: string | undefined }>(
  reader: Reader,
  resource: Parameters<typeof paths.view>[0],
  node: string,
  query?: Query,
): Promise<Seen<T>> {
  const { found, notShown } = await reader.get<T & { readonly error?: string | undefined }>(paths.view(resource, node), query)
  if (notShown !== undefined) return { notShown }
  if (!found) return { notShown: `the server has no ${resource} of the node ${node}` }
  const { error } = found as { readonly error?: string | undefined }
  return error === undefined ? { found: found as Frozen<T> } : { notShown: `the kubelet of ${node} does not answer: ${error}` }
}
