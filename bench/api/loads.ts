/** The API's verbs one after the other against one server, over TLS and HTTP/2 with the disk behind every write. */
import type { LoadAnswer, LoadRequest } from '../tools/http2Connection.ts'
import { configMap, encoded, pod } from '../tools/objects.ts'
import { type ApiBench, namespace } from './apiBench.ts'

/** One kind of load: what the i-th request is. */
export interface Load {
  readonly what: string
  /** Requests per repeat. */
  readonly count: number
  /** Default: the common number. */
  readonly inFlight?: number
  prepare?(bench: ApiBench): Promise<void>
  /** `index` continues over the repeats. */
  request(bench: ApiBench, index: number, worker: number): LoadRequest
  answered?(bench: ApiBench, answer: LoadAnswer, worker: number): void
}

const maps = `/api/v1/namespaces/${namespace}/configmaps`
const pods = `/api/v1/namespaces/${namespace}/pods`
/** How many of the objects that "create" made the reading loads go over. */
const span = 1000

const named = (prefix: string, index: number) => `${prefix}-${String(index).padStart(6, '0')}`

export const loads: readonly Load[] = [
  {
    what: 'create',
    count: 2000,
    request: (_, index) => ({ method: 'POST', path: maps, body: configMap(namespace, named('cm', index)), contentType: 'application/json' }),
  },
  {
    what: 'create, one at a time',
    count: 200,
    inFlight: 1,
    request: (_, index) => ({ method: 'POST', path: maps, body: configMap(namespace, named('one', index)), contentType: 'application/json' }),
  },
  { what: 'get', count: 10_000, request: (_, index) => ({ method: 'GET', path: `${maps}/${named('cm', (index * 7919) % span)}` }) },
  {
    what: 'update',
    count: 2000,
    prepare: async (bench) => {
      for (let worker = 0; worker < bench.inFlight; worker++)
        bench.versions[worker] = versionIn((await bench.client.ask('GET', `${maps}/${named('cm', worker)}`)).body)
    },
    request: (bench, index, worker) => ({
      method: 'PUT',
      path: `${maps}/${named('cm', worker)}`,
      body: configMap(namespace, named('cm', worker), { resourceVersion: bench.versions[worker], seed: index }),
      contentType: 'application/json',
      keep: true,
    }),
    answered: (bench, answer, worker) => {
      bench.versions[worker] = versionIn(answer.body)
    },
  },
  {
    what: 'merge patch',
    count: 2000,
    request: (_, index, worker) => ({
      method: 'PATCH',
      path: `${maps}/${named('cm', worker)}`,
      body: encoded({ data: { m: `v${index}` } }),
      contentType: 'application/merge-patch+json',
    }),
  },
  {
    what: 'strategic merge patch of a pod',
    count: 2000,
    prepare: async ({ client, inFlight }) => {
      for (let worker = 0; worker < inFlight; worker++) await client.ask('POST', pods, pod(namespace, named('p', worker), { schedulerName: 'nobody' }))
    },
    request: (_, index, worker) => ({
      method: 'PATCH',
      path: `${pods}/${named('p', worker)}`,
      body: encoded({ metadata: { annotations: { seq: String(index) } }, spec: { containers: [{ name: 'c', image: `registry.k8s.io/pause:3.${index}` }] } }),
      contentType: 'application/strategic-merge-patch+json',
    }),
  },
  {
    what: 'server-side apply',
    count: 2000,
    request: (_, index, worker) => ({
      method: 'PATCH',
      path: `${maps}/${named('applied', worker)}?fieldManager=bench&force=true`,
      body: configMap(namespace, named('applied', worker), { seed: index }),
      contentType: 'application/apply-patch+yaml',
    }),
  },
  {
    what: 'mixed: 60 % get, 10 % list of 100, 20 % merge patch, 10 % create',
    count: 3000,
    prepare: async ({ client }) => {
      await client.ask('POST', '/api/v1/namespaces', { metadata: { name: 'hundred' } })
      for (let index = 0; index < 100; index++) {
        await client.ask('POST', '/api/v1/namespaces/hundred/configmaps', JSON.parse(configMap('hundred', named('cm', index)).toString()))
      }
    },
    request: (_, index, worker) => mixed(index, worker),
  },
  { what: 'delete', count: 1500, request: (_, index) => ({ method: 'DELETE', path: `${maps}/${named('cm', index)}` }) },
]

function mixed(index: number, worker: number): LoadRequest {
  const draw = (index * 37) % 100
  if (draw < 60) return { method: 'GET', path: `${maps}/${named('cm', (index * 7919) % span)}` }
  if (draw < 70) return { method: 'GET', path: '/api/v1/namespaces/hundred/configmaps?resourceVersion=0' }
  if (draw < 90) {
    const body = encoded({ data: { m: `x${index}` } })
    return { method: 'PATCH', path: `${maps}/${named('cm', worker)}`, body, contentType: 'application/merge-patch+json' }
  }
  return { method: 'POST', path: maps, body: configMap(namespace, named('mixed', index)), contentType: 'application/json' }
}

function versionIn(body: string): string {
  return /"resourceVersion":\s*"(\d+)"/.exec(body)?.[1] ?? ''
}
