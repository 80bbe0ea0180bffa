import assert from 'node:assert/strict'
import test from 'node:test'
import { isStatus } from '#api/machinery/status'
import { negotiate } from './negotiate.ts'
import type { ServerRequest } from './request.ts'

function form(accept: string | undefined, query = '', agent = 'kubectl/v1.36.0'): unknown {
  const request = { headers: { accept, 'user-agent': agent }, query: new URLSearchParams(query) } as unknown as ServerRequest
  try {
    const { mediaType, as, pretty } = negotiate(request, ['Table', 'PartialObjectMetadataList'])
    return [mediaType.replace('application/', ''), as, pretty]
  } catch (error) {
    return isStatus(error, 'NotAcceptable') ? 406 : error
  }
}

const kubectl = 'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json'
const cases: readonly { name: string; accept?: string; query?: string; agent?: string; want: unknown }[] = [
  { name: 'nothing said', want: ['json', undefined, false] },
  { name: 'anything', accept: '*/*', want: ['json', undefined, false] },
  { name: 'kubectl get', accept: kubectl, want: ['json', 'Table', false] },
  {
    name: 'a form that this endpoint has not, with a way out',
    accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json',
    want: ['json', undefined, false],
  },
  { name: 'a form that this endpoint has not', accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io', want: 406 },
  { name: 'a form of an unknown version', accept: 'application/json;as=Table;v=v7;g=meta.k8s.io', want: 406 },
  { name: 'client-go', accept: 'application/vnd.kubernetes.protobuf,application/json', want: ['vnd.kubernetes.protobuf', undefined, false] },
  {
    name: 'metadata informers',
    accept: 'application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1;g=meta.k8s.io',
    want: ['json', 'Table', false],
  },
  { name: 'protobuf alone', accept: 'application/vnd.kubernetes.protobuf', want: ['vnd.kubernetes.protobuf', undefined, false] },
  {
    name: 'metadata in protobuf alone',
    accept: 'application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io',
    want: ['vnd.kubernetes.protobuf', 'PartialObjectMetadataList', false],
  },
  { name: 'a table in protobuf', accept: 'application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io', want: 406 },
  { name: 'the better quality first', accept: 'application/json;q=0.2,application/yaml;q=0.8', want: ['yaml', undefined, false] },
  { name: 'nothing we have', accept: 'text/html,image/png', want: 406 },
  { name: 'curl reads with its eyes', agent: 'curl/8.0', want: ['json', undefined, true] },
  { name: 'pretty by request', query: 'pretty=true', want: ['json', undefined, true] },
  { name: 'not pretty by request', query: 'pretty=false', agent: 'curl/8.0', want: ['json', undefined, false] },
]
for (const { name, accept, query, agent, want } of cases) test(`API-16 negotiates: ${name}`, () => assert.deepEqual(form(accept, query, agent), want))
