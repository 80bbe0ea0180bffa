/**
 * A client that asks for objects' metadata only (L2): for caches of resources whose content no reader needs, mainly custom ones.
 * Upstream: client-go/metadata (v1.36).
 */
import type { KubeObject } from '#api/machinery/meta'
import type { Client, Resource, ResourceClient } from './client.ts'
import { createClient } from './clientOverTransport.ts'
import type { ApiRequest, Transport } from './transport.ts'

/** The returned form of every object, whose kind is PartialObjectMetadata. */
export interface PartialObjectMetadata extends KubeObject {
  readonly apiVersion: 'meta.k8s.io/v1'
  readonly kind: 'PartialObjectMetadata'
}

const accept = (kind: string) => `application/json;as=${kind};g=meta.k8s.io;v=v1`

/** Reads and watches return {@link PartialObjectMetadata}; writes go to `transport` unchanged. Informers over it hold metadata. */
export function createMetadataClient(transport: Transport): Client {
  const one = createClient(accepting(transport, accept('PartialObjectMetadata')))
  const list = createClient(accepting(transport, accept('PartialObjectMetadataList')))
  return {
    transport,
    of: <T extends KubeObject>(resource: Resource<T>): ResourceClient<T> => ({ ...one.of(resource), list: list.of(resource).list }),
  }
}

function accepting(transport: Transport, accepted: string): Transport {
  const asking = (request: ApiRequest): ApiRequest => (request.method === 'GET' ? { ...request, accept: accepted } : request)
  return {
    request: (request, signal) => transport.request(asking(request), signal),
    watch: (request, signal) => transport.watch(asking(request), signal),
  }
}
